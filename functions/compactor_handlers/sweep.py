"""Lambda, every few minutes: start what is due, and tell what waits."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.metrics import MetricUnit, single_metric

from compactor.clock import SystemClock
from compactor.registry.starting import Looked
from compactor.registry.streams import Stream
from compactor_handlers.events import Office, office
from compactor_handlers.runtime import (
    SERVICE,
    Event,
    LambdaContext,
    logger,
    metrics,
    traced,
)


@logger.inject_lambda_context
@traced
@metrics.log_metrics
def handler(event: Event, context: LambdaContext) -> dict[str, Any]:
    """Take anything; return what waits in each stream, and what was started.

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
            swept.append(_swept(stream, here, now))
        except Exception as error:
            logger.exception("not swept", stream=stream.name)
            failed.append(error)
    if failed:
        raise failed[0]
    return {"streams": swept}


def _swept(stream: Stream, here: Office, now: float) -> dict[str, Any]:
    looked = here.start_due(stream, now)
    waiting = looked.waiting
    oldest = round(waiting.oldest_seconds(now), 3)
    for name, unit, value in (
        ("PendingObjects", MetricUnit.Count, waiting.objects),
        ("PendingBytes", MetricUnit.Bytes, waiting.bytes),
        ("OldestPendingSeconds", MetricUnit.Seconds, oldest),
    ):
        with single_metric(name, unit, value, namespace=metrics.namespace) as one:
            one.add_dimension("service", SERVICE)
            one.add_dimension("stream", stream.name)
    return _told(stream, looked, oldest)


def _told(stream: Stream, looked: Looked, oldest: float) -> dict[str, Any]:
    return {
        "stream": stream.name,
        "pending_objects": looked.waiting.objects,
        "pending_bytes": looked.waiting.bytes,
        "oldest_seconds": oldest,
        "started": looked.started.arn if looked.started else None,
        "busy": looked.busy,
    }
