"""One oversized partition on the driver: plans its windows and commits the tasks' answers."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
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
from compactor.failures import first_line
from compactor.log.encoding import decode_commit
from compactor.model import ObjectGroup, QuarantineReason
from compactor.outputs.group import drop
from compactor.partition.inputs import PartitionRun
from compactor.partition.listing import Window
from compactor.partition.receipts import Counts, Cursor, Receipt, ReceiptWriter, read
from compactor.partition.steps import show
from compactor.partition.work import PartitionWork
from compactor_spark.answers import Answer
from compactor_spark.rounds import TASK_LOST

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
        self.work: PartitionWork | None = None
        self.error: Exception | None = None
        self._writer = ReceiptWriter(run, Counts())
        self._writer.receipt.by_spark = True
        # Of the tasks.
        self._seconds = 0.0
        self._requests: Counter[str] = Counter()
        self._open: list[Window] = [Window()]
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
            work = self._look_at_log()
            while self.has_more and not budget.spent:
                planned += self._plan_window(work, self._open.pop(0), budget)
            # Drop what was listed ahead: the tasks take a while, and there are many partitions.
            work.listing.drop_pages()
        except Exception as error:
            self.error = error
            return ()
        return planned

    def take(self, planned: PlannedGroup, answer: Answer) -> None:
        """Commit and publish the output that a task stored, or handle its error."""
        self._seconds += answer.seconds
        self._requests += answer.requests
        work = self.work
        if work is None or self.error is not None:
            self._drop(answer)
            return
        try:
            self._take(work, planned, answer)
        except CommitConflict as error:
            work.count_set_back(CommitConflict)
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
        work = self.work
        if work is None or self.error is not None:
            return
        try:
            if self._refusal and work.groups == self._groups_before:
                work.set_back(TransientStoreError(self._refusal))
        except TransientStoreError as error:
            self.error = error
        self._refusal, self._groups_before = "", work.groups

    def finish(self) -> Receipt:
        """Settle the log, abort the uploads of tasks that lost, and write the receipt.

        Returns:
            The receipt. If it could not be stored, it names the error.
        """
        work, writer, receipt = self.work, self._writer, self._writer.receipt
        try:
            if work is not None and not isinstance(self.error, IntegrityError):
                if not work.finish():
                    receipt.status = "more"
                unpublished = work.state.unpublished.values()
                abort_losers(self.run.store, self.run.destination, unpublished)
                receipt.shown = show(self.run)
        except Exception as error:
            self.error = self.error or error
        if self.failure is not None:
            receipt.fail(*self.failure)
        # Windows are planned in any order, so the next call begins at the start.
        receipt.cursor = Cursor()
        try:
            if work is not None:
                work.close()
            state = None if work is None else work.state
            writer.close(state, seconds=self._seconds, requests=self._requests)
            writer.write()
            if work is not None and not isinstance(self.error, IntegrityError):
                work.write_checkpoint()
        except Exception as error:
            receipt.fail(type(error).__name__, first_line(error))
        return receipt

    def _look_at_log(self) -> PartitionWork:
        if self.work is None:
            run, receipt = self.run, self._writer.receipt
            if (before := read(run.settings, run.run_id, run.partition, run.store)) is not None:
                # What the worker did that left the partition to Spark.
                receipt.counts = before.counts
            self.work = PartitionWork(run, run.log.load(), receipt)
        elif self._open:
            self.run.log.refresh(self.work.state)
        self.work.publish_unpublished()
        return self.work

    def _plan_window(
        self, work: PartitionWork, window: Window, budget: Budget
    ) -> list[PlannedGroup]:
        listed_before = window.listed
        groups = work.plan(window).groups
        following = None if listed_before else window.following()
        if following is not None:
            self._open.append(following)
        budget.take(sum(len(group.sources) for group in groups))
        if not groups:
            return []
        destination = replace(self.run.destination, log_id=work.log_id())
        return [PlannedGroup(self, window, group, destination) for group in groups]

    def _take(self, work: PartitionWork, planned: PlannedGroup, answer: Answer) -> None:
        if work.learn(answer.misfits):
            self._plan_again(planned.window)
        if answer.error:
            self._take_error(work, planned, answer)
        elif answer.draft:
            draft = decode_commit(answer.draft)
            news = work.news_of(replace(draft, created_at=self.run.clock.now()))
            if news is not None:
                work.commit(news)

    def _take_error(self, work: PartitionWork, planned: PlannedGroup, answer: Answer) -> None:
        group = planned.group
        if answer.error == IntegrityError.__name__:
            raise IntegrityError(answer.cause)
        if answer.error == NothingReadable.__name__:
            work.leave_unread(group, QuarantineReason.ACCESS_DENIED, answer.cause)
            self._plan_again(planned.window)
            return
        if answer.error in _PLAN_AGAIN:
            work.count_set_back(_PLAN_AGAIN[answer.error])
            self._plan_again(planned.window, answer.cause)
            return
        self._tries[group.id] += 1
        if answer.error in _TRY_AGAIN and self._tries[group.id] < MAX_TRIES:
            self._plan_again(planned.window, answer.cause)
            return
        work.set_aside(group.sources)
        self._failed.append((answer.error, f"group {group.id}: {answer.cause}"))

    def _plan_again(self, window: Window, refusal: str = "") -> None:
        if window not in self._again:
            self._again.append(window)
        self._refusal = refusal or self._refusal

    def _drop(self, answer: Answer) -> None:
        """Drop what a task stored, as the partition has ended and will not commit it."""
        if answer.draft:
            drop(decode_commit(answer.draft).output, self.run.store)
