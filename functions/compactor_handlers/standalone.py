"""Lambda: a whole run in one invocation, in place of the workflow. For small sources.

discover -> each partition: compact -> each partition with old commits: clean up -> report

Receipts record what is done, so a run resumes where its previous invocation stopped: when Lambda
retries a failed one (under the same request id), or when the caller calls again with the answer
``more``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
from aws_lambda_powertools.metrics import MetricUnit

from compactor.clock import SystemClock, instant
from compactor.discovery.work_list import Discovery
from compactor.errors import InvalidInput, PartitionsFailed
from compactor.invocation import Event, LambdaDeadline, logger, metrics
from compactor.orchestration.in_process import ThisProcess
from compactor.orchestration.messages import Answer, Desk, Order, Task
from compactor.orchestration.run import PARTITION_SECONDS, Given, run_whole
from compactor.orchestration.workers import Observer
from compactor.partition.receipts import Receipt
from compactor.ports import ObjectStore
from compactor.report.report import RunReport
from compactor.settings.settings import Settings
from compactor_handlers.runtime import (
    add_partition_metrics,
    report_clean_up,
    report_readers,
    store_for,
)

# Reserved for the report, which is written last.
_REPORT_SECONDS = 20.0
_LEAST_SECONDS = 2 * (_REPORT_SECONDS + PARTITION_SECONDS)
_SHOWN_LEFT = 1_000


class _Deadline(LambdaDeadline):
    """The end of the invocation, less the time reserved for the report."""

    def remaining_seconds(self) -> float:
        return super().remaining_seconds() - _REPORT_SECONDS


@dataclass(frozen=True, slots=True)
class _Call:
    """The run of one invocation, and its settings."""

    run_id: str
    started_at: str
    settings: Settings


@logger.inject_lambda_context(clear_state=True)
@metrics.log_metrics(capture_cold_start_metric=True)
def handler(event: Event, context: Any) -> dict[str, Any]:
    """Take a run's input, or an answer with status ``more``; return the state of the run.

    ``status`` is ``succeeded``, or ``more`` when time ran out. ``left`` then names the partitions
    that need another call: with this answer, or with the input, which begins a new run.

    Raises:
        InvalidInput: the input is invalid, or the function's time-out is too short.
        PartitionsFailed: some partitions failed; all others are done, and the report is written.
    """
    call = _decode(event, context)
    ended = run_whole(_given(call, context))
    for name, paths in (("PartitionsLeft", ended.left), ("OversizedPartitions", ended.oversized)):
        metrics.add_metric(name=name, unit=MetricUnit.Count, value=len(paths))
    answer = {
        "run_id": call.run_id,
        "started_at": call.started_at,
        "settings": call.settings.to_dict(),
        # Lambda rejects answers over 6 MB, so long lists are cut.
        "left": ended.left[:_SHOWN_LEFT],
        "left_count": len(ended.left),
        "failed": ended.failed[:_SHOWN_LEFT],
        "refused": [_refusal(one) for one in ended.oversized[:_SHOWN_LEFT]],
    }
    if ended.report is None:
        logger.warning("time ran out", partitions_left=len(ended.left))
        return {**answer, "status": "more"}
    return {**answer, **_reported(ended.report, call.settings)}


def _decode(event: Any, context: Any) -> _Call:
    seconds = LambdaDeadline(context).remaining_seconds()
    if seconds < _LEAST_SECONDS:
        accepted = f"a time-out of the function of at least {_LEAST_SECONDS:.0f} seconds"
        raise InvalidInput("timeout", round(seconds), accepted)
    goes_on = isinstance(event, dict) and event.get("status") == "more" and "settings" in event
    settings = _settings(event["settings"] if goes_on else event)
    now = instant(SystemClock().now())
    run_id = str(event["run_id"] if goes_on else context.aws_request_id)
    logger.append_keys(run_id=run_id)
    return _Call(run_id, str(event["started_at"] if goes_on else now), settings)


def _settings(given: object) -> Settings:
    """Return the settings of the input. Standalone mode has no Spark and publishes to no table.

    Raises:
        InvalidInput: the input is invalid, or needs Spark or a table.
    """
    if isinstance(given, dict):
        given = {"spark_engine": "none", **given}
    settings = Settings.from_input(given)
    if settings.spark_engine != "none":
        accepted = '"none" in standalone mode; deploy the workflow for Spark'
        raise InvalidInput("spark_engine", settings.spark_engine, accepted)
    if settings.table is not None:
        accepted = "null in standalone mode; deploy the workflow, which publishes to tables"
        raise InvalidInput("table", settings.table, accepted)
    return settings


def _given(call: _Call, context: Any) -> Given:
    deadline, clock = _Deadline(context), SystemClock()

    def workers(store: ObjectStore) -> ThisProcess:
        return ThisProcess(Desk(call.settings, store, clock, call.run_id), deadline, _log_failure)

    return Given(
        settings=call.settings,
        run_id=call.run_id,
        started_at=call.started_at,
        store=store_for(call.settings, context),
        clock=clock,
        deadline=deadline,
        workers=workers,
        observer=_Teller(),
        # The next call is the retry.
        retries={},
    )


class _Teller(Observer):
    """Logs the progress of a run, and adds its metrics."""

    def discovered(self, found: Discovery) -> None:
        count = len(found.partitions)
        metrics.add_metric(name="WorkItems", unit=MetricUnit.Count, value=count)
        logger.info("discovered", partitions=count)

    def answered(self, order: Order, answer: Answer) -> None:
        if answer.compacted is not None:
            receipt = answer.compacted
            add_partition_metrics(receipt.counts, order.before)
            logger.info("compacted", path=receipt.path, status=receipt.status)
            if receipt.oversized:
                logger.error(_refusal(receipt))
        if answer.cleaned is not None and answer.cleaned_before is not None:
            report_clean_up(answer.cleaned, answer.cleaned_before)

    def planned_clean_up(self, partitions: int) -> None:
        metrics.add_metric(name="DuePartitions", unit=MetricUnit.Count, value=partitions)

    def clean_up_not_planned(self, error: Exception) -> None:
        logger.exception("clean-up was not planned")


def _log_failure(order: Order, error: Exception) -> None:
    logger.exception("failed" if order.task is Task.COMPACT else "clean-up failed", path=order.path)


def _refusal(receipt: Receipt) -> str:
    return (
        f"refused: {receipt.path or '(root)'} has more than one worker takes in a run, of which"
        f" {receipt.counts.objects_in:,} objects are compacted; set engine to worker, which takes"
        " several calls, divide it by date_format or depth, or deploy the workflow with Spark"
    )


def _reported(result: RunReport, settings: Settings) -> dict[str, Any]:
    """Return the verdict of a run that has ended.

    Raises:
        PartitionsFailed: some partitions failed.
    """
    metrics.add_metric(name="RunsFailed", unit=MetricUnit.Count, value=result.status == "failed")
    metrics.add_metric(name="Partitions", unit=MetricUnit.Count, value=result.partition_count)
    report_readers(result.readers)
    logger.info("reported", status=result.status, partitions=result.partition_count)
    if result.status == "failed":
        raise PartitionsFailed(result.cause)
    bucket, key = settings.layout.run(result.run_id, "report.json")
    return {
        "status": result.status,
        "report": {"bucket": bucket, "key": key},
        "totals": msgspec.to_builtins(result.totals),
    }
