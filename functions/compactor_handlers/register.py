"""Lambda: register the objects that S3 events name."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.metrics import MetricUnit

from compactor.clock import SystemClock
from compactor.invocation import Event, LambdaContext, logger, metrics
from compactor.registry.events import bodies
from compactor.registry.registering import Registration, register
from compactor_handlers.events import office


@logger.inject_lambda_context
@metrics.log_metrics(capture_cold_start_metric=True)
def handler(event: Event, context: LambdaContext) -> dict[str, Any]:
    """Take a batch of SQS messages; return those that SQS shall deliver again.

    Raises:
        InvalidInput: the environment is invalid, or access to the table is denied. SQS then
            delivers the whole batch again.
    """
    now = SystemClock().now()
    here = office(now)
    done = register(bodies(event), here.streams, here.registry, now)
    _report(done)
    return {"batchItemFailures": [{"itemIdentifier": one} for one in done.failed]}


def _report(done: Registration) -> None:
    for name, value in (
        ("EventsRegistered", done.new),
        ("EventsKnown", done.known),
        ("EventsWithdrawn", done.withdrawn),
        ("EventsIgnored", done.ignored),
        ("MessagesRefused", done.refused),
    ):
        metrics.add_metric(name=name, unit=MetricUnit.Count, value=value)
    for message, reason in list(done.failed.items())[:10]:
        logger.warning("comes again", message_id=message, reason=reason)
    logger.info("registered", new=done.new, known=done.known, failed=len(done.failed))
