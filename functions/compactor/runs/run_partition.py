"""Compacts one partition in one worker, from its listing to published outputs.

load the log -> publish what an earlier run left unpublished -> list -> plan
    -> for each group: compact -> verify -> commit -> publish
-> list again, until a plan is empty -> update the readers' table
-> checkpoint -> if the partition is at rest, record that
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import partial

from compactor.errors import (
    CommitConflict,
    InvalidInput,
    SourceChanged,
    UploadLost,
)
from compactor.log.state import LogState
from compactor.model import ObjectGroup
from compactor.process.background import Background
from compactor.runs.group_work import RowsRefused
from compactor.runs.listings import Listings, Window
from compactor.runs.partition_progress import PartitionProgress, show
from compactor.runs.partition_receipts import Counts, Receipt, read
from compactor.runs.partition_run import PartitionResult, PartitionRun
from compactor.runs.receipt_writer import Recorder
from compactor.runs.resume_point import Place

__all__ = [
    "PartitionResult",
    "PartitionRun",
    "record_partition",
]


def record_partition(run: PartitionRun, earlier: Counts) -> Receipt:
    """Compact one partition and write its receipt, on success or failure.

    Unless the call failed, the log is checkpointed while the receipt is written.

    Args:
        run: the run's input.
        earlier: counts of the earlier calls for this partition in this run.

    Raises:
        Exception: any error that ended the call, after it was recorded in the receipt.
    """
    run = replace(run, place=_place(run, earlier))
    recorder = Recorder(run, earlier)
    state: LogState | None = None
    rest: Callable[[], None] | None = None
    try:
        state, listings = _load(run)
        progress = PartitionProgress(run, state, listings=listings)
        recorder.follow(progress.windows.passing)
        try:
            is_done = _compact(progress)
        finally:
            progress.windows.pause()
        result = progress.finish() if is_done else progress.result
        ended = _ended(run, result, earlier)
        recorder.did(result)
        progress.require_none_refused()
        if ended:
            recorder.receipt.shown = show(run)
        rest = partial(_rest, progress, result, recorder.receipt)
    except Exception as error:
        recorder.failed(type(error).__name__, str(error))
        raise
    finally:
        recorder.close(state)
        with Background(rest) if rest is not None else nullcontext():
            recorder.write()
    return recorder.receipt


def _load(run: PartitionRun) -> tuple[LogState, Listings]:
    """Load the log and begin the first listing concurrently.

    Either may finish first: a commit that another run makes in between is in the loaded log or
    causes a conflict later.
    """
    listings = Listings(run)
    try:
        with Background(listings.begin):
            state = run.log.load()
    except BaseException:
        listings.pause()
        raise
    return state, listings


def _rest(progress: PartitionProgress, result: PartitionResult, receipt: Receipt) -> None:
    """Checkpoint the log and, if the partition is at rest, record that."""
    # Checkpoint even if time ran out, so that the next call need not check these outputs again.
    progress.run.log.checkpoint(progress.state)
    progress.windows.rest.leave(progress.state, result, receipt.shown)


def _place(run: PartitionRun, earlier: Counts) -> Place:
    """Return the key after which this call begins: where the run's previous call stopped.

    Calls with a listing made before the run begin at the start: it costs no LIST, and events name
    only pending objects.
    """
    if not earlier.calls or run.listing is not None:
        return run.place
    before = read(run.settings, run.run_id, run.partition, run.store)
    return before.place if before is not None and before.place is not None else run.place


def _ended(run: PartitionRun, result: PartitionResult, earlier: Counts) -> bool:
    """Return True if the partition needs no further call.

    Raises:
        InvalidInput: this call finished no group, and is at least the third one. The partition
            would be called forever.
    """
    if result.done:
        return True
    if result.groups or result.repaired or earlier.calls < 2:
        return False
    target = run.settings.target_bytes
    accepted = "a smaller target, so that one group fits the time of one invocation"
    raise InvalidInput("target_bytes", target, accepted)


def _compact(progress: PartitionProgress) -> bool:
    """Compact all windows, one after the other; return False if time ran out."""
    window: Window | None = Window(progress.run.place.after)
    while window is not None:
        if progress.attempts.out_of_time() or not progress.settling.settle():
            return False
        lessons = progress.notes.lessons
        decision = progress.windows.plan(window)
        for group in decision.groups:
            if progress.attempts.out_of_time():
                return False
            if not _do(progress, group):
                break
        else:
            if progress.notes.lessons == lessons:
                progress.windows.ended(window)
                window = window.following()
    return True


def _do(progress: PartitionProgress, group: ObjectGroup) -> bool:
    """Compact one group; return False if its window must be planned again."""
    try:
        progress.groups.do(group)
    except (SourceChanged, CommitConflict, UploadLost) as error:
        progress.give_up(error)
        return False
    except RowsRefused as error:
        progress.set_aside(error)
    return True
