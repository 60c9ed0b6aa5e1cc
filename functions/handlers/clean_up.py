"""Lambda: delete the sources of one partition whose commits are past retention."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.metrics import MetricUnit

from compactor.cleanup import clean_up
from compactor.clock import SystemClock
from compactor.commit import CommitLog
from compactor.settings import Settings
from compactor.work import WorkItem
from handlers.runtime import (
    Event,
    LambdaContext,
    logger,
    metrics,
    store_for,
    traced,
)


@logger.inject_lambda_context(correlation_id_path="run_id")
@traced
@metrics.log_metrics
def handler(event: Event, context: LambdaContext) -> dict[str, Any]:
    """Take what compact_partition returned; return how many sources were deleted."""
    settings = Settings.from_input(event["settings"])
    store = store_for(settings)
    partition = WorkItem.from_dict(event["partition"]).partition
    commits = CommitLog(store, settings, partition).every_commit()
    result = clean_up(commits, settings, store, SystemClock().now())
    metrics.add_metric(name="DeletedSources", unit=MetricUnit.Count, value=result.deleted)
    metrics.add_metric(name="UnsafeCommits", unit=MetricUnit.Count, value=len(result.unsafe))
    for line in result.unsafe:
        logger.error("kept the sources of a commit", reason=line)
    return {
        "run_id": event["run_id"],
        "partition": event["partition"],
        "status": "done",
        "deleted": result.deleted,
        "deleted_bytes": result.deleted_bytes,
        "refused": len(result.refused),
        "unsafe": list(result.unsafe),
    }
