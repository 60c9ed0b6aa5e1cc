"""Lambda: one account of the whole run."""

from __future__ import annotations

from typing import Any

import msgspec
from aws_lambda_powertools.metrics import MetricUnit

from compactor import layout
from compactor.report import RunIdentity, report
from compactor.settings import Settings
from handlers.runtime import Event, LambdaContext, logger, metrics, store_for, traced


@logger.inject_lambda_context
@traced
@metrics.log_metrics
def handler(event: Event, context: LambdaContext) -> dict[str, Any]:
    """Take ``{"run_id", "started_at", "settings", "failure"?}``; return the verdict."""
    settings = Settings.from_input(event["settings"])
    failure = event.get("failure") or {}
    text = ": ".join(str(failure[name]) for name in ("Error", "Cause") if failure.get(name))
    identity = RunIdentity(event["run_id"], event["started_at"], text)
    result = report(identity, settings, store_for(settings))
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
        "cause": result.cause,
    }
