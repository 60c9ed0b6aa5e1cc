"""Lambda, every few minutes: start the runs that are due, and report what is pending."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import cache
from typing import Any

from aws_lambda_powertools.metrics import MetricUnit, single_metric

from compactor.aws.executions import StateMachine
from compactor.clock import SystemClock
from compactor.invocation import (
    SERVICE,
    Event,
    LambdaContext,
    LambdaDeadline,
    logger,
    metrics,
)
from compactor.orchestration.reconcile import Reconciliation
from compactor.orchestration.reconcile_rounds import go_on
from compactor.registry.starting import Looked, start_due
from compactor.registry.streams import Stream
from compactor_handlers.events import Office, environment, office
from compactor_handlers.runtime import store_for

# Environment variable with the ARN of the compaction workflow.
MACHINE = "STATE_MACHINE_ARN"
# Reserved for the look at the stream that follows reconciliation.
_RESERVE_SECONDS = 60.0
# Margin after the invocation's end, so that no other call resumes a round still in progress.
_LATER_SECONDS = 60.0


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: Event, context: LambdaContext) -> dict[str, Any]:
    """Take ``{"reconcile"?}``; return what is pending in each stream, and what was started.

    With ``reconcile`` true, a round of reconciliation begins: objects that no event named are
    registered, until time runs out. Later calls resume the round until the whole source is done.

    A stream that fails does not stop the others; the first error is raised after all of them.

    Raises:
        InvalidInput: the environment is invalid, or access to something is denied.
        TransientStoreError: the table did not answer for some stream.
    """
    now = SystemClock().now()
    here = office(now)
    begin = bool(event.get("reconcile"))
    failed: list[Exception] = []
    swept: dict[str, dict[str, Any]] = {}

    def of_each(work: Callable[[Stream], dict[str, Any]]) -> None:
        for stream in here.streams:
            try:
                swept.setdefault(stream.name, {"reconciled": None}).update(work(stream))
            except Exception as error:
                logger.exception("not swept", stream=stream.name)
                failed.append(error)

    of_each(lambda stream: _swept(stream, here, now))
    # After every stream's due runs are started, because it may take the rest of the time.
    of_each(lambda stream: _reconciled(stream, here, context, begin=begin))
    if failed:
        raise failed[0]
    return {"streams": list(swept.values())}


def _reconciled(
    stream: Stream, here: Office, context: LambdaContext, *, begin: bool
) -> dict[str, Any]:
    """Resume the stream's reconciliation; return what was registered, and what is pending now."""
    deadline = LambdaDeadline(context)
    now = SystemClock().now()
    work = Reconciliation(
        stream.settings,
        store_for(stream.settings, context),
        now,
        stop=lambda: deadline.remaining_seconds() < _RESERVE_SECONDS,
    )
    busy_seconds = deadline.remaining_seconds() + _LATER_SECONDS
    found = go_on(work, busy_seconds, begin=begin)
    if found is None:
        return {}
    _count(stream, "ReconciledObjects", MetricUnit.Count, found.registered)
    logger.info("reconciled", stream=stream.name, **asdict(found))
    waits = _swept(stream, here, SystemClock().now()) if found.registered else {}
    return {**waits, "reconciled": asdict(found)}


def _swept(stream: Stream, here: Office, now: float) -> dict[str, Any]:
    looked = _started(stream, here, now)
    waiting = looked.waiting
    oldest = round(waiting.oldest_seconds(now), 3)
    for name, unit, value in (
        ("PendingObjects", MetricUnit.Count, waiting.objects),
        ("PendingBytes", MetricUnit.Bytes, waiting.bytes),
        ("OldestPendingSeconds", MetricUnit.Seconds, oldest),
    ):
        _count(stream, name, unit, value)
    return _summary(stream, looked, oldest)


def _started(stream: Stream, here: Office, now: float) -> Looked:
    """Start a run of the stream if one is due, and log it."""
    machine = state_machine(environment(MACHINE))
    looked = start_due(stream, here.registry, machine, here.born[stream.name], now)
    started = looked.started is not None
    metrics.add_metric(name="ExecutionsStarted", unit=MetricUnit.Count, value=int(started))
    if looked.started is not None:
        logger.info("started", stream=stream.name, execution=looked.started.arn)
    return looked


@cache
def state_machine(arn: str) -> StateMachine:
    """Return the workflow's client; cached with its connections."""
    return StateMachine(arn)


def _count(stream: Stream, name: str, unit: MetricUnit, value: float) -> None:
    with single_metric(name, unit, value, namespace=metrics.namespace) as one:
        one.add_dimension("service", SERVICE)
        one.add_dimension("stream", stream.name)


def _summary(stream: Stream, looked: Looked, oldest: float) -> dict[str, Any]:
    return {
        "stream": stream.name,
        "pending_objects": looked.waiting.objects,
        "pending_bytes": looked.waiting.bytes,
        "oldest_seconds": oldest,
        "started": looked.started.arn if looked.started else None,
        "busy": looked.busy,
    }
