"""One partition from listing to published outputs: the order in which the verbs meet.

load the log -> publish what an earlier run left -> list -> plan
    -> for each group: compact -> check -> commit -> publish
-> list again, until a plan is empty -> checkpoint
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from compactor import layout
from compactor.commit import CommitLog
from compactor.commit_log import Commit, LogState
from compactor.compact import compact
from compactor.errors import (
    CommitConflict,
    IntegrityError,
    InvalidInput,
    SourceChanged,
    TransientStoreError,
    UploadLost,
)
from compactor.listing import take_listing
from compactor.model import (
    CompactionPlan,
    Listing,
    ObjectGroup,
    Partition,
    Signature,
    Skipped,
    SkipReason,
)
from compactor.pending import Destination, PendingOutput
from compactor.plan import Knowledge, plan
from compactor.ports import Clock, Deadline, ObjectStore
from compactor.publish import publish, withdraw
from compactor.receipts import Counts, Receipt, add_requests, count_commits, write
from compactor.settings import Settings
from compactor.verify import check_pending

# A source may change while it is read, or another run may be first; then plan again.
MAX_REPLANS = 20


@dataclass(slots=True)
class PartitionResult:
    """What one call did.

    Attributes:
        done: False when time ran out with work left: call again.
        skipped: what was left alone, by reason, but for what this run itself did before.
        conflicts: groups given up because another run committed their sources first.
        changed: groups given up because a source changed while it was read.
        repaired: commits of earlier runs that this one published or replaced.
    """

    done: bool = True
    groups: int = 0
    conflicts: int = 0
    changed: int = 0
    repaired: int = 0
    skipped: dict[SkipReason, Skipped] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PartitionRun:
    """Everything one partition's run needs.

    Attributes:
        reserve_seconds: with less than this left, or less than the longest group took, no
            new group is started.
        on_group: told after each published group.
    """

    partition: Partition
    settings: Settings
    store: ObjectStore
    clock: Clock
    deadline: Deadline
    run_id: str
    reserve_seconds: float = 30.0
    on_group: Callable[[Commit], None] = lambda commit: None

    @property
    def log(self) -> CommitLog:
        """The partition's commit log."""
        return CommitLog(self.store, self.settings, self.partition)

    @property
    def destination(self) -> Destination:
        """Where this partition's outputs go."""
        bucket, prefix = layout.output_prefix(self.settings, self.partition)
        return Destination(bucket, prefix, self.settings.output_stem)


def run_partition(run: PartitionRun, state: LogState) -> PartitionResult:
    """Compact one partition as far as the deadline allows. Safe to run again, and at once.

    Raises:
        IntegrityError: stored data contradicts the log; nothing more was touched.
        TransientStoreError: the store did not answer, or sources kept changing.
    """
    return _Worker(run, state).work()


def record_partition(run: PartitionRun, earlier: Counts) -> Receipt:
    """Compact one partition and leave a receipt; the log is summed up once all is done.

    Args:
        run: what to do, and with what.
        earlier: counts of the earlier calls for this partition in this run.

    Raises:
        Exception: whatever ended it, after the receipt says so.
    """
    started = run.clock.now()
    requests_before = Counter(run.store.requests.snapshot())
    receipt = Receipt(run.partition.path, run.run_id, "failed", counts=earlier)
    state: LogState | None = None
    try:
        state = run.log.load()
        result = run_partition(run, state)
        _require_progress(run, result, earlier)
        receipt.status = "done" if result.done else "more"
        receipt.skipped = {reason.value: skipped for reason, skipped in result.skipped.items()}
        earlier.conflicts += result.conflicts
        earlier.changed += result.changed
        earlier.repaired += result.repaired
    except Exception as error:
        receipt.error, receipt.cause = type(error).__name__, str(error)
        raise
    finally:
        if state is not None:
            receipt.quarantined = count_commits(receipt.counts, state, run.run_id)
        receipt.counts.calls += 1
        receipt.counts.seconds += run.clock.now() - started
        made = Counter(run.store.requests.snapshot()) - requests_before
        add_requests(receipt.counts, made)
        write(receipt, run.settings, run.partition, run.store)
    # Also when time ran out: the next call need not look at these outputs again.
    run.log.checkpoint(state)
    return receipt


def _require_progress(run: PartitionRun, result: PartitionResult, earlier: Counts) -> None:
    """A partition that has its third call without a finished group would be called forever."""
    if result.done or result.groups or result.repaired or earlier.calls < 2:
        return
    target = run.settings.target_bytes
    accepted = "a smaller target, so that one group fits the time of one invocation"
    raise InvalidInput("target_bytes", target, accepted)


