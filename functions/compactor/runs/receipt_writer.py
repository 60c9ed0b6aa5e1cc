"""Writes the partition's receipt, on success or failure."""

from __future__ import annotations

from collections import Counter

import msgspec

from compactor import layout
from compactor.discovery.estimate import of_window
from compactor.log import left_alone
from compactor.log.left_alone import LeftAlone
from compactor.log.state import SHOWN_QUARANTINED, LogState, QuarantineLine
from compactor.model import CompactionPlan, SkipReason
from compactor.money.running import PRICE_OF_REQUEST
from compactor.runs.partition_receipts import Counts, Receipt, add_requests, count_commits, write
from compactor.runs.partition_run import PartitionResult, PartitionRun
from compactor.runs.resume_point import Passing


class Elsewhere(msgspec.Struct):
    """What processes with stores of their own did for a call.

    ``seconds`` adds up the time they worked, and stands for the time of the whole call.
    """

    seconds: float = 0.0
    requests: Counter[str] = msgspec.field(default_factory=Counter)


class Recorder:
    """Makes and writes the receipt of one call for a partition.

    Args:
        run: what is done. The requests of its store from now on are the call's.
        earlier: counts of the earlier calls for this partition in this run; added to.
    """

    def __init__(self, run: PartitionRun, earlier: Counts) -> None:
        self.receipt = Receipt(run.partition.path, run.run_id, "failed", counts=earlier)
        self._run = run
        self._unread: list[QuarantineLine] = []
        self._left_unread: dict[str, LeftAlone] = {}
        self._passing: Passing | None = None
        self._started = run.clock.now()
        # A window that an earlier call began was estimated then.
        self._goes_on = bool(earlier.calls)
        self._requests_before = Counter(run.store.requests.snapshot())

    def follow(self, passing: Passing) -> None:
        """How far the call comes is written down, too."""
        self._passing = passing

    def expects(self, decision: CompactionPlan) -> None:
        """A window was planned for the first time: estimate what that will take."""
        counts = self.receipt.counts
        if self._goes_on:
            self._goes_on = False
            return
        work = of_window(decision, self._run.settings, first=not counts.expected)
        estimated: dict[str, float] = {**work.requests, "gb_seconds": work.gb_seconds}
        if not counts.expected:
            made = Counter(self._run.store.requests.snapshot()) - self._requests_before
            for kind in PRICE_OF_REQUEST:
                estimated[kind] = estimated.get(kind, 0) + made[kind]
        for kind, amount in estimated.items():
            counts.expected[kind] = counts.expected.get(kind, 0) + amount

    def did(self, result: PartitionResult) -> None:
        """The call came to its end, of its time or of its work."""
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
        """The call ended with an error of this class name and text."""
        self.receipt.status = "failed"
        self.receipt.error, self.receipt.cause = name, cause

    def close(self, state: LogState | None, elsewhere: Elsewhere | None = None) -> None:
        """Count what was done: what the log says that this run committed, time and requests.

        Args:
            state: the log; None when it could not be loaded.
            elsewhere: what other processes did for this call; None for nothing.
        """
        run, counts = self._run, self.receipt.counts
        if state is not None:
            totals = state.totals(run.run_id)
            self.receipt.overwritten = totals.overwritten
            self.receipt.sizes = totals.sizes
            if totals.again.objects:
                self.receipt.skipped[SkipReason.AGAIN.value] = totals.again
            lasting = count_commits(counts, state, run.run_id)
            if counts.rejects_waiting:
                self.receipt.rejects = layout.rejects_uri(run.settings, run.partition)
            # Those that earlier calls of this run left for a while were met again by this one.
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
