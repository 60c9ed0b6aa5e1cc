"""A whole run on this machine: worker processes, and local Spark for oversized partitions.

Used by ``compactor run`` and ``compactor.run()``; works with the base install, except for rows.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from compactor.clock import NoDeadline, SystemClock, instant, new_run_id
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
from compactor_cli.machine.environment import engine_environment, opened_log
from compactor_cli.machine.extras import require
from compactor_cli.machine.partition_workers import (
    CALL_SECONDS,
    PartitionWorkers,
    WorkerTask,
)
from compactor_cli.machine.spark_jars import packages_environment
from compactor_cli.machine.spark_job import LocalSpark

# Enough for discovery and one partition, which needs a minute to start.
LEAST_LIMIT_SECONDS = 120.0


def default_workers() -> int:
    """Return the default number of worker processes.

    Two per usable CPU up to four processes, then one per CPU: in a partition with few objects a
    process waits for S3 90 % of the time. No more, because each may take 300 MB of memory.
    """
    affinity = getattr(os, "sched_getaffinity", None)
    cpus: int = len(affinity(0)) if affinity else os.cpu_count() or 1
    return max(cpus, min(4, 2 * cpus))


@dataclass(frozen=True, slots=True)
class Machine:
    """Options of runs on this machine.

    Attributes:
        workers: number of worker processes.
        endpoint_url: None for AWS.
        log: file for what the processes print; None discards it.
        call_seconds: a process that does not answer about a partition within this time is killed
            and replaced.
        time_limit_seconds: no partition is started without time left; None for no limit.
        spark: runs the Spark job; None for the one on this machine.
    """

    workers: int
    endpoint_url: str | None = None
    log: Path | None = None
    call_seconds: float = CALL_SECONDS
    time_limit_seconds: float | None = None
    spark: Spark | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """A run that ended with its report, or at its time limit.

    Attributes:
        report: None if the time limit was reached with partitions left.
        left: their paths.
        stands: what is done in that case, in one line.
        seconds: wall time of the run.
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
    """A run was interrupted and its processes have ended; the message says what is done."""


class _Limit:
    """A deadline from now; None for no limit."""

    def __init__(self, seconds: float | None) -> None:
        self._ends_at = math.inf if seconds is None else time.monotonic() + seconds

    def remaining_seconds(self) -> float:
        return self._ends_at - time.monotonic()


def require_time_limit(field: str, seconds: float | None) -> float | None:
    """Return the limit, if it is long enough for a partition.

    Args:
        field: name of the option or argument.
        seconds: None for no limit.

    Raises:
        InvalidInput: it is too short.
    """
    if seconds is not None and not LEAST_LIMIT_SECONDS <= seconds < math.inf:
        accepted = f"at least {LEAST_LIMIT_SECONDS:g} seconds: a partition starts only with 60 left"
        raise InvalidInput(field, seconds, accepted)
    return seconds


class _Show(Observer):
    """Shows progress and keeps the last one."""

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
    """Run on this machine until the end or the time limit.

    Args:
        settings: of the run.
        machine: how to run.
        run_id: a new, unique id; generated by default.

    Raises:
        ExtraMissing: it writes rows, and Arrow is not installed; nothing was done.
        InvalidInput: the input is invalid; nothing was done.
        TransientStoreError: the endpoint does not answer.
        RunInterrupted: in place of KeyboardInterrupt.
    """
    if settings.columnar:
        require("rows", "a run that writes Parquet")
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
            ended, stands = _run(task, workers, machine)
        finally:
            workers.close()
    seconds = time.monotonic() - began
    peak, replaced = workers.pool.peak_bytes, workers.pool.replaced
    return Done(ended.report, seconds, peak, replaced, ended.left, stands)


def _run(task: WorkerTask, workers: PartitionWorkers, machine: Machine) -> tuple[Ended, str]:
    """Run; returns the end, and what is done if there is no report."""
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
            started_at=instant(SystemClock().now()),
            store=S3Store(make_client(task.endpoint_url)),
            clock=SystemClock(),
            deadline=task.deadline or NoDeadline(),
            workers=lambda store: workers,
            spark=machine.spark or LocalSpark(task.environment, task.log),
            observer=show,
        )
        try:
            ended = run_whole(given)
        except KeyboardInterrupt:
            raise RunInterrupted(_stands(show.last)) from None
    return ended, "" if ended.report is not None else _stands(show.last)


def compacting_text(at: RunProgress) -> str:
    """Return the progress of compaction in a few words."""
    done = at.partitions_done + at.partitions_failed
    failed = f", {at.partitions_failed:,} failed" if at.partitions_failed else ""
    text = f"{done:,}/{at.partitions_total:,} partitions, {at.objects_done:,} objects"
    spark = f", Spark: {at.spark}" if at.spark else ""
    return text + failed + spark


def cleaning_text(at: RunProgress) -> str:
    """Return the progress of clean-up in a few words."""
    done = at.clean_ups_done + at.clean_ups_failed
    failed = f", {at.clean_ups_failed:,} failed" if at.clean_ups_failed else ""
    text = f"cleaning up {done:,}/{at.clean_ups_total:,} partitions"
    return f"{text}, {plural(at.deleted, 'source')} deleted{failed}"


def _stands(at: RunProgress) -> str:
    """Return what an interrupted run has done."""
    if not at.partitions_total:
        return "nothing was started"
    text = f"{at.partitions_done:,} of {at.partitions_total:,} partitions are done"
    if at.clean_ups_total:
        text += f", {at.clean_ups_done:,} of {at.clean_ups_total:,} cleaned up"
    return f"{text}; committed work is kept, run it again for the rest"
