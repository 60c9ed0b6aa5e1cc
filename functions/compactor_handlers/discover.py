"""Lambda: find the partitions of a run and write the list of work items."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from aws_lambda_powertools.metrics import MetricUnit

from compactor.clock import SystemClock
from compactor.discovery.fleet import Fleet, processors_of
from compactor.settings.settings import Settings
from compactor.stores.account import concurrency_of_account
from compactor.whole.begin import begin
from compactor_handlers.runtime import (
    Event,
    LambdaContext,
    logger,
    metrics,
    store_for,
    traced,
)

# Which Spark there is: a JSON object of the fields below.
SPARK_HERE = "COMPACTOR_SPARK"
_SPARK_FIELDS = {"spark_engine", "emr_cluster_id"}
# What the workers are: a JSON object with memory_mb, that of the compaction function, and reserved,
# true when that has its concurrency for itself.
WORKERS_HERE = "COMPACTOR_WORKERS"


def _with_spark_here(given: object) -> object:
    if not isinstance(given, Mapping) or _SPARK_FIELDS & given.keys():
        return given
    return {**json.loads(os.environ.get(SPARK_HERE, "{}")), **given}


def _fleet() -> Fleet:
    workers = json.loads(os.environ.get(WORKERS_HERE, "{}"))
    if not workers:
        return Fleet()
    at_once = None if workers["reserved"] else concurrency_of_account()
    return Fleet(processors_of(workers["memory_mb"]), at_once)


@logger.inject_lambda_context(correlation_id_path="run_id")
@traced
@metrics.log_metrics(capture_cold_start_metric=True)
def handler(event: Event, context: LambdaContext) -> dict[str, Any]:
    """Take ``{"input", "run_id", "started_at"}``; return where the work lists lie.

    A person who starts the deployed state machine need not know which Spark it was deployed
    with: the environment variable COMPACTOR_SPARK says so, unless the input does.

    Raises:
        InvalidInput: the run's input is at fault; the state machine ends at once.
    """
    settings = Settings.from_input(_with_spark_here(event["input"]))
    store = store_for(settings, context)
    fleet = _fleet()
    begun = begin(settings, event["run_id"], store, SystemClock().now(), fleet)
    found, lists = begun.found, begun.lists
    for name, items in (("WorkItems", found.items), ("OversizedPartitions", found.oversized)):
        metrics.add_metric(name=name, unit=MetricUnit.Count, value=len(items))
    logger.info(
        "discovered",
        partitions=len(found.items),
        oversized=len(found.oversized),
        unpartitioned_objects=found.unpartitioned.objects,
    )
    return {
        "run_id": event["run_id"],
        "started_at": event["started_at"],
        "settings": settings.to_dict(),
        "items": {"bucket": lists.bucket, "key": lists.items_key},
        "item_count": len(found.items),
        "oversized": {"bucket": lists.bucket, "key": lists.oversized_key},
        "oversized_count": len(found.oversized),
        "run_uri": lists.run_uri,
        "max_concurrency": fleet.concurrency(settings),
        "results": {
            "bucket": lists.bucket,
            "prefix": lists.items_key.rsplit("/", 1)[0] + "/results",
        },
        "work": bool(found.items or found.oversized),
    }
