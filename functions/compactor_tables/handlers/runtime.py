"""Shared by the maintenance handlers: table and run of an event, AWS services, and metrics."""

from __future__ import annotations

import os
from functools import cache

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
from compactor.settings.tables import parse_table
from compactor.settings.uris import S3Uri
from compactor.sizes import MIB
from compactor_tables import document_keys as places
from compactor_tables.aws.glue_tables import GlueTables
from compactor_tables.request import MaintenanceRequest
from compactor_tables.table_run import TableRun
from compactor_tables.worklist import read_stored_request

_READS, _READ_AHEAD_BYTES = 32, 64 * MIB


CLOCK = SystemClock()


def table_run(event: Event, context: LambdaContext) -> TableRun:
    """Return the table and the run of ``{"run_id", "table", "request": {"bucket", "key"}}``.

    Raises:
        InvalidInput: the request belongs to another run.
    """
    table, store = parse_table(event["table"]), table_store(context)
    return TableRun(event["run_id"], table, state_of(event), store, CLOCK)


def state_of(event: Event) -> S3Uri:
    """Return the state of the run that an event names.

    Raises:
        InvalidInput: the request belongs to another run.
    """
    where = event["request"]
    return places.state_around(where["bucket"], where["key"], event["run_id"])


def request_of(event: Event, store: ObjectStore) -> MaintenanceRequest:
    """Return the input of an event's run."""
    return read_stored_request(event["request"]["bucket"], event["request"]["key"], store)


@cache
def glue() -> GlueTables:
    """Return the process's client of Glue."""
    return GlueTables()


@cache
def prices() -> Prices:
    """Return the prices of the function's region."""
    return prices_for(os.environ.get("AWS_REGION"))


def table_store(context: LambdaContext) -> S3Store:
    """Return the store, which waits for nothing beyond the end of the invocation."""
    return kept_store(_READS, _READ_AHEAD_BYTES).within(LambdaDeadline(context))


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
