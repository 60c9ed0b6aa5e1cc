"""Lambda: compact one partition, as far as the invocation's time allows."""

from __future__ import annotations

from typing import Any

import msgspec

from compactor.clock import SystemClock
from compactor.discovery.work import WorkItem
from compactor.registry.listing import EventListing
from compactor.runs.earlier import open_earlier
from compactor.runs.partition import PartitionRun, record_partition
from compactor.runs.receipts import counts_from
from compactor.settings.settings import Settings
from compactor_handlers.runtime import (
    Event,
    LambdaContext,
    LambdaDeadline,
    add_marked_metrics,
    add_partition_metrics,
    logger,
    metrics,
    traced,
    trusted_store,
)


@logger.inject_lambda_context(correlation_id_path="run_id")
@traced
@metrics.log_metrics
def handler(event: Event, context: LambdaContext) -> dict[str, Any]:
    """Take ``{"run_id", "settings", "partition", "counts"?}``; return it with a status.

    ``status`` is ``more`` when time ran out between two groups: the state machine then calls
    again with what is returned here.
    """
    settings = Settings.from_input(event["settings"])
    store, clock = trusted_store(settings, context), SystemClock()
    run = PartitionRun(
        partition=WorkItem.from_dict(event["partition"]).partition,
        settings=settings,
        store=store,
        listing=open_earlier(settings, event["run_id"], store, clock.now()),
        clock=clock,
        deadline=LambdaDeadline(context),
        run_id=event["run_id"],
    )
    receipt = record_partition(run, counts_from(event.get("counts")))
    add_partition_metrics(receipt.counts, counts_from(event.get("counts")))
    if isinstance(run.listing, EventListing):
        add_marked_metrics(run.listing.marked)
    logger.info("compacted", path=receipt.path, status=receipt.status)
    return {
        "run_id": event["run_id"],
        "settings": event["settings"],
        "partition": event["partition"],
        "status": receipt.status,
        "counts": msgspec.to_builtins(receipt.counts),
    }
