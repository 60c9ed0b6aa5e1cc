"""Lambda: a whole run in one invocation, for small sources; takes the place of the workflow.

discover -> each partition: compact -> each partition with old commits: clean up -> report

The receipts say what is done, so a run goes on where an earlier invocation of it stopped: when
Lambda repeats a failed one (under the same request id), or when somebody calls again with the
answer ``more``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import msgspec
from aws_lambda_powertools.metrics import MetricUnit

from compactor import layout
from compactor.cleaning import receipts as clean_up_receipts
from compactor.cleaning.partition import CleanUpRun, record_clean_up
from compactor.cleaning.work import DueWork, find_due, read_due, write_due
from compactor.clock import SystemClock
from compactor.discovery.discover import Discovery, WorkItem, discover
from compactor.discovery.work import write_work
from compactor.errors import CompactorError, InvalidInput, ObjectMissing
from compactor.report.report import RunIdentity, report
from compactor.runs import receipts
from compactor.runs.partition import PartitionRun, record_partition
from compactor.runs.receipts import Counts
from compactor.settings.settings import CleanUpMode, Settings
from compactor.stores.s3 import S3Store
from compactor_handlers.runtime import (
    Event,
    LambdaDeadline,
    add_partition_metrics,
    asked_store,
    committed_in,
    logger,
    metrics,
    store_for,
    tell_clean_up,
    traced,
)

# The report is written last, and a partition that is begun should come to a committed group.
_REPORT_SECONDS, _PARTITION_SECONDS = 20.0, 60.0
_LEAST_SECONDS = 2 * (_REPORT_SECONDS + _PARTITION_SECONDS)
_SHOWN_LEFT = 1_000


class PartitionsFailed(CompactorError):
    """The run is over, and not everything is compacted: call again, it redoes what is left."""


class _Deadline(LambdaDeadline):
    """The end of the invocation, less the time that a report takes."""

    def remaining_seconds(self) -> float:
        return super().remaining_seconds() - _REPORT_SECONDS


@dataclass(slots=True)
class _Run:
    """One invocation's share of a run.

    Attributes:
        left: paths of partitions that need another invocation, to be compacted or cleaned up.
        failed: paths of partitions that failed.
        clean_up_failure: what ended clean-up before its partitions did; empty for nothing.
    """

    run_id: str
    started_at: str
    settings: Settings
    store: S3Store
    deadline: _Deadline
    left: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    clean_up_failure: str = ""


@logger.inject_lambda_context(clear_state=True)
@traced
@metrics.log_metrics(capture_cold_start_metric=True)
def handler(event: Event, context: Any) -> dict[str, Any]:
    """Take a run's input, or an answer whose status is ``more``; return how the run stands.

    ``status`` is ``succeeded``, or ``more`` when time ran out: ``left`` then names the partitions
    that need another call, with this answer or, for a run of its own, with the input again.

    Raises:
        InvalidInput: the input is at fault, or the function's time-out is too short.
        PartitionsFailed: some partitions failed; all others were done, and the report was written.
    """
    run = _begin(event, context)
    found = _discover(run)
    for item in found.items:
        _take(run, item)
    if not run.left and run.settings.clean_up is CleanUpMode.DELETE:
        _clean_up(run)
    for name, paths in (("PartitionsLeft", run.left), ("OversizedPartitions", found.oversized)):
        metrics.add_metric(name=name, unit=MetricUnit.Count, value=len(paths))
    answer = _answer(run, found.oversized)
    if run.left:
        logger.warning("time ran out", partitions_left=len(run.left), of=len(found.items))
        return {**answer, "status": "more"}
    return {**answer, **_report(run)}


def _begin(event: Any, context: Any) -> _Run:
    seconds = LambdaDeadline(context).remaining_seconds()
    if seconds < _LEAST_SECONDS:
        accepted = f"a time-out of the function of at least {_LEAST_SECONDS:.0f} seconds"
        raise InvalidInput("timeout", round(seconds), accepted)
    goes_on = isinstance(event, dict) and event.get("status") == "more" and "settings" in event
    settings = _settings(event["settings"] if goes_on else event)
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    run_id = str(event["run_id"] if goes_on else context.aws_request_id)
    started_at = str(event["started_at"] if goes_on else now)
    logger.append_keys(run_id=run_id)
    return _Run(run_id, started_at, settings, store_for(settings, context), _Deadline(context))


def _settings(given: object) -> Settings:
    """What is too large for one function has nowhere else to go from here: no Spark.

    Raises:
        InvalidInput: the input is at fault, or asks for Spark.
    """
    settings = Settings.from_input(given)
    if settings.columnar:
        name = "format" if settings.format == "parquet" else "output_format"
        accepted = "no Parquet in standalone mode; deploy the workflow, whose Spark step writes it"
        raise InvalidInput(name, "parquet", accepted)
    if isinstance(given, dict):
        given = {"spark_engine": "none", **given}
    settings = Settings.from_input(given)
    if settings.spark_engine != "none":
        accepted = '"none" in standalone mode; deploy the workflow for Spark'
        raise InvalidInput("spark_engine", settings.spark_engine, accepted)
    return settings


def _discover(run: _Run) -> Discovery:
    committed = committed_in(run.settings, run.store)
    found = discover(run.settings, run.store, SystemClock().now(), committed=committed)
    run.store, warnings = asked_store(run.settings, run.store)
    write_work(found, run.settings, run.run_id, run.store, warnings)
    metrics.add_metric(name="WorkItems", unit=MetricUnit.Count, value=len(found.items))
    logger.info("discovered", partitions=len(found.items), oversized=len(found.oversized))
    for item in found.oversized:
        logger.error(_refusal(item))
    return found


def _refusal(item: WorkItem) -> str:
    return (
        f"refused: {item.path or '(root)'} has at least {item.objects:,} objects of"
        f" {item.bytes:,} bytes, too much for one function; deploy the workflow, whose Spark step"
        " takes such partitions, or divide it by date_format or depth"
    )


def _take(run: _Run, item: WorkItem) -> None:
    """Do one partition, unless this run has; keep in mind what became of it."""
    earlier = _earlier(run, item)
    if earlier is None:
        return
    if run.deadline.remaining_seconds() < _PARTITION_SECONDS:
        run.left.append(item.path)
        return
    try:
        done = _compact(run, item, earlier)
    except Exception:
        # The others are independent of it; the report counts it, and fails the run.
        logger.exception("failed", path=item.path)
        run.failed.append(item.path)
        return
    if not done:
        run.left.append(item.path)


def _earlier(run: _Run, item: WorkItem) -> Counts | None:
    """Counts of this run's earlier invocations for a partition; None when it is done."""
    key = layout.receipt_key(run.settings, run.run_id, item.partition)
    try:
        receipt = receipts.decode(run.store.get(*key))
    except ObjectMissing:
        return Counts()
    return None if receipt.status == "done" else receipt.counts


