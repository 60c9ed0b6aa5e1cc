"""Lambda: delete the sources of one partition's commits past retention, until time runs out."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from compactor.cleaning.clean_partition import CleanUpRun, record_clean_up
from compactor.cleaning.clean_up_list import DueWork
from compactor.cleaning.clean_up_receipts import earlier
from compactor.cleaning.due import CleanUpFacts
from compactor.clock import SystemClock
from compactor.invocation import Event, LambdaContext, logger, metrics
from compactor.settings.settings import Settings
from compactor_handlers.runtime import WorkingTime, report_clean_up, trusted_store


@lru_cache(maxsize=1)
def _facts(run_id: str, state: str) -> CleanUpFacts:
    """Return what this process has found out in one run."""
    return CleanUpFacts()


@logger.inject_lambda_context(correlation_id_path="run_id")
@metrics.log_metrics
def handler(event: Event, context: LambdaContext) -> dict[str, Any]:
    """Take ``{"run_id", "settings", "partition", "counts"?}``; return it with a status.

    ``partition`` is an element of plan_clean_up's list. ``status`` is ``more`` when time ran out
    between two commits: the state machine then calls again with the returned document. Earlier
    calls of the run are counted by their receipt, not by ``counts``, because a call that failed
    half way returned nothing.
    """
    settings = Settings.from_input(event["settings"])
    run = CleanUpRun(
        path=DueWork.from_dict(event["partition"]).path,
        settings=settings,
        store=trusted_store(settings, context),
        clock=SystemClock(),
        deadline=WorkingTime(context, settings),
        run_id=event["run_id"],
        facts=_facts(event["run_id"], settings.s3_state_uri),
    )
    before = earlier(settings, run.run_id, run.partition, run.store)
    receipt = record_clean_up(run, before)
    report_clean_up(receipt, before)
    return {
        "run_id": event["run_id"],
        "settings": event["settings"],
        "partition": event["partition"],
        "status": receipt.status,
        "counts": msgspec.to_builtins(receipt.counts),
    }
