"""Takes one group from its first GET to its publication: compact, verify, commit, publish.

What is asked of a partition's log before anything is stored for it does not depend on what the
sources hold, so the first of them are read meanwhile. The upload of an output is not created before
it is known which log will name it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from compactor.errors import CommitConflict, IntegrityError, InvalidInput, NothingReadable
from compactor.log.entries import Commit
from compactor.log.log import CommitLog
from compactor.log.state import LogState
from compactor.model import ObjectGroup, QuarantineReason
from compactor.outputs.detection import decided_by
from compactor.outputs.group import draft_of, drop, dropping, store_group
from compactor.outputs.group_reading import ReadingTime
from compactor.outputs.known_contents import found_in
from compactor.outputs.publish import publish
from compactor.outputs.verify import confirm
from compactor.planning.dialects import Dialects
from compactor.process.background import Background
from compactor.runs.partition_run import Attempts, PartitionResult, PartitionRun
from compactor.runs.registered_objects import NamedBy
from compactor.runs.source_notes import SourceNotes, known_as_denied, passing, without_known


class Claim:
    """One call's claim on a log.

    Args:
        log: of the partition.
        state: as it was loaded; changed while :meth:`beside` is at work.
    """

    def __init__(self, log: CommitLog, state: LogState) -> None:
        self._log = log
        self._state = state
        self._whole = False
        self._published_at = 0

    def identity(self, *, whole: bool = True) -> str:
        """Which log it is; a run with nothing to do never asks.

        Args:
            whole: the log must name every output that is there, which is asked once a call. What
                is built again is named already.

        Raises:
            IntegrityError: entries are gone, or the state is not the one that they name.
            InvalidInput: the state is that of another destination.
        """
        if whole and not self._whole:
            self._log.require_whole(self._state)
            self._log.settle_numbers(self._state)
            self._whole = True
        return self._log.claim(self._state)

    def unpublished(self) -> Commit | None:
        """The first commit of the log that is to be published still; None where all are.

        Where entries are gone, an output that none names may hold the same records: that is looked
        for first, and again once the log has grown.

        Raises:
            IntegrityError: there is such an output.
        """
        state = self._state
        if state.unpublished and self._published_at < state.last:
            self._log.require_whole(state)
            self._log.settle_numbers(state)
            self._published_at, self._whole = state.last, True
        return min(state.unpublished.values(), key=lambda one: one.sequence, default=None)

    def beside(self, *, whole: bool) -> Background[str]:
        """The same while a block goes on, and then whether the scheme is remembered.

        Raises:
            IntegrityError: at its end, as :meth:`identity`; or the scheme is gone.
            InvalidInput: likewise; or the destination was made of other partitions.
        """
        look = partial(self._log.look_at_scheme, self._state)
        return Background(partial(self.identity, whole=whole), look)


# Any other error may hide a commit that was written: then the upload is needed.
_NOT_WRITTEN = (CommitConflict, IntegrityError, InvalidInput)


class GroupWork:
    """Compacts and commits the groups of one call.

    Args:
        run: what to do, and with what.
        state: the log.
        result: counts the groups.
        notes: learns what is found out of single sources.
        named: learns which sources a commit names.
        attempts: learns how long groups take.
        claim: on the log.
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
        self._dialects = run.dialects or Dialects(run.settings, run.store)

    def dialects_version(self) -> str:
        """Names what is pinned for the CSV sources of the partition's data set."""
        return self._dialects.version(self._run.partition.prefix)

    def do(self, group: ObjectGroup, replaces: int | None = None) -> None:
        """Compact, verify, commit and publish one group here and now.

        What of it does not fit the time of this call is left to the next plan.

        Args:
            group: which.
            replaces: sequence of the commit in whose place this one is.

        Raises:
            SourceChanged: a source is not what was listed.
            CommitConflict: another run was first.
            UploadLost: committed, but the upload was dropped: settle the log again.
        """
        run, created = self._run, self._dialects.created
        started = run.clock.now()
        time = ReadingTime(run.deadline, run.clock, run.reserve_seconds)
        try:
            with self._claim.beside(whole=replaces is None) as claim:
                destination = replace(run.destination, log_id=claim.result)
                with claim.first():
                    pending = store_group(
                        group, run.settings, run.store, destination, time, decide=self._dialects
                    )
                with dropping(pending.output, run.store):
                    claim.join()
        except NothingReadable as error:
            self.leave_unread(group, QuarantineReason(error.reason), str(error))
            return
        self._notes.learn(pending.misfits)
        # Sources that wait for what was just decided are planned again.
        self._notes.lessons += self._dialects.created > created
        if pending.later:
            self._notes.lessons += 1
            if time.over():
                self._attempts.cut_short()
        draft = self.news_of(draft_of(pending, run.run_id, run.clock.now(), replaces))
        if draft is not None:
            self.commit(draft)
            self._attempts.took(run.clock.now() - started)

    def news_of(self, draft: Commit | None) -> Commit | None:
        """What a draft adds to the log, None for nothing; what may not be read is set aside."""
        if draft is None:
            return None
        self._notes.leave_unread(passing(draft))
        news = without_known(self._with_origin(draft), self._state)
        return None if news.empty else news

    def leave_unread(self, group: ObjectGroup, reason: QuarantineReason, cause: str) -> None:
        """Set aside those of a group that are known as denied; it is planned again without them.

        Raises:
            InvalidInput: there are none such: it is the role, not the sources.
        """
        self._notes.leave_unread(known_as_denied(group, reason, cause, self._state))
        self._notes.lessons += 1

    def commit(self, draft: Commit) -> Commit:
        """Append a draft to the log and publish its output.

        Raises:
            CommitConflict: another run was first; the upload is aborted.
            UploadLost: committed, but the upload was dropped: settle the log again.
        """
        run, state = self._run, self._state
        if draft.quarantined:
            waits = any(q.reason is QuarantineReason.AMBIGUOUS_HEADER for q in draft.quarantined)
            dialects = self.dialects_version() if waits else None
            draft = replace(draft, decided_by=decided_by(run.settings, dialects))
        with dropping(draft.output, run.store):
            run.log.prepare(state)
        with dropping(draft.output, run.store, _NOT_WRITTEN):
            commit = run.log.append(state, draft)
        with unless_replaced(commit, run, state):
            publish(commit, run.store)
        confirm(commit, run.store)
        state.mark_published(commit)
        self._named.add(commit)
        self._result.groups += 1
        self._attempts.published()
        run.on_group(commit)
        return commit

    def _with_origin(self, draft: Commit) -> Commit:
        """The draft with the commits that have the content of what came again.

        Raises:
            CommitConflict: some content only looked like that; the upload is aborted.
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
                # Otherwise one of those may have it, and is published before the next plan.
                self._notes.unlike.add(unlike, state.last)
            drop(draft.output, run.store)
            raise CommitConflict(f"{len(unlike)} sources are not what was compacted before")
        return replace(draft, again=found)


@contextmanager
def unless_replaced(commit: Commit, run: PartitionRun, state: LogState) -> Iterator[None]:
    """Treat it as a lost race where another output stands at the key of a replaced commit.

    One key may get other bytes once its commit is void: from the same first source on, fewer or
    more of those after it.

    Raises:
        CommitConflict: the commit was replaced meanwhile.
    """
    try:
        yield
    except IntegrityError as error:
        run.log.refresh(state)
        if commit.sequence not in state.replaced:
            raise
        raise CommitConflict(f"commit {commit.sequence} was replaced meanwhile") from error
