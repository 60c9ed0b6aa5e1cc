"""Lambda: list the partitions with commits past retention; drop replaced checkpoints."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.metrics import MetricUnit

from compactor.cleaning.clean_up_list import (
    drop_replaced_checkpoints,
    each_due,
    write_due,
)
from compactor.clock import SystemClock
from compactor.errors import CompactorError
from compactor.invocation import Event, LambdaContext, logger, metrics
from compactor.settings.settings import Settings
from compactor_handlers.runtime import WorkingTime, store_for, trusted_store


@logger.inject_lambda_context(correlation_id_path="run_id")
@metrics.log_metrics
def handler(event: Event, context: LambdaContext) -> dict[str, Any]:
    """Take ``{"run_id", "settings"}``; return them with ``clean_up``, the location of the list.

    The list is a JSON array of ``{"path", "entries"}``; ``clean_up.partitions`` is its length.
    """
    settings = Settings.from_input(event["settings"])
    store = store_for(settings, context)
    now = SystemClock().now()
    written = write_due(each_due(settings, store, now), settings, event["run_id"], store)
    metrics.add_metric(name="DuePartitions", unit=MetricUnit.Count, value=written.partitions)
    logger.info("planned clean-up", partitions=written.partitions)
    if settings.deletes:
        store = trusted_store(settings, context)
        try:
            dropped = drop_replaced_checkpoints(
                settings, store, now, WorkingTime(context, settings)
            )
            logger.info("dropped replaced checkpoints", objects=dropped)
        except CompactorError:
            logger.exception("replaced checkpoints stay until the next run")
    return {
        "run_id": event["run_id"],
        "settings": event["settings"],
        "clean_up": written._asdict(),
    }
