"""Shared by the maintenance handlers: state and store of a run, AWS services, and metrics."""

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
from compactor.ports import ObjectStore
from compactor.prices import Prices, prices_for
from compactor.s3.store import S3Store
from compactor.settings.tables import TableAddress, parse_table
from compactor.settings.uris import S3Uri
from compactor.sizes import MIB
from compactor_tables import document_keys as places
from compactor_tables.aws.athena_queries import AthenaResults
from compactor_tables.aws.glue_tables import GlueTables
from compactor_tables.orders import Order, read_order

_READS, _READ_AHEAD_BYTES = 32, 64 * MIB


@dataclass(frozen=True, slots=True)
class RunOfTables:
    """The maintenance run that an event names.

    Attributes:
        state: prefix of its documents.
    """

    run_id: str
    state: S3Uri
    store: ObjectStore

    @classmethod
    def of(cls, event: Event, context: LambdaContext) -> RunOfTables:
        """Return the run of ``{"run_id", "request": {"bucket", "key"}}``.

        Raises:
            InvalidInput: the request belongs to another run.
        """
        where = event["request"]
        state = places.state_around(where["bucket"], where["key"], event["run_id"])
        return cls(event["run_id"], state, table_store(context))

    def order(self, plan: Mapping[str, Any]) -> Order | None:
        """Read the order of a plan; return None if the plan has no order."""
        where = plan.get("order")
        return read_order(where["bucket"], where["key"], self.store) if where else None


class StoredRequest(msgspec.Struct):
    """The part of a run's request that the work on a table needs."""

    dry_run: bool = False


@cache
def glue() -> GlueTables:
    """Return the process's client of Glue."""
    return GlueTables()


@cache
def prices() -> Prices:
    """Return the prices of the function's region."""
    return prices_for(os.environ.get("AWS_REGION"))


@cache
def athena() -> AthenaResults:
    """Return the process's client of Athena's results."""
    return AthenaResults()


def table_store(context: LambdaContext) -> S3Store:
    """Return the store, which waits for nothing beyond the end of the invocation."""
    return kept_store(_READS, _READ_AHEAD_BYTES).within(LambdaDeadline(context))


def table_of(event: Event) -> TableAddress:
    """Return the table of an event."""
    return parse_table(event["table"])


CLOCK = SystemClock()


def table_metric(table: str, name: str, value: float) -> None:
    """Add a metric of one table, in CloudWatch's embedded metric format.

    Args:
        table: its address, a dimension of the metric.
        name: of the metric.
        value: of the metric.
    """
    with single_metric(name=name, unit=MetricUnit.NoUnit, value=value, namespace=NAMESPACE) as one:
        one.add_dimension(name="service", value=SERVICE)
        one.add_dimension(name="table", value=table)
