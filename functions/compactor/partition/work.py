"""The steps of one call's work on one partition, shared by workers and the Spark driver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from compactor.errors import (
    CommitConflict,
    CompactorError,
    IntegrityError,
    InvalidInput,
    NothingReadable,
    SourceChanged,
    TransientStoreError,
    UploadLost,
)
from compactor.log.entries import Commit
from compactor.log.identity import outputs_among
from compactor.log.state import SHOWN_QUARANTINED, LogState
from compactor.model import (
    PASSING_REASONS,
    CompactionPlan,
    ObjectGroup,
    Quarantined,
    QuarantineReason,
    Signature,
    Skipped,
    SkipReason,
    SourceObject,
)
from compactor.outputs.detection import decided_by
from compactor.outputs.group import draft_of, dropping
from compactor.outputs.group_reading import ReadingTime
from compactor.outputs.pending import PendingOutput
from compactor.outputs.publish import publish, withdraw
from compactor.outputs.verify import read_back
from compactor.partition.events import mark_registered
from compactor.partition.inputs import PartitionRun
from compactor.partition.listing import PartitionListing, Window
from compactor.partition.receipts import Cursor, Receipt
from compactor.partition.steps import (
    RowsRefused,
    covered_by_declaration,
    group_of,
    is_in_table,
    store,
    unless_replaced,
)
from compactor.partition.unread import Unread
from compactor.planning.plan import Knowledge, plan
from compactor.process.background import Background

# How many plans may be given up since the last published group.
MAX_REPLANS = 20
# After any other error the commit may have been written, and then its upload is still needed.
_NOT_WRITTEN = (CommitConflict, IntegrityError, InvalidInput)


class PartitionWork:
    """One call's work on one partition; not thread-safe.

    Args:
        run: the call's input.
        state: the log as it was loaded.
        receipt: what the run did so far; completed here.
        listing: begun or not.

    Attributes:
        must_replan: what was found since the last plan makes that plan out of date.
        groups: groups published by this call.
        repaired: commits of earlier calls that this one published or replaced.
    """

    def __init__(
        self,
        run: PartitionRun,
        state: LogState,
        receipt: Receipt,
        listing: PartitionListing | None = None,
    ) -> None:
        self.run, self.state, self.receipt = run, state, receipt
        self.listing = listing or PartitionListing(run)
        self.must_replan = False
        self.groups = self.repaired = 0
        # Signatures that differ from what keys and settings imply, by identity.
        self._signatures: dict[bytes, Signature] = {}
        # Sources that later plans of this call leave out.
        self._aside: set[bytes] = set()
        # Sources that are named like outputs of a run, and are none.
        self._no_outputs: set[bytes] = set()
        self._unread = Unread(receipt)
        self._refused: list[InvalidInput] = []
        self._setbacks = 0
        self._longest_seconds = 0.0
        self._is_cut_short = self._is_log_checked = self._own_skipped = False

    @classmethod
    def open(cls, run: PartitionRun, receipt: Receipt) -> PartitionWork:
        """Load the log, and list the first page concurrently.

        Either may finish first: a commit that another run makes in between is in the loaded log or
        causes a conflict later.
        """
        listing = PartitionListing(run)
        try:
            with Background(partial(listing.begin, receipt.cursor.after)):
                state = run.log.load()
        except BaseException:
            listing.drop_pages()
            raise
        return cls(run, state, receipt, listing)

    def is_out_of_time(self) -> bool:
        """Return True if no further group should be started."""
        needed = self.run.reserve_seconds + 1.5 * self._longest_seconds
        return self._is_cut_short or self.run.deadline.remaining_seconds() < needed

    def publish_unpublished(self) -> bool:
        """Publish every committed output, or replace its commit; return False if time ran out.

        Raises:
            IntegrityError: the log is damaged.
            TransientStoreError: other runs kept changing the log.
            InvalidInput: this role may not read the sources of a lost output.
        """
        while self.state.unpublished:
            if self.is_out_of_time():
                return False
            try:
                self._publish_or_replace(self.state.unpublished[min(self.state.unpublished)])
            except (CommitConflict, UploadLost) as error:
                # Another run is repairing the commit; or the rebuilt upload was dropped, too.
                self.set_back(error)
        return True

    def _publish_or_replace(self, commit: Commit) -> None:
        run, state = self.run, self.state
        try:
            with unless_replaced(commit, run, state):
                repaired = publish(commit, run.store)
        except UploadLost:
            # Not withdrawn: another run has published it after all.
            with unless_replaced(commit, run, state):
                repaired = withdraw(commit, run.store)
            # The table took its rows, rewrote them, and deleted the output.
            if repaired and is_in_table(commit, run):
                repaired = False
            if repaired:
                self._replace(commit)
        else:
            read_back(commit, run.store)
        state.mark_published(commit)
        self.repaired += repaired
        self.receipt.counts.repaired += repaired

    def _replace(self, commit: Commit) -> None:
        """Build the output of a commit again, or void the commit."""
        output = commit.output
        # Outputs with rows are only voided, and their sources planned again: the pinned columns may
        # have grown since the commit.
        if output is None or output.columnar is None:
            # A source that changed, or rows that no output can hold: all are planned again.
            with suppress(SourceChanged, RowsRefused):
                self._compact(group_of(commit, self.run.settings), replaces=commit.sequence)
        if commit.sequence in self.state.unpublished:
            self.run.log.append(self.state, commit.voided(self.run.run_id))

    # Planning.

    def plan(self, window: Window) -> CompactionPlan:
        """List a window and choose its groups; count skipped objects the first time only."""
        run, state = self.run, self.state
        self.must_replan = False
        if not self._own_skipped:
            self._skip_own_commits()
            self._own_skipped = True
        listing = self.listing.take(state, window)
        while True:
            fresh = (source for source in listing.objects if source.identity not in self._aside)
            listing = replace(listing, objects=tuple(fresh))
            knowledge = Knowledge(
                state.committed,
                state.left_alone(decided_by(run.settings)),
                self._signatures,
                self.listing.roots,
            )
            decision = plan(listing, run.settings, knowledge, run.listed_at)
            if not self._leave_outputs(decision.groups):
                break
        if not window.listed:
            for reason, skipped in decision.skipped.items():
                self.receipt.skip(reason, skipped)
            window.listed = True
            window.until = None if listing.complete else listing.last_key
        return decision

    def end_window(self, window: Window) -> Window | None:
        """Return the window that follows one in which nothing is left; None after the last."""
        self._unread.end_window()
        following = window.following()
        if following is not None:
            self._set_cursor(following)
        return following

    def _set_cursor(self, window: Window) -> None:
        # The rows of a refused group are tried again by a further call.
        if self._refused:
            return
        self.receipt.cursor = Cursor(
            window.after,
            dict(self.receipt.skipped),
            self._unread.before,
            self.receipt.quarantined[:SHOWN_QUARANTINED],
            *self._own(),
        )

    def _own(self) -> tuple[Skipped, Skipped]:
        totals = self.state.totals(self.run.run_id)
        return (
            Skipped(totals.sources, totals.source_bytes),
            Skipped(totals.quarantined, totals.quarantined_bytes),
        )

    def _leave_outputs(self, groups: Sequence[ObjectGroup]) -> bool:
        """Leave out sources that are outputs of any run; return True if there are any."""
        look = partial(outputs_among, store=self.run.store, no_outputs=self._no_outputs)
        outputs = [output for group in groups for output in look(group.sources)]
        self.set_aside(outputs)
        if outputs:
            size = sum(output.size for output in outputs)
            skipped = Skipped(len(outputs), size, (outputs[0].key,))
            self.receipt.skip(SkipReason.OWN_STATE, skipped)
        return bool(outputs)

    def _skip_own_commits(self) -> None:
        """Do not count as skipped what this run committed and now lists again."""
        committed, quarantined = self._own()
        cursor = self.receipt.cursor
        self.receipt.skip(SkipReason.COMMITTED, cursor.committed.less(committed))
        self.receipt.skip(SkipReason.QUARANTINED, cursor.quarantined.less(quarantined))

    # One group.

    def compact(self, group: ObjectGroup) -> bool:
        """Compact, verify, commit and publish one group.

        Returns:
            False if its window must be planned again before another group is begun.

        Raises:
            TransientStoreError: too many groups were given up since the last one was published.
            IntegrityError: what was stored is not what was read; or the log is damaged.
        """
        try:
            self._compact(group)
        except (SourceChanged, CommitConflict, UploadLost) as error:
            self.set_back(error)
            return False
        except RowsRefused as refused:
            self.set_aside(group.sources)
            self._refused.append(refused.error)
        return True

    def _compact(self, group: ObjectGroup, replaces: int | None = None) -> None:
        run = self.run
        started = run.clock.now()
        time = ReadingTime(run.deadline, run.clock, run.reserve_seconds)
        try:
            pending = self._store(group, time, replaces)
        except NothingReadable as error:
            self.leave_unread(group, QuarantineReason(error.reason), str(error))
            return
        self.must_replan |= self.learn(pending.misfits) or bool(pending.later)
        # The group did not fit into the time left.
        self._is_cut_short |= bool(pending.later) and time.over()
        draft = self.news_of(draft_of(pending, run.run_id, run.clock.now(), replaces))
        if draft is not None:
            self.commit(draft)
            self._longest_seconds = max(self._longest_seconds, run.clock.now() - started)

    def _store(self, group: ObjectGroup, time: ReadingTime, replaces: int | None) -> PendingOutput:
        """Read, store and verify a group while the identity of the log is read."""
        run = self.run
        identity = partial(self.log_id, is_rebuilt=replaces is not None)
        with Background(identity) as claim:
            destination = replace(run.destination, log_id=claim.result)
            with claim.first():
                try:
                    pending = store(group, run.settings, run.store, destination, time)
                except InvalidInput as error:
                    raise (RowsRefused(error) if group.form.rows else error) from error
            with dropping(pending.output, run.store):
                claim.join()
        return pending

    def log_id(self, *, is_rebuilt: bool = False) -> str:
        """Return the identity that outputs name, after a check of the log.

        Args:
            is_rebuilt: for an output that the log names already.

        Raises:
            IntegrityError: the log is gone, or names another state.
            InvalidInput: the state belongs to another destination.
        """
        if not (is_rebuilt or self._is_log_checked):
            self.run.log.require_whole(self.state)
            self._is_log_checked = True
        return self.run.log.claim(self.state)

    def learn(self, misfits: Mapping[bytes, Signature]) -> bool:
        """Keep signatures for the next plan; return True if any is new."""
        signatures = self._signatures
        is_news = any(
            signatures.get(identity) != signature for identity, signature in misfits.items()
        )
        signatures.update(misfits)
        return is_news

    def news_of(self, draft: Commit | None) -> Commit | None:
        """Return what a draft adds to the log, or None.

        Sources that could not be read for a reason that may pass, such as a missing permission,
        are set aside for this call, and every run tries them again. The log names each once.
        """
        if draft is None:
            return None
        passing = [unread for unread in draft.quarantined if unread.reason in PASSING_REASONS]
        self._leave_unread(passing)
        named_before = {unread.source.identity for unread in passing} & self.state.passing
        news = tuple(
            unread for unread in draft.quarantined if unread.source.identity not in named_before
        )
        draft = replace(draft, quarantined=news)
        return None if draft.empty else draft

    def commit(self, draft: Commit) -> Commit:
        """Append a draft to the log, which decides that it is committed, and publish its output.

        Raises:
            CommitConflict: another run committed these sources first, and the upload is aborted; or
                another run replaced the commit.
            UploadLost: committed, but the upload was dropped; it must be replaced.
        """
        run, state = self.run, self.state
        if draft.quarantined:
            draft = replace(draft, decided_by=decided_by(run.settings))
        draft = replace(draft, covered=covered_by_declaration(draft, run.settings))
        with dropping(draft.output, run.store, _NOT_WRITTEN):
            commit = run.log.append(state, draft)
        with unless_replaced(commit, run, state):
            publish(commit, run.store)
        read_back(commit, run.store)
        state.mark_published(commit)
        self.groups += 1
        self._setbacks = 0
        run.on_group(commit)
        return commit

    # What could not be done.

    def set_back(self, error: CompactorError) -> None:
        """Have the window planned again, because a source changed or another run was first.

        Raises:
            TransientStoreError: more than ``MAX_REPLANS`` plans were given up since the last
                published group.
        """
        self.count_set_back(type(error))
        self._setbacks += 1
        if self._setbacks > MAX_REPLANS:
            raise TransientStoreError(f"planned {MAX_REPLANS} times, last: {error}") from error

    def count_set_back(self, kind: type[CompactorError]) -> None:
        """Count a group that was given up, without limiting how many may be."""
        self.must_replan = True
        if issubclass(kind, SourceChanged):
            self.receipt.counts.changed += 1
            self.listing.doubt()
        elif issubclass(kind, CommitConflict):
            self.receipt.counts.conflicts += 1

    def leave_unread(self, group: ObjectGroup, reason: QuarantineReason, cause: str) -> None:
        """Set aside those sources of a group that earlier runs could not read either.

        Args:
            group: a group in which no source that was tried could be read.
            reason: the reason for the first source.
            cause: S3's error for the first source.

        Raises:
            InvalidInput: there are no such sources, or nothing in the partition was ever read: the
                role must be changed, not the sources.
        """
        unread_before = [
            source for source in group.sources if source.identity in self.state.passing
        ]
        if not unread_before or not self.state.committed:
            accepted = f"a role that may read the {len(group.sources)} sources of group {group.id}"
            raise InvalidInput("permission", cause, accepted)
        detail = f"not tried, as others were denied: {cause}"
        self._leave_unread([Quarantined(source, reason, detail) for source in unread_before])
        self.must_replan = True

    def _leave_unread(self, sources: Sequence[Quarantined]) -> None:
        """Leave out sources that cannot be read now; the next run tries them again."""
        self._unread.add(sources)
        self.set_aside([unread.source for unread in sources])

    def set_aside(self, sources: Sequence[SourceObject]) -> None:
        """Leave sources out of every later plan of this call."""
        self._aside |= {source.identity for source in sources}

    # The end of the call.

    def finish(self) -> bool:
        """Finish the partition after its last window; return False if time ran out before.

        Raises:
            TransientStoreError: the registry did not answer; commits are not affected.
            InvalidInput: several sources were denied and no source was ever read, or access to the
                registry is denied.
        """
        run, receipt = self.run, self.receipt
        # Other runs may have committed in the meantime.
        if not self.publish_unpublished():
            return False
        receipt.status = "done"
        if not self.state.committed:
            self._unread.require_few(run.partition.bucket)
        if run.listing is not None:
            gone = run.listing.gone_in(run.partition, self.state.committed)
            receipt.skip(SkipReason.GONE, gone)
        receipt.counts.marked += mark_registered(run, self.state, self.listing.roots).compacted
        return True

    def close(self) -> None:
        """Write into the receipt which sources could not be read, however the call ended."""
        self.listing.drop_pages()
        self._unread.close()

    def require_none_refused(self) -> None:
        """Require that the rows of every group could be written.

        Raises:
            InvalidInput: some were refused; why the first one was.
        """
        if not self._refused:
            return
        first, *further = self._refused
        more = f"; and {len(further):,} more groups" if further else ""
        raise InvalidInput(first.field, first.value, "", message=f"{first}{more}") from first

    def write_checkpoint(self) -> None:
        """Write a checkpoint of the log."""
        self.run.log.checkpoint(self.state)
