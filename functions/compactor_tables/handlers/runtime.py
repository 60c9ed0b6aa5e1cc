"""What the handlers of maintenance share: a run's place and store, and AWS's services."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec
from aws_lambda_powertools.metrics import MetricUnit, single_metric

from compactor.clock import SystemClock
from compactor.invocation import (
    NAMESPACE,
    SERVICE,
    Event,
    LambdaContext,
    LambdaDeadline,
    kept_store,
)
from compactor.ports import TaggedStore
from compactor.prices import Prices, prices_for
from compactor.s3.store import S3Store
from compactor.settings.tables import TableAddress, parse_table
from compactor.settings.uris import S3Uri
from compactor.sizes import MIB
from compactor_tables import document_keys as places
from compactor_tables.aws.athena_results import AthenaResults
from compactor_tables.aws.glue_tables import GlueTables
from compactor_tables.orders import Order, read_order

_READS, _READ_AHEAD_BYTES = 32, 64 * MIB


@dataclass(frozen=True, slots=True)
class RunOfTables:
    """A maintenance run, as an event names it.

    Attributes:
        state: where its documents lie.
    """

    run_id: str
    state: S3Uri
    store: TaggedStore

    @classmethod
    def of(cls, event: Event, context: LambdaContext) -> RunOfTables:
        """The run of ``{"run_id", "request": {"bucket", "key"}}``.

        Raises:
            InvalidInput: the request is not of this run.
        """
        where = event["request"]
        state = places.state_around(where["bucket"], where["key"], event["run_id"])
        return cls(event["run_id"], state, table_store(context))

    def order(self, plan: Mapping[str, Any]) -> Order | None:
        """What a plan ordered; None where it ordered nothing."""
        where = plan.get("order")
        return read_order(where["bucket"], where["key"], self.store) if where else None


class StoredRequest(msgspec.Struct):
    """What of a run's request the work on a table needs."""

    dry_run: bool = False


@cache
def glue() -> GlueTables:
    """Glue, for this process."""
    return GlueTables()


@cache
def prices() -> Prices:
    """Prices of the function's region."""
    return prices_for(os.environ.get("AWS_REGION"))


@cache
def athena() -> AthenaResults:
    """Athena's answers, for this process."""
    return AthenaResults()


def table_store(context: LambdaContext) -> S3Store:
    """The store for the metadata of tables, within the invocation's time."""
    return kept_store(_READS, _READ_AHEAD_BYTES).within(LambdaDeadline(context))


def table_of(event: Event) -> TableAddress:
    """The table of an event."""
    return parse_table(event["table"])


CLOCK = SystemClock()


def table_metric(table: str, name: str, value: float) -> None:
    """A number of one table, in CloudWatch's embedded metric format.

    Args:
        table: its address, a dimension of the metric.
        name: of the metric.
        value: of now.
    """
    with single_metric(name=name, unit=MetricUnit.NoUnit, value=value, namespace=NAMESPACE) as one:
        one.add_dimension(name="service", value=SERVICE)
        one.add_dimension(name="table", value=table)
