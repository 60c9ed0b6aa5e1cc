"""What a run left on S3 for its report: work items, receipts, and the endings of its jobs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import msgspec

from compactor.decoding import decoder
from compactor.discovery.work_list import ITEMS_NAME, read_items, require_known_run
from compactor.errors import ObjectMissing
from compactor.model import Partition, Skipped
from compactor.partition import receipts
from compactor.partition.receipts import Receipt
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings

#: Error of a partition whose worker ended without a final receipt.
LOST = "WorkerLost"
SPARK_ERROR_NAME = "spark-error.json"


class DiscoveryLine(msgspec.Struct, frozen=True):
    """What discovery found beside the partitions."""

    skipped: dict[str, Skipped] = {}
    warnings: list[str] = []
    requests: dict[str, int] = {}


class SparkErrorLine(msgspec.Struct, frozen=True):
    """The Spark job's own account of its failure, as far as a report shows it."""

    error: str
    cause: str


_decode_discovery, _decode_spark_error = decoder(DiscoveryLine), decoder(SparkErrorLine)


def spark_failure(ending: str, run_id: str, settings: Settings, store: ObjectStore) -> str:
    """Return why the Spark job failed, in its own words if any; empty if ``ending`` is."""
    if not ending:
        return ""
    try:
        body = store.get(*settings.layout.run(run_id, SPARK_ERROR_NAME))
        line = _decode_spark_error(body)
    except (ObjectMissing, msgspec.MsgspecError):
        # It never started, or was killed: EMR's message, often just Unknown Error, is all there is.
        return f"Spark: {ending}"
    return f"Spark: {line.error}: {line.cause}"


def partitions_of(settings: Settings, run_id: str, store: ObjectStore) -> Iterator[Partition]:
    """Yield the partitions of the work list; none if discovery failed before it wrote one."""
    with suppress(ObjectMissing):
        yield from read_items(store, *settings.layout.run(run_id, ITEMS_NAME))


def receipt_of(
    partition: Partition, run_id: str, settings: Settings, store: ObjectStore
) -> Receipt:
    """Return the last receipt of a partition, or one that says that its worker was lost."""
    receipt = receipts.read(settings, run_id, partition, store)
    if receipt is None:
        cause = "no receipt: the worker was lost before it could write one"
        return Receipt(partition.path, run_id, "failed", error=LOST, cause=cause)
    if receipt.status == "more":
        receipt.error, receipt.cause = LOST, "the last receipt says that work was left"
    if receipt.oversized and settings.spark_engine != "none":
        receipt.status = "failed"
        receipt.error, receipt.cause = LOST, "Spark wrote no receipt for what a worker left to it"
    return receipt


def with_ending(receipt: Receipt, ending: str | None) -> Receipt:
    """Add to a receipt how the worker ended that should have written the last one."""
    if ending is None or receipt.status == "done":
        return receipt
    if receipt.error == LOST:
        receipt.cause += f": {ending}"
    else:
        # The error that an earlier attempt recorded is no longer how it ended.
        receipt.error, receipt.cause = LOST, ending
    return receipt


def discovered_by(settings: Settings, run_id: str, store: ObjectStore) -> DiscoveryLine:
    """Return what discovery left; empty if it failed before writing it.

    Raises:
        IntegrityError: a later version of this program wrote what the run left.
    """
    body = require_known_run(*settings.layout.run(run_id), store)
    return _decode_discovery(body) if body else DiscoveryLine()
