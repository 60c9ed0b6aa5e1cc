"""How far the run of one partition has come: what every worker of partitions shares.

A worker (the Lambda function's, or the driver of the Spark job) decides when and where groups
are compacted. What a partition's log, listing and counts need around that is here:

    settle the log -> plan a window -> (compact and check a group) -> commit -> publish
    -> plan the window again, until nothing in it is left -> the window behind it
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from compactor.destination import Destination
from compactor.discovery.worth import Worth
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
from compactor.log.contents import Contents
from compactor.log.entries import Commit
from compactor.log.identity import outputs_among
from compactor.log.state import LogState
from compactor.model import (
    CompactionPlan,
    ObjectGroup,
    Quarantined,
    QuarantineReason,
    Signature,
    Skipped,
    SkipReason,
)
from compactor.outputs.again import found_in
from compactor.outputs.confirm import confirm
from compactor.outputs.detection import decided_by
from compactor.outputs.group import draft_of, drop, dropping, store_group
from compactor.outputs.publish import publish, withdraw
from compactor.outputs.reading_time import ReadingTime
from compactor.planning.dialects import Dialects
from compactor.planning.plan import Knowledge, plan
from compactor.runs import rebuilding
from compactor.runs.claim import Claim
from compactor.runs.given import PartitionResult, PartitionRun
from compactor.runs.listings import Listings
from compactor.runs.place import Own, Passing
from compactor.runs.registered import NamedBy, settle_registered
from compactor.runs.resting import RestNotes
from compactor.runs.returned import note_returned
from compactor.runs.unlike import Unlike
from compactor.runs.unread import known_as_denied, passing, require_readable, without_known
from compactor.runs.window import Window

# A source may change while it is read, or another run may be first; then plan again.
MAX_REPLANS = 20
# Any other error may hide a commit that was written: then the upload is needed.
_NOT_WRITTEN = (CommitConflict, IntegrityError, InvalidInput)


class PartitionProgress:
    """One partition's run: its log, what was learned of its sources, and its counts.

    Args:
        run: what to do, and with what.
        state: the log as it was loaded.
        rebuild: build an output that was lost before it was published again; otherwise its
            commit becomes void, and its sources are planned anew.
    """

    def __init__(self, run: PartitionRun, state: LogState, *, rebuild: bool = True) -> None:
        self.run = run
        self.state = state
        self.result = PartitionResult(done=False)
        self.named = NamedBy(run)
        self.signatures: dict[bytes, Signature] = {}
        self.lessons = self._setbacks = 0
        self.longest_seconds, self._time_is_up = 0.0, False
        self._rebuild = rebuild
        self._claim = Claim(run.log, state)
        self._aside: set[bytes] = set()
        #: Of the run; one that was begun before may take its place.
        self.listings = Listings(run)
        self.rest = RestNotes(run)
        self._no_outputs: set[bytes] = set()
        self._unlike = Unlike()
        self.passing = Passing(run.place, Own.of(state.totals(run.run_id)))
        self._dialects = run.dialects or Dialects(run.settings, run.store)
        self._worth = Worth(run.settings, run.store, begun=self.passing.own.committed.objects > 0)
        for reason, one in run.place.skipped.items():
            self.result.skip(SkipReason(reason), one)

    def settle(self) -> bool:
        """Publish every commit in the log that is not yet; False when time ran out.

        Raises:
            IntegrityError: an output is there that no entry names.
            TransientStoreError: other runs kept changing the log.
            InvalidInput: this role may not read the sources of an output that was lost.
        """
        self.run.log.settle_numbers(self.state)
        while (commit := self._claim.unpublished()) is not None:
            if self.out_of_time():
                return False
            try:
                self._repair(commit)
            except (CommitConflict, UploadLost) as error:
                # Another run is repairing it, and the log state is up to date now; or what was
                # just built again was dropped before it was published.
                self.refuse(type(error))
                self.set_back(error)
        return True

    def plan_window(self, window: Window) -> CompactionPlan:
        """List a window and choose its groups; what is left alone is counted the first time."""
        run, state = self.run, self.state
        listing = self.listings.take(state, window)
        gone = self.listings.gone(listing, window, state.committed)
        self.result.skip(self.listings.gone_reason, gone)
        self.named.met(listing.returned)
        self.rest.listed = listing = note_returned(run, state, listing)
        state.foreign = Contents()
        if self._aside:
            left = (one for one in listing.objects if one.identity not in self._aside)
            listing = replace(listing, objects=tuple(left))
        left_alone = state.left_alone(decided_by(run.settings), self.dialects_version)
        known = Knowledge(
            state.committed,
            left_alone,
            self.signatures,
            state.buckets,
            run.clock.now(),
            self.listings.roots,
        )
        decision = plan(listing, run.settings, known, run.listed_at)
        if decision.groups:
            if self._leave_outputs(decision.groups):
                return self.plan_window(window)
            decision = self._worth.of(decision)
        if not window.listed:
            for reason, one in decision.skipped.items():
                self.result.skip(reason, one)
            window.listed = True
            window.until = None if listing.complete else listing.last_key
        held = self.state.contents.held_by
        unlike = self._unlike.at(self.state.last)
        return replace(decision, groups=tuple(held(one, unlike) for one in decision.groups))

    def ended(self, window: Window) -> None:
        """Nothing is left of a window that is planned no more."""
        self.rest.ended(window, self.state)
        result, dealt_with = self.result, Own.of(self.state.totals(self.run.run_id))
        self.passing.ended(window.until, result.skipped, dealt_with, in_full=not result.unread)

    def pause(self) -> None:
        """No window is planned for a while: hold nothing for the next one."""
        self.listings.pause()

    @property
    def destination(self) -> Destination:
        """Where outputs go, and which log they name, which is known to name all that are there."""
        return replace(self.run.destination, log_id=self._claim.identity())

    def dialects_version(self) -> str:
        """Names what is pinned for the CSV sources of the partition's data set."""
        return self._dialects.version(self.run.partition.prefix)

    def learn(self, misfits: Mapping[bytes, Signature]) -> bool:
        """Remember signatures of sources for the next plan; True when that will be another one."""
        known = self.signatures
        news = any(known.get(identity) != one for identity, one in misfits.items())
        known.update(misfits)
        self.lessons += news
        return news

    def do_group(self, group: ObjectGroup, replaces: int | None = None) -> None:
        """Compact, check, commit and publish one group here and now.

        What of it does not fit the time of this call is left to the next plan.

        Args:
            group: which.
            replaces: sequence of the commit in whose place this one is.

        Raises:
            SourceChanged: a source is not what was listed.
            CommitConflict: another run was first.
            UploadLost: committed, but somebody dropped the upload: settle the log again.
        """
        run, created = self.run, self._dialects.created
        started = run.clock.now()
        time = ReadingTime(run.deadline, run.clock, run.reserve_seconds)
        try:
            with self._claim.beside(whole=replaces is None) as claim:
                destination = replace(run.destination, log_id=claim.result)
                with claim.first():
                    pending = store_group(
                        group, run.settings, run.store, destination, time, dialects=self._dialects
                    )
                with dropping(pending.output, run.store):
                    claim.join()
        except NothingReadable as error:
            self.leave_unread(group, QuarantineReason(error.reason), str(error))
            return
        self.learn(pending.misfits)
        # Sources that wait for what was just decided are planned again.
        self.lessons += self._dialects.created > created
        if pending.later:
            self.lessons += 1
            self._time_is_up = self._time_is_up or time.over()
        draft = self.news_of(draft_of(pending, run.run_id, run.clock.now(), replaces))
        if draft is not None:
            self.commit(draft)
            self.longest_seconds = max(self.longest_seconds, run.clock.now() - started)

    def news_of(self, draft: Commit | None) -> Commit | None:
        """What a draft adds to the log, None for nothing; what may not be read is set aside."""
        if draft is None:
            return None
        self._leave(passing(draft))
        news = without_known(self._with_origin(draft), self.state)
        return None if news.empty else news

    def _with_origin(self, draft: Commit) -> Commit:
        """The draft with the commits that have the content of what came again.

        Raises:
            CommitConflict: some content only looked like that; the upload is aborted.
        """
        if not draft.again:
            return draft
        run = self.run
        with dropping(draft.output, run.store):
            commits = run.log.every_commit(self.state.last)
            found = found_in(draft.again, commits, self.state.published, run.store)
        unlike = {one.source.identity for one in draft.again}
        unlike -= {one.source.identity for one in found}
        if unlike:
            if not self.state.unpublished:
                # Otherwise one of those may have it, and is published before the next plan.
                self._unlike.add(unlike, self.state.last)
            drop(draft.output, run.store)
            raise CommitConflict(f"{len(unlike)} sources are not what was compacted before")
        return replace(draft, again=found)

    def leave_unread(self, group: ObjectGroup, reason: QuarantineReason, cause: str) -> None:
        """Set aside those of a group that are known as denied; it is planned again without them.

        Raises:
            InvalidInput: there are none such: it is the role, not the sources.
        """
        self._leave(known_as_denied(group, reason, cause, self.state))
        self.lessons += 1

    def _leave(self, sources: Iterable[Quarantined]) -> None:
        found = {one.source.identity: one for one in sources}
        self.result.unread |= found
        self._aside |= found.keys()

    def commit(self, draft: Commit) -> Commit:
        """Append a draft to the log and publish its output.

        Raises:
            CommitConflict: another run was first; the upload is aborted.
            UploadLost: committed, but somebody dropped the upload: settle the log again.
        """
        run = self.run
        if draft.quarantined:
            waits = any(q.reason is QuarantineReason.AMBIGUOUS_HEADER for q in draft.quarantined)
            dialects = self.dialects_version() if waits else None
            draft = replace(draft, decided_by=decided_by(run.settings, dialects))
        with dropping(draft.output, run.store):
            run.log.prepare(self.state)
        with dropping(draft.output, run.store, _NOT_WRITTEN):
            commit = run.log.append(self.state, draft)
        with rebuilding.unless_replaced(commit, run, self.state):
            publish(commit, run.store)
        confirm(commit, run.store)
        self.state.mark_published(commit)
        self.named.add(commit)
        self.result.groups += 1
        self._setbacks = 0
        run.on_group(commit)
        return commit

    def refuse(self, kind: type[CompactorError]) -> None:
        """Count a group that was given up for the next plan."""
        if issubclass(kind, SourceChanged):
            self.result.changed += 1
            self.listings.doubt()
        elif issubclass(kind, CommitConflict):
            self.result.conflicts += 1

    def set_aside(self, group: ObjectGroup) -> None:
        """Leave the sources of a group that failed out of every later plan of this run."""
        self._aside |= {source.identity for source in group.sources}

    def set_back(self, error: Exception) -> None:
        """Take it that a plan came to nothing.

        Raises:
            TransientStoreError: too many did since the last group was published.
        """
        self._setbacks += 1
        if self._setbacks > MAX_REPLANS:
            raise TransientStoreError(f"planned {MAX_REPLANS} times, last: {error}") from error

    def finish(self) -> PartitionResult:
        """What was done, after the last window.

        Raises:
            TransientStoreError: commits stand, and what became of registered objects is not noted.
        """
        # Commits of other runs may have come in on the way.
        self.result.done = self.settle()
        # What earlier calls of this very run did, it did not skip.
        self.result.leave_out(self.passing.own)
        require_readable(self.result.unread.values(), self.state)
        if self.result.done:
            found = settle_registered(self.run, self.state, self.named, self.listings.roots)
            self.result.marked = found.compacted
        return self.result

    def out_of_time(self) -> bool:
        """True when no further group should be started."""
        if self._time_is_up:
            return True
        needed = self.run.reserve_seconds + 1.5 * self.longest_seconds
        return self.run.deadline.remaining_seconds() < needed

    def _leave_outputs(self, groups: Sequence[ObjectGroup]) -> bool:
        """Leave out sources that are outputs of some run; True where there are any."""
        look = partial(outputs_among, store=self.run.store, no_outputs=self._no_outputs)
        found = [one for group in groups for one in look(group.sources)]
        self._aside |= {one.identity for one in found}
        if found:
            left = Skipped(len(found), sum(one.size for one in found), (found[0].key,))
            self.result.skip(SkipReason.OWN_STATE, left)
        return bool(found)

    def _repair(self, commit: Commit) -> None:
        """Publish what another run committed, or build it again, or make its commit void."""
        try:
            with rebuilding.unless_replaced(commit, self.run, self.state):
                self.run.log.note_publication(commit)
                repaired = publish(commit, self.run.store)
        except UploadLost:
            with rebuilding.unless_replaced(commit, self.run, self.state):
                repaired = withdraw(commit, self.run.store)
            if rebuilding.is_given(commit, self.run):
                repaired = False
            if repaired:
                self._replace(commit)
        else:
            confirm(commit, self.run.store)
        self.state.mark_published(commit)
        self.result.repaired += repaired

    def _replace(self, commit: Commit) -> None:
        output = commit.output
        # Rows are written by Spark alone, and not for what this run is asked to do.
        if self._rebuild and (output is None or output.columnar is None):
            with suppress(SourceChanged):
                self.do_group(rebuilding.group_of(commit), replaces=commit.sequence)
        if commit.sequence in self.state.unpublished:
            # A source changed, or may not be read any more: those that are left are planned again.
            self.run.log.append(self.state, commit.voided(self.run.run_id))