class _Worker:
    def __init__(self, run: PartitionRun, state: LogState) -> None:
        self._run = run
        self._state = state
        self._result = PartitionResult(done=False)
        self._signatures: dict[bytes, Signature] = {}
        self._longest_seconds = 0.0
        self._earlier_calls = replace(state.totals(run.run_id))

    def work(self) -> PartitionResult:
        listing = None
        while listing is None or not listing.complete:
            listing = self._do_window("" if listing is None else listing.last_key)
            if listing is None:
                return self._result
        # Commits of other runs may have come in on the way.
        self._result.done = self._settle_log()
        self._leave_out_earlier_calls()
        return self._result

    def _do_window(self, start_after: str) -> Listing | None:
        """Compact what is listed next, until nothing of it is left; None when time ran out."""
        first = True
        while not self._out_of_time() and self._settle_log():
            listing = take_listing(
                self._run.store, self._run.partition, self._state.committed, start_after
            )
            known = Knowledge(self._state.committed, self._state.quarantined, self._signatures)
            decision = plan(listing, self._run.settings, known, self._run.clock.now())
            if first:
                self._count_skips(decision)
                first = False
            known_signatures = len(self._signatures)
            if self._run_groups(decision) and len(self._signatures) == known_signatures:
                return listing
        return None

    def _count_skips(self, decision: CompactionPlan) -> None:
        skipped = self._result.skipped
        for reason, one in decision.skipped.items():
            skipped[reason] = skipped.get(reason, Skipped(0, 0)).plus(one)

    def _leave_out_earlier_calls(self) -> None:
        """What earlier calls of this very run committed or quarantined was not skipped by it."""
        own = self._earlier_calls
        for reason, objects, size in (
            (SkipReason.COMMITTED, own.sources, own.source_bytes),
            (SkipReason.QUARANTINED, own.quarantined, own.quarantined_bytes),
        ):
            if reason in self._result.skipped:
                before = self._result.skipped.pop(reason)
                left = Skipped(before.objects - objects, before.bytes - size, before.examples)
                if left.objects > 0:
                    self._result.skipped[reason] = left

    def _run_groups(self, decision: CompactionPlan) -> bool:
        """False when the plan is out of date, or time ran out."""
        for group in decision.groups:
            if self._out_of_time():
                return False
            try:
                self._compact_and_publish(group)
            except SourceChanged as error:
                self._result.changed += 1
                self._give_up_after_too_many(error)
                return False
            except CommitConflict as error:
                self._result.conflicts += 1
                self._give_up_after_too_many(error)
                return False
        return True

    def _give_up_after_too_many(self, error: Exception) -> None:
        if self._result.changed + self._result.conflicts > MAX_REPLANS:
            raise TransientStoreError(f"planned {MAX_REPLANS} times, last: {error}") from error

    def _compact_and_publish(self, group: ObjectGroup, replaces: int | None = None) -> None:
        run = self._run
        started = run.clock.now()
        pending = compact(group, run.settings, run.store, run.destination)
        self._signatures.update(pending.misfits)
        try:
            check_pending(pending)
            if not pending.rows and not pending.quarantined and replaces is None:
                return
            draft = pending.draft(run.run_id, run.clock.now(), replaces)
            commit = run.log.append(self._state, draft)
        except (CommitConflict, IntegrityError):
            # Any other error may hide a commit that was written: then the upload is needed.
            _drop(pending, run.store)
            raise
        publish(commit, run.store)
        self._state.mark_published(commit)
        self._result.groups += 1
        self._longest_seconds = max(self._longest_seconds, run.clock.now() - started)
        run.on_group(commit)

    def _settle_log(self) -> bool:
        """Publish every commit in the log that is not yet; False when time ran out."""
        while self._state.unpublished:
            if self._out_of_time():
                return False
            sequence = min(self._state.unpublished)
            try:
                self._repair(self._state.unpublished[sequence])
            except CommitConflict as error:
                # Another run is repairing it; the log state is up to date now.
                self._result.conflicts += 1
                self._give_up_after_too_many(error)
        return True

    def _repair(self, commit: Commit) -> None:
        """Publish what another run committed, or build it again, or make its commit void."""
        try:
            repaired = publish(commit, self._run.store)
        except UploadLost:
            repaired = withdraw(commit, self._run.store)
            if repaired:
                self._replace(commit)
        self._state.mark_published(commit)
        self._result.repaired += repaired

    def _replace(self, commit: Commit) -> None:
        copied = commit.output is not None and commit.output.copied
        sources = tuple(row.source for row in commit.rows)
        try:
            group = ObjectGroup(commit.group_id, sources, copied)
            self._compact_and_publish(group, replaces=commit.sequence)
        except SourceChanged:
            # Its other sources are free to be planned anew.
            self._run.log.append(self._state, commit.voided(self._run.run_id))

    def _out_of_time(self) -> bool:
        needed = self._run.reserve_seconds + 1.5 * self._longest_seconds
        return self._run.deadline.remaining_seconds() < needed


def _drop(pending: PendingOutput, store: ObjectStore) -> None:
    if pending.output is not None:
        output = pending.output
        store.abort_upload(output.bucket, output.key, output.upload_id)
