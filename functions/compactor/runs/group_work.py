"""Takes one group from its first GET to its publication: compact, verify, commit, publish.

The checks of a partition's log do not depend on the content of its sources, so the first sources
are read concurrently. The upload is created only after the checks, when the identity of the log is
known.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from compactor.destination import Destination
from compactor.errors import (
    CommitConflict,
    CompactorError,
    IntegrityError,
    InvalidInput,
    NothingReadable,
)
from compactor.log.entries import Commit
from compactor.log.log import CommitLog
from compactor.log.state import LogState
from compactor.model import ObjectGroup, QuarantineReason
from compactor.outputs.detection import decided_by
from compactor.outputs.group import draft_of, drop, dropping
from compactor.outputs.group_reading import ReadingTime
from compactor.outputs.known_contents import found_in
from compactor.outputs.pending import PendingOutput
from compactor.outputs.publish import publish
from compactor.outputs.verify import read_back
from compactor.process.background import Background
from compactor.runs.partition_run import Attempts, PartitionResult, PartitionRun
from compactor.runs.registered_objects import NamedBy
from compactor.runs.source_notes import SourceNotes, known_as_denied, passing, without_known
from compactor.runs.storing import store


class Claim:
    """One call's claim on a log.

    Args:
        log: the partition's log.
        state: the log as it was loaded; changed while :meth:`beside` is at work.
    """

    def __init__(self, log: CommitLog, state: LogState) -> None:
        self._log = log
        self._state = state
        self._whole = False
        self._published_at = 0

    def identity(self, *, whole: bool = True) -> str:
        """Return the log's identity, creating it if needed.

        Not called by runs that have nothing to do.

        Args:
            whole: check that the log names every existing output, once per call. Not needed for
                rebuilding an output, which the log names already.

        Raises:
            IntegrityError: entries are missing, or name another state than this one.
            InvalidInput: the state belongs to another destination.
        """
        if whole and not self._whole:
            self._require_whole()
        return self._log.claim(self._state)

    def unpublished(self) -> Commit | None:
        """Return the first committed but unpublished entry, or None.

        If entries were lost, an output that no entry names may hold the same records. This is
        checked first, and again whenever the log has grown.

        Raises:
            IntegrityError: there is such an output.
        """
        state = self._state
        if state.unpublished and self._published_at < state.last:
            self._require_whole()
            self._published_at = state.last
        return min(state.unpublished.values(), key=lambda one: one.sequence, default=None)

    def _require_whole(self) -> None:
        self._log.require_whole(self._state)
        self._log.settle_numbers(self._state)
        self._whole = True

    def beside(self, *, whole: bool) -> Background[str]:
        """Run :meth:`identity` in the background of a block, then check the recorded scheme.

        Raises:
            IntegrityError: at the end of the block, as :meth:`identity`; or the scheme is missing.
            InvalidInput: likewise; or the destination was built with another scheme.
        """
        look = partial(self._log.look_at_scheme, self._state)
        return Background(partial(self.identity, whole=whole), look)


class RowsRefused(CompactorError):
    """No output can hold the rows of a group, which says nothing of other groups.

    Attributes:
        group: the group.
        error: why not, and what is accepted.
    """

    def __init__(self, group: ObjectGroup, error: InvalidInput) -> None:
        super().__init__(str(error))
        self.group = group
        self.error = error


# After any other error the commit may have been written, and then its upload is still needed.
_NOT_WRITTEN = (CommitConflict, IntegrityError, InvalidInput)


class GroupWork:
    """Compacts and commits the groups of one call.

    Args:
        run: the run's input.
        state: the log.
        result: counts the groups.
        notes: receives findings about single sources.
        named: receives the sources of each commit.
        attempts: receives the time each group takes.
        claim: the call's claim on the log.
    """

    def __init__(
        self,
        run: PartitionRun,
        state: LogState,
        result: PartitionResult,
        notes: SourceNotes,
        named: NamedBy,
        *,
        attempts: Attempts,
        claim: Claim,
    ) -> None:
        self._run, self._state, self._result = run, state, result
        self._notes, self._named = notes, named
        self._attempts, self._claim = attempts, claim

    def do(self, group: ObjectGroup, replaces: int | None = None) -> None:
        """Compact, verify, commit and publish one group in this process.

        Sources that do not fit into this call's time are left to the next plan.

        Args:
            group: the group.
            replaces: sequence number of the commit that this one replaces, if any.

        Raises:
            SourceChanged: a source differs from its listing.
            CommitConflict: another run committed first.
            UploadLost: committed, but the upload was dropped; the log must be settled again.
            RowsRefused: no output can hold the rows of this group.
        """
        run = self._run
        started = run.clock.now()
        time = ReadingTime(run.deadline, run.clock, run.reserve_seconds)
        try:
            with self._claim.beside(whole=replaces is None) as claim:
                destination = replace(run.destination, log_id=claim.result)
                with claim.first():
                    pending = self._stored(group, destination, time)
                with dropping(pending.output, run.store):
                    claim.join()
        except NothingReadable as error:
            self.leave_unread(group, QuarantineReason(error.reason), str(error))
            return
        self._notes.learn(pending.misfits)
        if pending.later:
            self._notes.lessons += 1
            if time.over():
                self._attempts.cut_short()
        draft = self.news_of(draft_of(pending, run.run_id, run.clock.now(), replaces))
        if draft is not None:
            self.commit(draft)
            self._attempts.took(run.clock.now() - started)

    def _stored(
        self, group: ObjectGroup, destination: Destination, time: ReadingTime
    ) -> PendingOutput:
        settings, objects = self._run.settings, self._run.store
        try:
            return store(group, settings, objects, destination, time)
        except InvalidInput as error:
            if not group.form.rows:
                raise
            raise RowsRefused(group, error) from error

    def news_of(self, draft: Commit | None) -> Commit | None:
        """Return what a draft adds to the log, or None; set its unreadable sources aside."""
        if draft is None:
            return None
        self._notes.leave_unread(passing(draft))
        news = without_known(self._with_origin(draft), self._state)
        return None if news.empty else news

    def leave_unread(self, group: ObjectGroup, reason: QuarantineReason, cause: str) -> None:
        """Set aside a group's sources that earlier runs could not read; the rest is planned again.

        Raises:
            InvalidInput: there are no such sources; the role is at fault, not the sources.
        """
        self._notes.leave_unread(known_as_denied(group, reason, cause, self._state))
        self._notes.lessons += 1

    def commit(self, draft: Commit) -> Commit:
        """Append a draft to the log and publish its output.

        Raises:
            CommitConflict: another run committed first; the upload is aborted.
            UploadLost: committed, but the upload was dropped; the log must be settled again.
        """
        run, state = self._run, self._state
        if draft.quarantined:
            draft = replace(draft, decided_by=decided_by(run.settings))
        with dropping(draft.output, run.store):
            run.log.prepare(state)
        with dropping(draft.output, run.store, _NOT_WRITTEN):
            commit = run.log.append(state, draft)
        with unless_replaced(commit, run, state):
            publish(commit, run.store)
        read_back(commit, run.store)
        state.mark_published(commit)
        self._named.add(commit)
        self._result.groups += 1
        self._attempts.published()
        run.on_group(commit)
        return commit

    def _with_origin(self, draft: Commit) -> Commit:
        """Return the draft with the original commit of each source that was delivered again.

        Raises:
            CommitConflict: some sources only looked like committed content; the upload is aborted.
        """
        if not draft.again:
            return draft
        run, state = self._run, self._state
        with dropping(draft.output, run.store):
            commits = run.log.every_commit(state.last)
            found = found_in(draft.again, commits, state.published, run.store)
        unlike = {one.source.identity for one in draft.again}
        unlike -= {one.source.identity for one in found}
        if unlike:
            if not state.unpublished:
                # An unpublished commit may have the content. It is published before the next plan.
                self._notes.unlike.add(unlike, state.last)
            drop(draft.output, run.store)
            raise CommitConflict(f"{len(unlike)} sources are not what was compacted before")
        return replace(draft, again=found)


@contextmanager
def unless_replaced(commit: Commit, run: PartitionRun, state: LogState) -> Iterator[None]:
    """Turn an integrity error into a conflict if the commit has been replaced by another run.

    After a commit is void, its output key may get other bytes: a group with the same first source,
    but fewer or more sources after it.

    Raises:
        CommitConflict: the commit was replaced in the meantime.
    """
    try:
        yield
    except IntegrityError as error:
        run.log.refresh(state)
        if commit.sequence not in state.replaced:
            raise
        raise CommitConflict(f"commit {commit.sequence} was replaced meanwhile") from error
