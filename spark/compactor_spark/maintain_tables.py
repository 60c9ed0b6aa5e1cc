"""Maintain tables as their orders specify: the entry point for spark-submit.

    spark-submit ... maintain_tables.py --order URI

The URI is that of an order, below ``runs/<run id>/tables/``. Several orders are done sequentially.
The job writes a receipt next to each order, and updates it after each partition and each step. When
started again with the same order, it resumes from there. Its exit code is 0 when every order was
done as far as time and other writers allowed, 1 when something failed, and 2 when the arguments are
wrong.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from pyspark import SparkConf
from pyspark.sql import SparkSession

from compactor.clock import SystemClock
from compactor.errors import InvalidInput, ObjectMissing
from compactor.failures import first_line
from compactor.ports import ObjectStore
from compactor.s3.store import S3Store, make_client
from compactor.settings.layout import RUNS
from compactor.settings.tables import DELTA
from compactor.settings.uris import S3Uri, parse_location
from compactor_spark.console import Console
from compactor_spark.log_store import one_driver_only
from compactor_spark.maintain.opening import open_maintained, start_settings
from compactor_tables import document_keys as places
from compactor_tables.lease import Leases
from compactor_tables.maintenance_job import Maintenance
from compactor_tables.maintenance_receipts import MaintenanceReceipt, read_receipt, write_receipt
from compactor_tables.orders import Order, read_order

if TYPE_CHECKING:
    from types_boto3_s3.client import S3Client

NAME = "maintain_tables"
ORDER_ACCEPTED = (
    "the URI of an order, s3://BUCKET/<state prefix>/runs/<run id>/tables/....order.json"
)
_ENGINE = "spark"


@dataclass(frozen=True, slots=True)
class GivenOrder:
    """An order, and the location of its run's documents."""

    order: Order
    state: S3Uri


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the job and return the exit code."""
    parser = argparse.ArgumentParser(description="Maintain tables as orders say it.")
    parser.add_argument("--order", required=True, nargs="+", metavar="URI", help=ORDER_ACCEPTED)
    uris = parser.parse_args(arguments).order
    console = Console(name=NAME)
    client = make_client()
    store = S3Store(client)
    try:
        given = [read_given(uri, store) for uri in uris]
        # Needed even when there is nothing to do: YARN fails a driver that starts no session.
        session = _session([one.order for one in given])
    except InvalidInput as error:
        parser.error(str(error))
    try:
        receipts = [_maintain(one, session, client, console) for one in given]
    finally:
        session.stop()
    return int(any(one.status == "failed" for one in receipts))


def read_given(uri: str, store: ObjectStore) -> GivenOrder:
    """Read the order at a URI.

    Raises:
        InvalidInput: there is no order, or it belongs to a run in another location.
    """
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    head, found, _ = key.rpartition(f"{RUNS}")
    if not uri.startswith("s3://") or not found:
        raise InvalidInput("order", uri, ORDER_ACCEPTED)
    try:
        order = read_order(bucket, key, store)
    except ObjectMissing:
        raise InvalidInput("order", uri, f"{ORDER_ACCEPTED}, which is there") from None
    state = parse_location(f"s3://{bucket}/{head}")
    if places.order_key(state, order.run_id, order.address) != (bucket, key):
        raise InvalidInput("order", uri, "an order where its own run has put it")
    return GivenOrder(order, state)


def _session(orders: Sequence[Order]) -> SparkSession:
    """Return a session with spark-submit's settings and those that the tables need."""
    builder = SparkSession.Builder()
    given = dict(SparkConf().getAll())
    for name, value in start_settings([one.address for one in orders], given).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _maintain(
    given: GivenOrder, session: SparkSession, client: S3Client, console: Console
) -> MaintenanceReceipt:
    order, state = given.order, given.state
    # A separate store for each table, as tables are independent.
    store = S3Store(client)
    receipt = MaintenanceReceipt(table=order.table, run_id=order.run_id, engine=_ENGINE)
    try:
        receipt = read_receipt(state, order.run_id, order.table, store) or receipt
        table = open_maintained(session, order.address, client, state)
        if order.address.kind == DELTA and (warning := one_driver_only(session)):
            console.say(f"{order.table}: {warning}")
        work = Maintenance(
            order,
            table,
            receipt,
            save=partial(write_receipt, state=state, store=store),
            say=lambda line: console.say(f"{order.table}: {line}"),
            require_ours=partial(
                Leases(store, state, SystemClock()).require_no_other, order.address, order.run_id
            ),
        )
        receipt = work.run()
    except Exception as error:
        # The table could not be opened, or the receipt could not be stored.
        receipt.status = "failed"
        receipt.error, receipt.cause = type(error).__name__, first_line(error)
        write_receipt(receipt, state, store)
    line = f"{receipt.error}: {receipt.cause}" if receipt.error else receipt.status
    console.say(f"{order.table}: {line}")
    return receipt


if __name__ == "__main__":
    sys.exit(main())
