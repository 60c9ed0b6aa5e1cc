"""Lambda: find the partitions of a run, and write the lists of work items."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from aws_lambda_powertools.metrics import MetricUnit

from compactor.catalogs.opening import open_catalog
from compactor.clock import SystemClock
from compactor.discovery.fleet import Fleet, processors_of
from compactor.discovery.resume import Part
from compactor.invocation import (
    Event,
    LambdaContext,
    logger,
    metrics,
    traced,
)
from compactor.orchestration.discovery_step import Begun, begin
from compactor.s3.store import S3Store
from compactor.settings.settings import Settings
from compactor.sinks.table_publisher import check_table
from compactor_handlers.runtime import WorkingTime, store_for

# Default of spark_engine in this deployment.
SPARK_HERE = "COMPACTOR_SPARK"
# Memory of the compaction function, in MB.
WORKER_MB_HERE = "COMPACTOR_WORKER_MB"


def _with_spark_here(given: object) -> object:
    if not isinstance(given, Mapping) or SPARK_HERE not in os.environ:
        return given
    return {"spark_engine": os.environ[SPARK_HERE], **given}


@logger.inject_lambda_context(correlation_id_path="run_id")
@traced
@metrics.log_metrics(capture_cold_start_metric=True)
def handler(event: Event, context: LambdaContext) -> dict[str, Any]:
    """Take ``{"input", "run_id", "started_at"}``; return the location of the work lists.

    ``status`` is ``done`` when the lists are written. It is ``more`` when time ran out: what this
    call found is stored, and the state machine calls again.

    Where the input names no ``spark_engine``, the environment variable COMPACTOR_SPARK does, so
    the input need not repeat how the state machine was deployed.

    Raises:
        InvalidInput: the run's input is invalid, its table cannot hold the output that would be
            compacted for it; the state machine ends.
        IntegrityError: the table contradicts its log.
    """
    settings = Settings.from_input(_with_spark_here(event["input"]))
    store = store_for(settings, context)
    memory_mb = os.environ.get(WORKER_MB_HERE)
    fleet = Fleet(processors_of(int(memory_mb))) if memory_mb else Fleet()
    now = SystemClock().now()
    deadline = WorkingTime(context, settings)
    if settings.table is not None:
        check_table(settings, store, open_catalog(settings, store))
    begun = begin(settings, event["run_id"], store, now, fleet, deadline=deadline)
    if isinstance(begun, Part):
        logger.info("discovering", partitions=begun.partitions, counted=begun.counted)
        return {"status": "more", "partitions": begun.partitions, "counted": begun.counted}
    return _begun(begun, settings, fleet, event)


def _begun(begun: Begun[S3Store], settings: Settings, fleet: Fleet, event: Event) -> dict[str, Any]:
    """Return the answer for a run whose work lists are written."""
    lists = begun.lists
    resting = begun.found.resting.partitions
    counts = {
        "WorkItems": lists.item_count,
        "OversizedPartitions": lists.oversized_count,
        "RestingPartitions": resting,
    }
    for name, count in counts.items():
        metrics.add_metric(name=name, unit=MetricUnit.Count, value=count)
    logger.info(
        "discovered",
        partitions=lists.item_count,
        oversized=lists.oversized_count,
        resting=resting,
        unpartitioned_objects=begun.found.unpartitioned.objects,
    )
    return {
        "status": "done",
        "run_id": event["run_id"],
        "started_at": event["started_at"],
        "settings": settings.to_dict(),
        "items": {"bucket": lists.bucket, "key": lists.items_key},
        "item_count": lists.item_count,
        "oversized": {"bucket": lists.bucket, "key": lists.oversized_key},
        "oversized_count": lists.oversized_count,
        "run_uri": lists.run_uri,
        "max_concurrency": settings.max_concurrency,
        "batch_partitions": fleet.batch_partitions(lists.item_count, lists.largest, settings),
        "results": {
            "bucket": lists.bucket,
            "prefix": lists.items_key.rsplit("/", 1)[0] + "/results",
        },
        "spark": begun.spark,
        "work": bool(lists.item_count or begun.spark),
    }
