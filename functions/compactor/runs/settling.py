"""Settles a partition's log: every commit in it is published, rebuilt or made void."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from compactor.errors import CommitConflict, CompactorError, SourceChanged, UploadLost
from compactor.log.entries import Commit
from compactor.log.state import LogState
from compactor.outputs.confirm import confirm
from compactor.outputs.publish import publish, withdraw
from compactor.runs import rebuilding
from compactor.runs.attempts import Attempts
from compactor.runs.claim import Claim
from compactor.runs.group_work import GroupWork
from compactor.runs.partition_run import PartitionResult, PartitionRun


class Settling:
    """Publishes what earlier runs committed.

    Args:
        run: what to do, and with what.
        state: the log.
        result: counts what was repaired.
        work: builds an output again; None where a lost one makes its commit void, and its sources
            are planned again.
        attempts: how long to go on.
        claim: on the log.
        refuse: counts what was given up for the next plan.
    """

    def __init__(
        self,
        run: PartitionRun,
        state: LogState,
        result: PartitionResult,
        work: GroupWork | None,
        *,
        attempts: Attempts,
        claim: Claim,
        refuse: Callable[[type[CompactorError]], None],
    ) -> None:
        self._run, self._state, self._result, self._work = run, state, result, work
        self._attempts, self._claim, self._refuse = attempts, claim, refuse

    def settle(self) -> bool:
        """Publish every commit in the log that is not yet; False when time ran out.

        Raises:
            IntegrityError: an output is there that no entry names.
            TransientStoreError: other runs kept changing the log.
            InvalidInput: this role may not read the sources of an output that was lost.
        """
        self._run.log.settle_numbers(self._state)
        while (commit := self._claim.unpublished()) is not None:
            if self._attempts.out_of_time:
                return False
            try:
                self._publish(commit)
            except (CommitConflict, UploadLost) as error:
                # Another run is repairing it, and the log state is up to date now; or what was
                # just built again was dropped before it was published.
                self._refuse(type(error))
                self._attempts.set_back(error)
        return True

    def _publish(self, commit: Commit) -> None:
        """Publish what another run committed, or build it again, or make its commit void."""
        run, state = self._run, self._state
        try:
            with rebuilding.unless_replaced(commit, run, state):
                run.log.note_publication(commit)
                repaired = publish(commit, run.store)
        except UploadLost:
            with rebuilding.unless_replaced(commit, run, state):
                repaired = withdraw(commit, run.store)
            if rebuilding.is_given(commit, run):
                repaired = False
            if repaired:
                self._replace(commit)
        else:
            confirm(commit, run.store)
        state.mark_published(commit)
        self._result.repaired += repaired

    def _replace(self, commit: Commit) -> None:
        output = commit.output
        # Rows are written by Spark alone, and not for what this run is asked to do.
        if self._work is not None and (output is None or output.columnar is None):
            with suppress(SourceChanged):
                self._work.do(rebuilding.group_of(commit), replaces=commit.sequence)
        if commit.sequence in self._state.unpublished:
            # A source changed, or may not be read any more: those that are left are planned again.
            self._run.log.append(self._state, commit.voided(self._run.run_id))
