"""A whole run on this machine: worker processes, and the Spark of this machine where it is needed.

``compactor run`` and ``compactor.run()`` are this; neither needs more than the base install.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from compactor.clock import NoDeadline, SystemClock
from compactor.errors import InvalidInput
from compactor.orchestration.run import Ended, Given, run_whole
from compactor.orchestration.run_progress import RunProgress
from compactor.orchestration.workers import Observer, Spark
from compactor.report.report import RunReport
from compactor.s3.store import S3Store, make_client
from compactor.settings.settings import Settings
from compactor.sizes import plural
from compactor_cli.commands.endpoint import watched
from compactor_cli.console import Bar, progress
from compactor_cli.runs import new_run_id
from compactor_machine.environment import engine_environment, opened_log
from compactor_machine.partition_workers import (
    CALL_SECONDS,
    PartitionWorkers,
    WorkerTask,
)
from compactor_machine.spark_jars import packages_environment
from compactor_machine.spark_job import LocalSpark

# Discovery, and one partition that is begun with a minute to go.
LEAST_LIMIT_SECONDS = 120.0


def default_workers() -> int:
    """How many processes a run has by default.

    Two for each CPU that this process may use up to four, then one for each: with a partition of
    few objects a process waits for S3 nine tenths of the time. No more of them, because each may
    hold 300 MB.
    """
    affinity = getattr(os, "sched_getaffinity", None)
    cpus: int = len(affinity(0)) if affinity else os.cpu_count() or 1
    return max(cpus, min(4, 2 * cpus))


@dataclass(frozen=True, slots=True)
class Machine:
    """How runs run here.

    Attributes:
        workers: processes.
        endpoint_url: None for AWS.
        log: receives what the processes print; None drops it.
        call_seconds: a process that works on a partition for longer without an answer is killed
            and replaced.
        time_limit_seconds: partitions for which no time is left are left; None for no limit.
        spark: stays between runs; None to start one where it is needed.
    """

    workers: int
    endpoint_url: str | None = None
    log: Path | None = None
    call_seconds: float = CALL_SECONDS
    time_limit_seconds: float | None = None
    spark: Spark | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """A run that has come to its report, or to the end of its time.

    Attributes:
        report: None when time ran out, and partitions are left.
        left: their paths.
        stands: what is done then, in one line.
        seconds: from its start to its end.
        worker_peak_bytes: largest resident memory any worker process reached.
        workers_replaced: worker processes that died or were killed.
    """

    report: RunReport | None
    seconds: float
    worker_peak_bytes: int
    workers_replaced: int
    left: Sequence[str] = ()
    stands: str = ""


class RunInterrupted(KeyboardInterrupt):
    """A run was interrupted, and everything it had started has ended; says what stands."""


class _Limit:
    """The time of a run, from now on; None for as long as it takes."""

    def __init__(self, seconds: float | None) -> None:
        self._ends_at = math.inf if seconds is None else time.monotonic() + seconds

    def remaining_seconds(self) -> float:
        return self._ends_at - time.monotonic()


def require_time_limit(field: str, seconds: float | None) -> float | None:
    """The limit, when it leaves time for anything.

    Args:
        field: what it is called where it was given.
        seconds: None for no limit.

    Raises:
        InvalidInput: it does not.
    """
    if seconds is not None and not LEAST_LIMIT_SECONDS <= seconds < math.inf:
        accepted = (
            f"at least {LEAST_LIMIT_SECONDS:g} seconds: a partition is begun while 60 are left"
        )
        raise InvalidInput(field, seconds, accepted)
    return seconds


class _Show(Observer):
    """Shows progress, and remembers it."""

    def __init__(self, bar: Bar) -> None:
        self._bar = bar
        self.last = RunProgress()

    def progressed(self, progress: RunProgress) -> None:
        self.last = progress
        if progress.clean_ups_total:
            done = progress.clean_ups_done + progress.clean_ups_failed
            self._bar.show(done, progress.clean_ups_total, cleaning_text(progress))
        else:
            done = progress.partitions_done + progress.partitions_failed
            self._bar.show(done, progress.partitions_total, compacting_text(progress))


def run_here(settings: Settings, machine: Machine, run_id: str = "") -> Done:
    """Run to the end.

    Args:
        settings: of the run.
        machine: how to run.
        run_id: a name that no run has had; by default a new one.

    Raises:
        InvalidInput: the input is at fault; nothing was done.
        TransientStoreError: the store does not answer.
        RunInterrupted: in place of KeyboardInterrupt.
    """
    began = time.monotonic()
    deadline = _Limit(machine.time_limit_seconds)
    run_id = run_id or new_run_id()
    environment = engine_environment(packages_environment(settings), machine.endpoint_url)
    with opened_log(machine.log) as log:
        task = WorkerTask(
            settings, run_id, machine.endpoint_url, environment, log, machine.call_seconds, deadline
        )
        workers = PartitionWorkers(machine.workers, task)
        try:
            ended, stands = _run(task, workers, machine.spark)
        finally:
            workers.close()
    seconds = time.monotonic() - began
    peak, replaced = workers.peak_bytes, workers.replaced
    return Done(ended.report, seconds, peak, replaced, ended.left, stands)


def _run(task: WorkerTask, workers: PartitionWorkers, spark: Spark | None) -> tuple[Ended, str]:
    """The run, and what stands where it did not come to its report."""
    settings = task.settings
    with (
        progress("compacting") as bar,
        watched(task.endpoint_url, settings.state.bucket),
    ):
        bar.show(0, text="discovering")
        show = _Show(bar)
        given = Given(
            settings=settings,
            run_id=task.run_id,
            started_at=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            store=S3Store(make_client(task.endpoint_url)),
            clock=SystemClock(),
            deadline=task.deadline or NoDeadline(),
            workers=lambda store: workers,
            spark=spark or LocalSpark(task.environment, task.log),
            observer=show,
        )
        try:
            ended = run_whole(given)
        except KeyboardInterrupt:
            raise RunInterrupted(_stands(show.last)) from None
    return ended, "" if ended.report is not None else _stands(show.last)


def compacting_text(at: RunProgress) -> str:
    """How far compaction has come, in a few words."""
    done = at.partitions_done + at.partitions_failed
    failed = f", {at.partitions_failed:,} failed" if at.partitions_failed else ""
    text = f"{done:,}/{at.partitions_total:,} partitions, {at.objects_done:,} objects"
    spark = f", Spark: {at.spark}" if at.spark else ""
    return text + failed + spark


def cleaning_text(at: RunProgress) -> str:
    """How far clean-up has come, in a few words."""
    done = at.clean_ups_done + at.clean_ups_failed
    failed = f", {at.clean_ups_failed:,} failed" if at.clean_ups_failed else ""
    text = f"cleaning up {done:,}/{at.clean_ups_total:,} partitions"
    return f"{text}, {plural(at.deleted, 'source')} deleted{failed}"


def _stands(at: RunProgress) -> str:
    """What an interrupted run has done."""
    if not at.partitions_total:
        return "nothing was begun"
    text = f"{at.partitions_done:,} of {at.partitions_total:,} partitions are done"
    if at.clean_ups_total:
        text += f", {at.clean_ups_done:,} of {at.clean_ups_total:,} cleaned up"
    return f"{text}; what was committed stands, run it again for the rest"
