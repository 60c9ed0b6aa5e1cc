"""Lambda, every few minutes: start what is due, and tell what waits."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from aws_lambda_powertools.metrics import MetricUnit, single_metric

from compactor.clock import SystemClock
from compactor.registry.starting import Looked
from compactor.registry.streams import Stream
from compactor.whole.reconcile import Reconciliation, reconcile
from compactor_handlers.events import Office, office
from compactor_handlers.runtime import (
    SERVICE,
    Event,
    LambdaContext,
    LambdaDeadline,
    logger,
    metrics,
    store_for,
    traced,
)

# Kept of an invocation for the look that follows.
_RESERVE_SECONDS = 60.0


@logger.inject_lambda_context
@traced
@metrics.log_metrics
def handler(event: Event, context: LambdaContext) -> dict[str, Any]:
    """Take ``{"reconcile"?}``; return what waits in each stream, and what was started.

    With ``reconcile`` true, what no event told of is registered first, as far as time allows.

    A stream whose look fails does not keep the others from theirs.

    Raises:
        InvalidInput: the environment is at fault, or something may not be used.
        TransientStoreError: of some stream the table did not answer.
    """
    now = SystemClock().now()
    here = office(now)
    failed: list[Exception] = []
    swept = []
    for stream in here.streams:
        try:
            found = _reconciled(stream, context) if event.get("reconcile") else None
            swept.append({**_swept(stream, here, now), "reconciled": found})
        except Exception as error:
            logger.exception("not swept", stream=stream.name)
            failed.append(error)
    if failed:
        raise failed[0]
    return {"streams": swept}


def _reconciled(stream: Stream, context: LambdaContext) -> dict[str, Any]:
    deadline = LambdaDeadline(context)
    found = reconcile(
        Reconciliation(
            stream.settings,
            store_for(stream.settings, context),
            SystemClock().now(),
            stop=lambda: deadline.remaining_seconds() < _RESERVE_SECONDS,
        )
    )
    _count(stream, "ReconciledObjects", MetricUnit.Count, found.registered)
    logger.info("reconciled", stream=stream.name, **asdict(found))
    return asdict(found)


def _swept(stream: Stream, here: Office, now: float) -> dict[str, Any]:
    looked = here.start_due(stream, now)
    waiting = looked.waiting
    oldest = round(waiting.oldest_seconds(now), 3)
    for name, unit, value in (
        ("PendingObjects", MetricUnit.Count, waiting.objects),
        ("PendingBytes", MetricUnit.Bytes, waiting.bytes),
        ("OldestPendingSeconds", MetricUnit.Seconds, oldest),
    ):
        _count(stream, name, unit, value)
    return _told(stream, looked, oldest)


def _count(stream: Stream, name: str, unit: MetricUnit, value: float) -> None:
    with single_metric(name, unit, value, namespace=metrics.namespace) as one:
        one.add_dimension("service", SERVICE)
        one.add_dimension("stream", stream.name)


def _told(stream: Stream, looked: Looked, oldest: float) -> dict[str, Any]:
    return {
        "stream": stream.name,
        "pending_objects": looked.waiting.objects,
        "pending_bytes": looked.waiting.bytes,
        "oldest_seconds": oldest,
        "started": looked.started.arn if looked.started else None,
        "busy": looked.busy,
    }
