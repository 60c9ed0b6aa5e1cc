"""One partition from listing to published outputs, in one worker: the order of the verbs.

load the log -> publish what an earlier run left -> list -> plan
    -> for each group: compact -> check -> commit -> publish
-> list again, until a plan is empty -> show it to query engines
-> checkpoint -> record what was seen, at rest
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
from compactor.model import CompactionPlan
from compactor.process.background import Background
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
    """Compact one partition and leave a receipt; the log is summed up meanwhile, all being done.

    Args:
        run: what to do, and with what.
        earlier: counts of the earlier calls for this partition in this run.

    Raises:
        Exception: whatever ended it, after the receipt says so.
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
            is_done = _compact(progress, recorder.expects)
        finally:
            progress.windows.pause()
        result = progress.finish() if is_done else progress.result
        ended = _ended(run, result, earlier)
        recorder.did(result)
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
    """The log, and meanwhile the first of what is listed.

    Whichever comes first: what another run commits in between is in the log, or met as a conflict.
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
    """Sum up the log, and record what was seen where the partition is at rest."""
    # Also when time ran out: the next call need not look at these outputs again.
    progress.run.log.checkpoint(progress.state)
    progress.windows.rest.leave(progress.state, result, receipt.shown)


def _place(run: PartitionRun, earlier: Counts) -> Place:
    """Where this call may begin.

    What was listed before the run costs no LIST, and events name what is pending alone.
    """
    if not earlier.calls or run.listing is not None:
        return run.place
    before = read(run.settings, run.run_id, run.partition, run.store)
    return before.place if before is not None and before.place is not None else run.place


def _ended(run: PartitionRun, result: PartitionResult, earlier: Counts) -> bool:
    """True when no further call is of use.

    Raises:
        InvalidInput: a partition that has its third call without a finished group would be
            called forever.
    """
    if result.done:
        return True
    if result.groups or result.repaired or earlier.calls < 2:
        return False
    target = run.settings.target_bytes
    accepted = "a smaller target, so that one group fits the time of one invocation"
    raise InvalidInput("target_bytes", target, accepted)


def _compact(progress: PartitionProgress, expects: Callable[[CompactionPlan], None]) -> bool:
    """Compact window by window, until nothing is left of any; False when time ran out."""
    window: Window | None = Window(progress.run.place.after)
    while window is not None:
        if progress.attempts.out_of_time() or not progress.settling.settle():
            return False
        is_new, lessons = not window.listed, progress.notes.lessons
        decision = progress.windows.plan(window)
        if is_new:
            expects(decision)
        for group in decision.groups:
            if progress.attempts.out_of_time():
                return False
            try:
                progress.groups.do(group)
            except (SourceChanged, CommitConflict, UploadLost) as error:
                progress.give_up(error)
                break
        else:
            if progress.notes.lessons == lessons:
                progress.windows.ended(window)
                window = window.following()
    return True
