"""Lambda: one account of the whole run."""

from __future__ import annotations

from typing import Any

import msgspec
from aws_lambda_powertools.metrics import MetricUnit

from compactor import layout
from compactor.report.report import RunIdentity, failure_text, report
from compactor.settings.settings import Settings
from compactor_handlers.runtime import Event, LambdaContext, logger, metrics, store_for, traced


@logger.inject_lambda_context(correlation_id_path="run_id")
@traced
@metrics.log_metrics
def handler(event: Event, context: LambdaContext) -> dict[str, Any]:
    """Tell how a run went.

    Takes ``{"run_id", "started_at", "settings", "failure"?, "spark_failure"?,
    "table_failure"?, "clean_up_failure"?}``; returns the verdict.
    """
    settings = Settings.from_input(event["settings"])
    identity = RunIdentity(
        event["run_id"],
        event["started_at"],
        failure_text(event.get("failure")),
        failure_text(event.get("spark_failure")),
        failure_text(event.get("clean_up_failure")),
        failure_text(event.get("table_failure")),
    )
    result = report(identity, settings, store_for(settings, context))
    metrics.add_metric(name="RunsFailed", unit=MetricUnit.Count, value=result.status == "failed")
    metrics.add_metric(name="Partitions", unit=MetricUnit.Count, value=len(result.partitions))
    logger.info("reported", status=result.status, partitions=len(result.partitions))
    bucket, key = layout.run_key(settings, event["run_id"], "report.json")
    return {
        "run_id": event["run_id"],
        "status": result.status,
        "report": {"bucket": bucket, "key": key},
        "totals": msgspec.to_builtins(result.totals),
        "failed_partitions": len(result.failed),
        "oversized_partitions": len(result.oversized),
        "spark_partitions": len(result.spark),
        "table": msgspec.to_builtins(result.table),
        "clean_up": result.clean_up.totals if result.clean_up else None,
        "cause": result.cause,
    }
