"""One oversized partition on the driver: plans its windows and commits the tasks' answers."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from compactor.cleaning.orphans import abort_losers
from compactor.destination import Destination
from compactor.errors import (
    CommitConflict,
    CompactorError,
    IntegrityError,
    NothingReadable,
    SourceChanged,
    TransientStoreError,
    UploadLost,
)
from compactor.log.encoding import decode_commit
from compactor.model import ObjectGroup, QuarantineReason
from compactor.outputs.group import drop
from compactor.runs.listings import Window
from compactor.runs.partition_progress import PartitionProgress, show
from compactor.runs.partition_receipts import Counts, Receipt
from compactor.runs.partition_run import PartitionRun
from compactor.runs.receipt_writer import Elsewhere, Recorder
from compactor_spark.answers import Answer
from compactor_spark.rounds import TASK_LOST, first_line

# Attempts at a group when the store did not answer or an executor was lost.
MAX_TRIES = 3
_PLAN_AGAIN: dict[str, type[CompactorError]] = {
    error.__name__: error for error in (SourceChanged, CommitConflict)
}
_TRY_AGAIN = frozenset({TransientStoreError.__name__, "SlowDown", TASK_LOST})


class Budget:
    """How many more sources a round may take; thread-safe.

    Each thread may overdraw it by one window.
    """

    def __init__(self, sources: int) -> None:
        self._left = sources
        self._lock = threading.Lock()

    @property
    def spent(self) -> bool:
        """Whether the round is full."""
        return self._left <= 0

    def take(self, sources: int) -> None:
        """Take this many sources from the budget."""
        with self._lock:
            self._left -= sources


@dataclass(frozen=True, slots=True, eq=False)
class PlannedGroup:
    """A group of a round, with the partition and window that it comes from."""

    partition: OversizedPartition
    window: Window
    group: ObjectGroup
    destination: Destination


class OversizedPartition:
    """The job's work on one partition; not thread-safe.

    Args:
        run: the partition, and a store that no other run uses, as its requests are counted.
    """

    def __init__(self, run: PartitionRun) -> None:
        self.run = run
        self.progress: PartitionProgress | None = None
        self.error: Exception | None = None
        self._recorder = Recorder(run, Counts())
        self._elsewhere = Elsewhere()
        self._open: list[Window] = [Window()]
        # All listed windows, in order. The first _at_rest of them had nothing left when listed.
        self._windows: list[Window] = []
        self._at_rest = 0
        self._again: list[Window] = []
        self._tries: Counter[str] = Counter()
        self._failed: list[tuple[str, str]] = []
        self._refusal = ""
        self._groups_before = 0

    @property
    def has_more(self) -> bool:
        """Whether there are windows to be planned."""
        return bool(self._open) and self.error is None

    @property
    def failure(self) -> tuple[str, str] | None:
        """Error name and a one-line cause; None if nothing failed."""
        if self.error is not None:
            return type(self.error).__name__, first_line(self.error)
        if not self._failed:
            return None
        name, cause = self._failed[0]
        more = len(self._failed) - 1
        return name, f"{cause}; and {more} more groups" if more else cause

    def plan(self, budget: Budget) -> Sequence[PlannedGroup]:
        """Return the groups of the next round; an error ends only this partition."""
        planned: list[PlannedGroup] = []
        try:
            progress = self._look_at_log()
            while self.has_more and not budget.spent:
                planned += self._plan_window(progress, self._open.pop(0), budget)
            # Drop what was listed ahead: the tasks take a while, and there are many partitions.
            progress.windows.pause()
        except Exception as error:
            self.error = error
            return ()
        return planned

    def take(self, planned: PlannedGroup, answer: Answer) -> None:
        """Commit and publish the output that a task stored, or handle its error."""
        self._elsewhere.seconds += answer.seconds
        self._elsewhere.requests += answer.requests
        progress = self.progress
        if progress is None or self.error is not None:
            self._drop(answer)
            return
        try:
            self._take(progress, planned, answer)
        except CommitConflict as error:
            progress.refuse(CommitConflict)
            self._plan_again(planned.window, str(error))
        except (TransientStoreError, UploadLost) as error:
            # Whether the commit was written is seen when the log is refreshed.
            self._plan_again(planned.window, str(error))
        except Exception as error:
            self.error = error

    def end_round(self) -> None:
        """Queue refused windows for planning, unless too many rounds made no progress."""
        self._open = self._again + self._open
        self._again = []
        progress = self.progress
        if progress is None or self.error is not None:
            return
        try:
            if self._refusal and progress.result.groups == self._groups_before:
                progress.attempts.set_back(TransientStoreError(self._refusal))
        except TransientStoreError as error:
            self.error = error
        self._refusal, self._groups_before = "", progress.result.groups

    def finish(self) -> Receipt:
        """Settle the log, abort the uploads of tasks that lost, and write the receipt.

        Returns:
            The receipt. If it could not be stored, it names the error.
        """
        progress, recorder = self.progress, self._recorder
        try:
            if progress is not None and not isinstance(self.error, IntegrityError):
                recorder.did(progress.finish())
                unpublished = progress.state.unpublished.values()
                abort_losers(self.run.store, self.run.destination, unpublished)
                recorder.receipt.shown = show(self.run)
        except Exception as error:
            self.error = self.error or error
        if self.failure is not None:
            recorder.failed(*self.failure)
        state = None if progress is None else progress.state
        try:
            recorder.close(state, self._elsewhere)
            recorder.write()
            if state is not None and not isinstance(self.error, IntegrityError):
                self.run.log.checkpoint(state)
        except Exception as error:
            recorder.failed(type(error).__name__, first_line(error))
        if progress is not None and self.failure is None:
            # Only saves the next job some work; this one has succeeded without it.
            with suppress(CompactorError):
                self._leave_rest(progress)
        return recorder.receipt

    def _leave_rest(self, progress: PartitionProgress) -> None:
        """Record for discovery that the partition is at rest, if it is."""
        windows = self._windows
        if self.run.listing is not None:
            return
        if windows and not self._at_rest and len(windows) == 1:
            # This run may have compacted all of it, so the window is planned again. For several
            # windows that would take many requests: the next job finds out.
            if progress.windows.plan(windows[0]).groups:
                return
            progress.windows.rest.ended(windows[0], progress.state)
        elif self._at_rest < len(windows):
            return
        progress.windows.rest.leave(progress.state, progress.result, self._recorder.receipt.shown)

    def _look_at_log(self) -> PartitionProgress:
        if self.progress is None:
            self.progress = PartitionProgress(self.run, self.run.log.load())
        elif self._open:
            self.run.log.refresh(self.progress.state)
        self.progress.settling.settle()
        return self.progress

    def _plan_window(
        self, progress: PartitionProgress, window: Window, budget: Budget
    ) -> list[PlannedGroup]:
        listed_before = window.listed
        groups = progress.windows.plan(window).groups
        following = None if listed_before else window.following()
        if following is not None:
            self._open.append(following)
        if not listed_before:
            if not groups and self._at_rest == len(self._windows):
                progress.windows.rest.ended(window, progress.state)
                self._at_rest += 1
            self._windows.append(window)
        budget.take(sum(len(group.sources) for group in groups))
        if not groups:
            return []
        destination = progress.destination
        return [PlannedGroup(self, window, group, destination) for group in groups]

    def _take(self, progress: PartitionProgress, planned: PlannedGroup, answer: Answer) -> None:
        if progress.notes.learn(answer.misfits):
            self._plan_again(planned.window)
        if answer.error:
            self._take_error(progress, planned, answer)
        elif answer.draft:
            draft = decode_commit(answer.draft)
            news = progress.groups.news_of(replace(draft, created_at=self.run.clock.now()))
            if news is not None:
                progress.groups.commit(news)

    def _take_error(
        self, progress: PartitionProgress, planned: PlannedGroup, answer: Answer
    ) -> None:
        group = planned.group
        if answer.error == IntegrityError.__name__:
            raise IntegrityError(answer.cause)
        if answer.error == NothingReadable.__name__:
            progress.groups.leave_unread(group, QuarantineReason.ACCESS_DENIED, answer.cause)
            self._plan_again(planned.window)
            return
        if answer.error in _PLAN_AGAIN:
            progress.refuse(_PLAN_AGAIN[answer.error])
            self._plan_again(planned.window, answer.cause)
            return
        self._tries[group.id] += 1
        if answer.error in _TRY_AGAIN and self._tries[group.id] < MAX_TRIES:
            self._plan_again(planned.window, answer.cause)
            return
        progress.notes.set_aside(group)
        self._failed.append((answer.error, f"group {group.id}: {answer.cause}"))

    def _plan_again(self, window: Window, refusal: str = "") -> None:
        if window not in self._again:
            self._again.append(window)
        self._refusal = refusal or self._refusal

    def _drop(self, answer: Answer) -> None:
        """Drop what a task stored, as the partition has ended and will not commit it."""
        if answer.draft:
            drop(decode_commit(answer.draft).output, self.run.store)
