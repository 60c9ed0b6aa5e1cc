"""Lambda: write the report of a run."""

from __future__ import annotations

from typing import Any

import msgspec
from aws_lambda_powertools.metrics import MetricUnit

from compactor.clock import SystemClock
from compactor.failures import failure_text
from compactor.invocation import Event, LambdaContext, logger, metrics
from compactor.report.report import RunIdentity, report_on
from compactor.settings.settings import Settings
from compactor_handlers.runtime import WorkingTime, report_readers, store_for


@logger.inject_lambda_context(correlation_id_path="run_id")
@metrics.log_metrics
def handler(event: Event, context: LambdaContext) -> dict[str, Any]:
    """Write the run's report, and return the verdict.

    Takes ``{"run_id", "started_at", "settings", "failure"?, "spark_failure"?,
    "table_failure"?, "clean_up_failure"?, "goes_on"?}``. ``status`` is ``more`` when time ran
    out: call again with the answer.
    """
    settings = Settings.from_input(event["settings"])
    identity = RunIdentity(
        event["run_id"],
        event["started_at"],
        failure_text(event.get("failure")),
        failure_text(event.get("spark_failure")),
        failure_text(event.get("clean_up_failure")),
        failure_text(event.get("table_failure")),
        ended_at=SystemClock().now(),
    )
    result = report_on(
        identity,
        settings,
        store_for(settings, context),
        WorkingTime(context, settings),
        goes_on=event.get("goes_on", False),
    )
    if result is None:
        logger.info("reporting")
        return {**event, "goes_on": True, "status": "more"}
    metrics.add_metric(name="RunsFailed", unit=MetricUnit.Count, value=result.status == "failed")
    metrics.add_metric(name="Partitions", unit=MetricUnit.Count, value=result.partition_count)
    if result.cost is not None and result.cost.vcpu_hours:
        # CloudWatch has no unit of hours.
        metrics.add_metric(
            name="SparkVcpuHours", unit=MetricUnit.NoUnit, value=result.cost.vcpu_hours
        )
        metrics.add_metric(name="SparkGbHours", unit=MetricUnit.NoUnit, value=result.cost.gb_hours)
    report_readers(result.readers)
    logger.info("reported", status=result.status, partitions=result.partition_count)
    bucket, key = settings.layout.run(event["run_id"], "report.json")
    return {
        "run_id": event["run_id"],
        "status": result.status,
        "report": {"bucket": bucket, "key": key},
        "totals": msgspec.to_builtins(result.totals),
        "failed_partitions": result.failed_count,
        "oversized_partitions": len(result.oversized),
        "spark_partitions": len(result.spark),
        "table": msgspec.to_builtins(result.table),
        "clean_up": result.clean_up.totals if result.clean_up else None,
        "cause": result.cause,
    }
