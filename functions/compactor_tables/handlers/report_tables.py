"""Lambda: write the report of a maintenance run."""

from __future__ import annotations

from typing import Any

import msgspec
from aws_lambda_powertools.metrics import MetricUnit

from compactor.failures import failure_text
from compactor.invocation import Event, LambdaContext, logger, metrics
from compactor_tables import document_keys as places
from compactor_tables.handlers.runtime import state_of, table_store
from compactor_tables.maintenance_report import report_on


@logger.inject_lambda_context(correlation_id_path="run_id")
@metrics.log_metrics
def handler(event: Event, context: LambdaContext) -> dict[str, Any]:
    """Take ``{"run_id", "request", "started_at"?, "failure"?}``; return the verdict.

    ``failure`` is the error of the Map over the tables itself.
    """
    run_id, state = event["run_id"], state_of(event)
    report = report_on(
        run_id,
        event.get("started_at", ""),
        failure_text(event.get("failure")),
        state=state,
        store=table_store(context),
    )
    metrics.add_metric(name="MaintainedTables", unit=MetricUnit.Count, value=report.totals.tables)
    logger.info("reported", status=report.status, tables=report.totals.tables)
    bucket, key = places.report_key(state, run_id)
    return {
        "run_id": run_id,
        "status": report.status,
        "report": {"bucket": bucket, "key": key},
        "totals": msgspec.to_builtins(report.totals),
        "failed": report.totals.failed,
        "cause": report.cause,
    }
