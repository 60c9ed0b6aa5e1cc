"""Lambda: compact one partition, or a batch of them, until the invocation's time runs out."""

from __future__ import annotations

import os
from typing import Any

import msgspec
from aws_lambda_powertools.metrics import MetricUnit

from compactor.clock import SystemClock
from compactor.discovery.work_list import partition_from
from compactor.invocation import Event, LambdaContext, logger, metrics
from compactor.log.identity import StateIdentity
from compactor.partition.batches import Batch, State
from compactor.partition.events import event_listing
from compactor.partition.inputs import Paid, PartitionRun
from compactor.partition.receipts import counts_from
from compactor.partition.run import compact_partition
from compactor.settings.settings import Settings
from compactor_handlers.runtime import (
    WorkingTime,
    add_marked_metrics,
    add_partition_metrics,
    trusted_store,
)

# Memory of the function, by Lambda's environment variable; 0 outside of Lambda.
_MEMORY_GB = int(os.environ.get("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "0")) / 1024


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: Event, context: LambdaContext) -> dict[str, Any]:
    """Take ``{"batch": {"BatchInput", "Items": [partition, …], …}, "attempt"}``; return the batch.

    ``BatchInput`` has ``run_id`` and ``settings``. A single partition is also accepted, as
    ``{"run_id", "settings", "partition", "counts"?}``, and returned in the same form. ``status``
    is ``more`` when time ran out between two groups, or when some partitions failed and others
    did not: the state machine then calls again with the returned document. ``attempt`` counts
    the state machine's retries of one call.
    """
    if "batch" not in event:
        return _Invocation(context).compact(event)
    given = Batch.from_state(event["batch"])
    invocation = _Invocation(context, len(given.left))
    deadline = invocation.deadline(given.left[0])
    batch = given.worked_off(invocation.compact, deadline, event["attempt"])
    for one in batch.failed:
        error = f"{type(one.error).__name__}: {one.error}"
        logger.warning("left for the next call", path=one.path, error=error)
    return batch.to_state()


class _Invocation:
    """State shared by the partitions of one call."""

    def __init__(self, context: LambdaContext, partitions: int = 1) -> None:
        self._context = context
        self._share = 1 / partitions
        self._deadline: WorkingTime | None = None
        self._identity: StateIdentity | None = None

    def deadline(self, event: State) -> WorkingTime:
        """Return the deadline of the call, which starts with the first request for it."""
        if self._deadline is None:
            self._deadline = WorkingTime(self._context, Settings.from_input(event["settings"]))
        return self._deadline

    def compact(self, event: State) -> dict[str, Any]:
        """Compact one partition, and return its part of the answer."""
        logger.set_correlation_id(event["run_id"])
        settings = Settings.from_input(event["settings"])
        store, clock = trusted_store(settings, self._context), SystemClock()
        self._identity = self._identity or StateIdentity(settings, store)
        run = PartitionRun(
            partition=partition_from(event["partition"]),
            settings=settings,
            store=store,
            listing=event_listing(settings, clock.now()),
            clock=clock,
            deadline=self.deadline(event),
            run_id=event["run_id"],
            identity=self._identity,
            paid=Paid(_MEMORY_GB, self._share),
        )
        receipt = compact_partition(run, counts_from(event.get("counts")))
        add_partition_metrics(receipt.counts, counts_from(event.get("counts")))
        if run.listing is not None:
            add_marked_metrics(run.listing.marked)
        if receipt.oversized:
            metrics.add_metric(name="OversizedPartitions", unit=MetricUnit.Count, value=1)
            logger.info("left to Spark", path=receipt.path)
        logger.info("compacted", path=receipt.path, status=receipt.status)
        return {
            "run_id": event["run_id"],
            "settings": event["settings"],
            "partition": event["partition"],
            "status": receipt.status,
            "oversized": receipt.oversized,
            "counts": msgspec.to_builtins(receipt.counts),
        }
