"""Lambda: record the outcome of a table, and release its lease whatever the outcome."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.metrics import MetricUnit

from compactor.failures import failure_text
from compactor.invocation import Event, LambdaContext, logger, metrics, traced
from compactor_tables.handlers.runtime import CLOCK, RunOfTables, table_metric, table_of
from compactor_tables.lease import Leases
from compactor_tables.maintenance_receipts import (
    DONE,
    MaintenanceReceipt,
    read_receipt,
    write_receipt,
)
from compactor_tables.outcomes import Outcome, outcome_of, write_outcome

_NOTHING_FORETOLD: dict[str, Any] = {"engine": "none", "reason": "it was not planned"}
_FIGURES = (
    ("MaintainedFiles", MetricUnit.Count, "files"),
    ("MaintainedBytes", MetricUnit.Bytes, "bytes"),
    ("WrittenFiles", MetricUnit.Count, "into"),
    ("GaveWay", MetricUnit.Count, "gave_way"),
    ("ExpiredVersions", MetricUnit.Count, "expired"),
    ("MaintenanceSeconds", MetricUnit.Seconds, "seconds"),
)


@logger.inject_lambda_context(correlation_id_path="run_id")
@traced
@metrics.log_metrics
def handler(event: Event, context: LambdaContext) -> dict[str, Any]:
    """Take ``{"run_id", "table", "request", "plan"?, "failure"?}``; return ``status`` and ``line``.

    ``plan`` is the answer of begin_table, or of plan_table if begin_table did not succeed.
    ``failure`` is the error that the state machine caught.
    """
    run, table = RunOfTables.of(event, context), table_of(event)
    plan = event.get("plan") or _NOTHING_FORETOLD
    receipt = read_receipt(run.state, run.run_id, table.text, run.store)
    failure = event.get("failure")
    if failure is not None:
        receipt = _failed(event, plan["engine"], failure, receipt)
        write_receipt(receipt, run.state, run.store)
    plan = {**plan, "table": table.text, "run_id": run.run_id}
    order = run.order(plan) if plan["engine"] != "none" else None
    outcome = outcome_of(plan, order, receipt)
    write_outcome(outcome, run.state, run.store)
    # Last, so that the run that takes the table next finds what this one left.
    leases = Leases(run.store, run.state, CLOCK)
    leases.release(table, run.run_id, is_maintained=outcome.status == DONE)
    _count(outcome)
    return {"table": table.text, "status": outcome.status, "line": outcome.line}


def _failed(
    event: Event, engine: str, failure: dict[str, Any], receipt: MaintenanceReceipt | None
) -> MaintenanceReceipt:
    """Return the receipt with the error that was caught, unless the engine recorded its own."""
    found = receipt or MaintenanceReceipt(
        table=event["table"], run_id=event["run_id"], engine=engine
    )
    if found.is_sound:
        found.error = str(failure.get("Error", "Unknown"))
        found.cause = failure_text({"Cause": failure.get("Cause")})
    found.status = "failed"
    return found


def _count(outcome: Outcome) -> None:
    for name, unit, attribute in _FIGURES:
        metrics.add_metric(name=name, unit=unit, value=getattr(outcome, attribute))
    backlog = max(0, outcome.foretold.files - outcome.files)
    table_metric(outcome.table, "TableBacklog", backlog)
    table_metric(outcome.table, "TableSeconds", outcome.seconds)
    metrics.add_metric(name="MaintenanceDollars", unit=MetricUnit.NoUnit, value=outcome.dollars)
    failed = outcome.status == "failed"
    metrics.add_metric(name="FailedTables", unit=MetricUnit.Count, value=failed)
    log = logger.error if failed else logger.info
    log("maintained", table=outcome.table, status=outcome.status, line=outcome.line)
