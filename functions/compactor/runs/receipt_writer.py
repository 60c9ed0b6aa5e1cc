"""Writes the partition's receipt, on success or failure."""

from __future__ import annotations

from collections import Counter

import msgspec

from compactor import layout
from compactor.log import left_alone
from compactor.log.left_alone import LeftAlone
from compactor.log.state import SHOWN_QUARANTINED, LogState, QuarantineLine
from compactor.model import SkipReason
from compactor.runs.partition_receipts import Counts, Receipt, add_requests, count_commits, write
from compactor.runs.partition_run import PartitionResult, PartitionRun
from compactor.runs.resume_point import Passing


class Elsewhere(msgspec.Struct):
    """Work that other processes, each with a store of its own, did for a call.

    ``seconds`` is the sum of their working times and counts as the time of the whole call.
    """

    seconds: float = 0.0
    requests: Counter[str] = msgspec.field(default_factory=Counter)


class Recorder:
    """Builds and writes the receipt of one call for a partition.

    Args:
        run: the run's input. Requests that its store makes from now on count for the call.
        earlier: counts of the earlier calls for this partition in this run; modified in place.
    """

    def __init__(self, run: PartitionRun, earlier: Counts) -> None:
        self.receipt = Receipt(run.partition.path, run.run_id, "failed", counts=earlier)
        self._run = run
        self._unread: list[QuarantineLine] = []
        self._left_unread: dict[str, LeftAlone] = {}
        self._passing: Passing | None = None
        self._started = run.clock.now()
        self._requests_before = Counter(run.store.requests.snapshot())

    def follow(self, passing: Passing) -> None:
        """Also record how far the call came, as tracked by ``passing``."""
        self._passing = passing

    def did(self, result: PartitionResult) -> None:
        """Record the result of a call that finished its work or ran out of time."""
        receipt, counts = self.receipt, self.receipt.counts
        receipt.status = "done" if result.done else "more"
        receipt.skipped = {reason.value: skipped for reason, skipped in result.skipped.items()}
        self._unread = [
            QuarantineLine(one.source.key, one.reason, one.detail) for one in result.unread.values()
        ]
        left_alone.count(self._left_unread, result.unread.values())
        counts.conflicts += result.conflicts
        counts.changed += result.changed
        counts.repaired += result.repaired
        counts.marked += result.marked

    def failed(self, name: str, cause: str) -> None:
        """Record the class name and text of the error that ended the call."""
        self.receipt.status = "failed"
        self.receipt.error, self.receipt.cause = name, cause

    def close(self, state: LogState | None, elsewhere: Elsewhere | None = None) -> None:
        """Add this run's commits, from the log, and the call's time and requests to the receipt.

        Args:
            state: the log; None if it could not be loaded.
            elsewhere: work that other processes did for this call; None if there were no others.
        """
        run, counts = self._run, self.receipt.counts
        if state is not None:
            totals = state.totals(run.run_id)
            self.receipt.overwritten = totals.overwritten
            self.receipt.sizes = totals.sizes
            if totals.again.objects:
                self.receipt.skipped[SkipReason.AGAIN.value] = totals.again
            lasting = count_commits(counts, state, run.run_id)
            if counts.dead_letters:
                self.receipt.dead_letters = layout.dead_letters_uri(run.settings, run.partition)
            # Unreadable sources of this run's earlier calls were seen again by this call.
            counts.quarantined += len(self._unread)
            self.receipt.quarantined = (lasting + self._unread)[:SHOWN_QUARANTINED]
            self.receipt.left_alone = left_alone.added_up([totals.left_alone, self._left_unread])
        made = Counter(run.store.requests.snapshot()) - self._requests_before
        if elsewhere is None:
            seconds = run.clock.now() - self._started
            counts.seconds += seconds
            counts.gb_seconds += seconds * run.paid.memory_gb
            counts.invocations += run.paid.share
        else:
            counts.seconds += elsewhere.seconds
            made += elsewhere.requests
        if self.receipt.status != "done" and run.listing is None:
            self.receipt.place = self._passing.place if self._passing else run.place
        counts.calls += 1
        add_requests(counts, made)

    def write(self) -> None:
        """Store the receipt."""
        run = self._run
        write(self.receipt, run.settings, run.partition, run.store)
