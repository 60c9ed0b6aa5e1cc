"""Lambda: find the partitions of a run, and write its work list."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from aws_lambda_powertools.metrics import MetricUnit

from compactor.catalogs.opening import open_catalog
from compactor.clock import SystemClock
from compactor.discovery.work_list import ITEMS_NAME, OVERSIZED_PREFIX
from compactor.errors import InvalidInput
from compactor.invocation import Event, LambdaContext, logger, metrics
from compactor.money.estimate import batch_partitions
from compactor.orchestration.discovery_step import begin
from compactor.settings.settings import Settings
from compactor.sinks.table_publisher import check_table
from compactor_handlers.runtime import WorkingTime, store_for

# Default of spark_engine in this deployment.
SPARK_HERE = "COMPACTOR_SPARK"
# What this deployment has states and functions for, as JSON; without it, everything.
PARTS_HERE = "COMPACTOR_HERE"


def _with_spark_here(given: object) -> object:
    if not isinstance(given, Mapping) or SPARK_HERE not in os.environ:
        return given
    return {"spark_engine": os.environ[SPARK_HERE], **given}


def _require_parts(settings: Settings) -> None:
    """Refuse a run that needs what this deployment was made without.

    Raises:
        InvalidInput: names the field.
    """
    if PARTS_HERE not in os.environ:
        return
    parts = json.loads(os.environ[PARTS_HERE])
    for name, without, value in (
        ("delete_after", None, settings.delete_after),
        ("table", None, settings.table),
    ):
        if value != without and name not in parts:
            accepted = f"a deployment whose [job] sets {name}; this one was made without"
            raise InvalidInput(name, str(value), accepted)


@logger.inject_lambda_context(correlation_id_path="run_id")
@metrics.log_metrics(capture_cold_start_metric=True)
def handler(event: Event, context: LambdaContext) -> dict[str, Any]:
    """Take ``{"input", "run_id", "started_at"}``; return the location of the work list.

    Where the input names no ``spark_engine``, the environment variable COMPACTOR_SPARK does, so
    the input need not repeat how the state machine was deployed.

    Raises:
        InvalidInput: the run's input is invalid, its table cannot hold the output that would be
            compacted for it, or the source has more prefixes than one call can list; the state
            machine ends.
        IntegrityError: the table contradicts its log.
    """
    settings = Settings.from_input(_with_spark_here(event["input"]))
    _require_parts(settings)
    run_id = event["run_id"]
    store = store_for(settings, context)
    deadline = WorkingTime(context, settings)
    if settings.table is not None:
        check_table(settings, store, open_catalog(settings, store))
    begun = begin(settings, run_id, store, SystemClock().now(), deadline=deadline)
    partitions = len(begun.found.partitions)
    metrics.add_metric(name="WorkItems", unit=MetricUnit.Count, value=partitions)
    logger.info("discovered", partitions=partitions)
    bucket, prefix = settings.layout.run(run_id)
    return {
        "run_id": run_id,
        "started_at": event["started_at"],
        "settings": settings.to_dict(),
        "items": {"bucket": bucket, "key": prefix + ITEMS_NAME},
        "item_count": partitions,
        "oversized": {"bucket": bucket, "prefix": prefix + OVERSIZED_PREFIX},
        "run_uri": f"s3://{bucket}/{prefix}",
        "max_concurrency": settings.max_concurrency,
        "batch_partitions": batch_partitions(partitions, settings.max_concurrency),
        "results": {"bucket": bucket, "prefix": f"{prefix}results"},
        "lags": begun.lags,
    }
