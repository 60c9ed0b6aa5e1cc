"""Lambda: record the outcome of a table, and release its lease whatever the outcome."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.metrics import MetricUnit

from compactor.invocation import Event, LambdaContext, logger, metrics
from compactor_tables.handlers.runtime import table_metric, table_run
from compactor_tables.outcomes import Outcome

_FIGURES = (
    ("MaintainedFiles", MetricUnit.Count, "files"),
    ("MaintainedBytes", MetricUnit.Bytes, "bytes"),
    ("WrittenFiles", MetricUnit.Count, "into"),
    ("GaveWay", MetricUnit.Count, "gave_way"),
    ("ExpiredVersions", MetricUnit.Count, "expired"),
    ("MaintenanceSeconds", MetricUnit.Seconds, "seconds"),
)


@logger.inject_lambda_context(correlation_id_path="run_id")
@metrics.log_metrics
def handler(event: Event, context: LambdaContext) -> dict[str, Any]:
    """Take ``{"run_id", "table", "request", "plan"?, "failure"?}``; return ``status`` and ``line``.

    ``plan`` is the answer of plan_table; null if that failed.
    ``failure`` is the error that the state machine caught.
    """
    outcome = table_run(event, context).end(event.get("plan"), event.get("failure"))
    _count(outcome)
    return {"table": outcome.table, "status": outcome.status, "line": outcome.line}


def _count(outcome: Outcome) -> None:
    for name, unit, attribute in _FIGURES:
        metrics.add_metric(name=name, unit=unit, value=getattr(outcome, attribute))
    backlog = max(0, outcome.estimate.files - outcome.files)
    table_metric(outcome.table, "TableBacklog", backlog)
    table_metric(outcome.table, "TableSeconds", outcome.seconds)
    metrics.add_metric(name="MaintenanceDollars", unit=MetricUnit.NoUnit, value=outcome.dollars)
    failed = outcome.status == "failed"
    metrics.add_metric(name="FailedTables", unit=MetricUnit.Count, value=failed)
    log = logger.error if failed else logger.info
    log("maintained", table=outcome.table, status=outcome.status, line=outcome.line)
