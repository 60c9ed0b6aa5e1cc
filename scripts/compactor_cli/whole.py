"""A whole run on this machine: worker processes, and the Spark of this machine where it is needed.

``compactor run`` and ``compactor.run()`` are this; neither needs more than the base install.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from compactor.clock import SystemClock
from compactor.report.report import RunReport
from compactor.settings.settings import Settings
from compactor.stores.s3 import S3Store, make_client
from compactor.whole.ports import Observer
from compactor.whole.progress import RunProgress
from compactor.whole.run import Given, run_whole
from compactor_cli.commands.endpoint import watched
from compactor_cli.console import Bar, counted, progress
from compactor_cli.local.engine import engine_environment, opened_log
from compactor_cli.local.model import WorkflowProgress
from compactor_cli.local.partition_workers import CALL_SECONDS, PartitionWorkers, WorkerTask
from compactor_cli.local.spark_job import LocalSpark
from compactor_cli.runs import new_run_id


@dataclass(frozen=True, slots=True)
class Machine:
    """How runs run here.

    Attributes:
        workers: processes.
        endpoint_url: None for AWS.
        log: receives what the processes print; None drops it.
        call_seconds: a process that works on a partition for longer without an answer is killed
            and replaced.
    """

    workers: int
    endpoint_url: str | None = None
    log: Path | None = None
    call_seconds: float = CALL_SECONDS


@dataclass(frozen=True, slots=True)
class Done:
    """A run that has come to its report.

    Attributes:
        seconds: from its start to its end.
        worker_peak_bytes: largest resident memory any worker process reached.
        workers_replaced: worker processes that died or were killed.
    """

    report: RunReport
    seconds: float
    worker_peak_bytes: int
    workers_replaced: int


class RunInterrupted(KeyboardInterrupt):
    """A run was interrupted, and everything it had started has ended; says what stands."""


class _NoDeadline:
    def remaining_seconds(self) -> float:
        return math.inf


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
        TransientStoreError: nobody answers.
        RunInterrupted: in place of KeyboardInterrupt.
    """
    began = time.monotonic()
    run_id = run_id or new_run_id()
    environment = engine_environment({}, machine.endpoint_url)
    with (
        progress("compacting") as bar,
        opened_log(machine.log) as log,
        watched(machine.endpoint_url, settings.state.bucket),
    ):
        bar.show(0, text="discovering")
        show = _Show(bar)
        task = WorkerTask(
            settings, run_id, machine.endpoint_url, environment, log, machine.call_seconds
        )
        workers = PartitionWorkers(machine.workers, task)
        given = Given(
            settings=settings,
            run_id=run_id,
            started_at=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            store=S3Store(make_client(machine.endpoint_url)),
            clock=SystemClock(),
            deadline=_NoDeadline(),
            workers=lambda store: workers,
            spark=LocalSpark(environment, log),
            observer=show,
        )
        try:
            report = run_whole(given).report
        except KeyboardInterrupt:
            raise RunInterrupted(_stands(show.last)) from None
        finally:
            workers.close()
    # Nothing limits the time of this run, so nothing is left for another call.
    assert report is not None  # noqa: S101 - see above
    return Done(report, time.monotonic() - began, workers.peak_bytes, workers.replaced)


def compacting_text(at: RunProgress | WorkflowProgress) -> str:
    """How far compaction has come, in a few words."""
    done = at.partitions_done + at.partitions_failed
    failed = f", {at.partitions_failed:,} failed" if at.partitions_failed else ""
    text = f"{done:,}/{at.partitions_total:,} partitions, {at.objects_done:,} objects"
    spark = f", Spark: {at.spark}" if at.spark else ""
    return text + failed + spark


def cleaning_text(at: RunProgress | WorkflowProgress) -> str:
    """How far clean-up has come, in a few words."""
    done = at.clean_ups_done + at.clean_ups_failed
    failed = f", {at.clean_ups_failed:,} failed" if at.clean_ups_failed else ""
    text = f"cleaning up {done:,}/{at.clean_ups_total:,} partitions"
    return f"{text}, {counted(at.deleted, 'source')} deleted{failed}"


def _stands(at: RunProgress) -> str:
    """What an interrupted run has done."""
    if not at.partitions_total:
        return "nothing was begun"
    text = f"{at.partitions_done:,} of {at.partitions_total:,} partitions are done"
    if at.clean_ups_total:
        text += f", {at.clean_ups_done:,} of {at.clean_ups_total:,} cleaned up"
    return f"{text}; what was committed stands, run it again for the rest"