def _compact(run: _Run, item: WorkItem, earlier: Counts) -> bool:
    """True when nothing of the partition is left."""
    # The verb adds to the counts it is given.
    before = msgspec.convert(msgspec.to_builtins(earlier), Counts)
    receipt = record_partition(
        PartitionRun(
            partition=item.partition,
            settings=run.settings,
            store=run.store,
            clock=SystemClock(),
            deadline=run.deadline,
            run_id=run.run_id,
        ),
        earlier,
    )
    add_partition_metrics(receipt.counts, before)
    logger.info("compacted", path=receipt.path, status=receipt.status)
    return receipt.status == "done"


def _clean_up(run: _Run) -> None:
    """Delete what is past retention, wherever it lies; the report tells what went wrong."""
    try:
        due = _due(run)
    except Exception as error:
        logger.exception("clean-up was not planned")
        run.clean_up_failure = f"{type(error).__name__}: {error}"
        return
    for work in due:
        clean_up = CleanUpRun(
            work.path, run.settings, run.store, SystemClock(), run.deadline, run.run_id
        )
        before = clean_up_receipts.earlier(run.settings, run.run_id, clean_up.partition, run.store)
        if before.status == "done":
            continue
        if run.deadline.remaining_seconds() < _PARTITION_SECONDS:
            run.left.append(work.path)
            continue
        try:
            receipt = record_clean_up(clean_up, before)
        except Exception:
            logger.exception("clean-up failed", path=work.path)
            continue
        tell_clean_up(receipt, before)
        if receipt.status != "done":
            run.left.append(work.path)


def _due(run: _Run) -> Sequence[DueWork]:
    """The partitions to clean up, as this run's first call that came so far found them."""
    try:
        return read_due(run.store.get(*layout.clean_up_list_key(run.settings, run.run_id)))
    except ObjectMissing:
        found = find_due(run.settings, run.store, SystemClock().now())
    write_due(found, run.settings, run.run_id, run.store)
    metrics.add_metric(name="DuePartitions", unit=MetricUnit.Count, value=len(found))
    return found


def _report(run: _Run) -> dict[str, Any]:
    """Write the report of the run, which is over.

    Raises:
        PartitionsFailed: not all of it succeeded.
    """
    identity = RunIdentity(run.run_id, run.started_at, clean_up_failure=run.clean_up_failure)
    result = report(identity, run.settings, run.store)
    metrics.add_metric(name="RunsFailed", unit=MetricUnit.Count, value=result.status == "failed")
    metrics.add_metric(name="Partitions", unit=MetricUnit.Count, value=len(result.partitions))
    logger.info("reported", status=result.status, partitions=len(result.partitions))
    if result.status == "failed":
        raise PartitionsFailed(result.cause)
    bucket, key = layout.run_key(run.settings, run.run_id, "report.json")
    return {
        "status": result.status,
        "report": {"bucket": bucket, "key": key},
        "totals": msgspec.to_builtins(result.totals),
    }


def _answer(run: _Run, oversized: Sequence[WorkItem]) -> dict[str, Any]:
    """Lambda refuses answers of more than 6 MB: of very many partitions the first are named."""
    return {
        "run_id": run.run_id,
        "started_at": run.started_at,
        "settings": run.settings.to_dict(),
        "left": run.left[:_SHOWN_LEFT],
        "left_count": len(run.left),
        "failed": run.failed[:_SHOWN_LEFT],
        "refused": [_refusal(item) for item in oversized[:_SHOWN_LEFT]],
    }
