"""Lambda: find the tables of a maintenance run, and store the list of them."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.metrics import MetricUnit

from compactor.invocation import (
    Event,
    LambdaContext,
    logger,
    metrics,
)
from compactor_tables.aws.glue_catalog import GlueCatalog
from compactor_tables.handlers.runtime import table_store
from compactor_tables.request import read_request
from compactor_tables.table_discovery import find_tables
from compactor_tables.worklist import write_worklist


@logger.inject_lambda_context(correlation_id_path="run_id")
@metrics.log_metrics(capture_cold_start_metric=True)
def handler(event: Event, context: LambdaContext) -> dict[str, Any]:
    """Take ``{"run_id", "input"}``; return the locations of the list and the request.

    Raises:
        InvalidInput: the request is invalid; the state machine ends.
    """
    given = event["input"]
    request = read_request(given)
    store = table_store(context)
    found = find_tables(request, store, GlueCatalog())
    for name in found.unnamed:
        logger.warning("no address can name this table", table=name)
    metrics.add_metric(name="Tables", unit=MetricUnit.Count, value=len(found.tables))
    logger.info("listed", tables=len(found.tables))
    return write_worklist(request, given, event["run_id"], found.tables, store=store)
