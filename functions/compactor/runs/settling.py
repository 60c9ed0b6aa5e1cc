"""Settles a partition's log, so that every commit in it is published, rebuilt or void."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from compactor.encoding.output_encoding import output_form
from compactor.errors import (
    CommitConflict,
    CompactorError,
    SourceChanged,
    UploadLost,
)
from compactor.log.entries import Commit
from compactor.log.state import LogState
from compactor.model import ObjectGroup
from compactor.outputs.publish import publish, withdraw
from compactor.outputs.verify import read_back
from compactor.runs.group_work import Claim, GroupWork, unless_replaced
from compactor.runs.partition_run import Attempts, PartitionResult, PartitionRun
from compactor.settings.settings import Settings


class Settling:
    """Publishes what earlier runs committed.

    Args:
        run: the run's input.
        state: the log.
        result: counts repaired commits.
        work: rebuilds lost outputs.
        attempts: the time left.
        claim: the call's claim on the log.
        give_up: called with the error when a commit has to be tried again.
    """

    def __init__(
        self,
        run: PartitionRun,
        state: LogState,
        result: PartitionResult,
        work: GroupWork,
        *,
        attempts: Attempts,
        claim: Claim,
        give_up: Callable[[CompactorError], None],
    ) -> None:
        self._run, self._state, self._result, self._work = run, state, result, work
        self._attempts, self._claim, self._give_up = attempts, claim, give_up

    def settle(self) -> bool:
        """Publish every unpublished commit in the log; return False if time ran out.

        Raises:
            IntegrityError: an output exists that no entry names.
            TransientStoreError: other runs kept changing the log.
            InvalidInput: this role may not read the sources of a lost output.
        """
        self._run.log.settle_numbers(self._state)
        while (commit := self._claim.unpublished()) is not None:
            if self._attempts.out_of_time():
                return False
            try:
                self._publish(commit)
            except (CommitConflict, UploadLost) as error:
                # Another run is repairing the commit, and the log state is up to date now; or the
                # rebuilt upload was dropped before it was published.
                self._give_up(error)
        return True

    def _publish(self, commit: Commit) -> None:
        """Publish another run's commit; if the output is lost, rebuild it or void the commit."""
        run, state = self._run, self._state
        try:
            with unless_replaced(commit, run, state):
                run.log.note_publication(commit)
                repaired = publish(commit, run.store)
        except UploadLost:
            with unless_replaced(commit, run, state):
                repaired = withdraw(commit, run.store)
            if is_given(commit, run):
                repaired = False
            if repaired:
                self._replace(commit)
        else:
            read_back(commit, run.store)
        state.mark_published(commit)
        self._result.repaired += repaired

    def _replace(self, commit: Commit) -> None:
        output = commit.output
        # Rows are planned again, because the pinned columns may have grown since the commit.
        if output is None or output.columnar is None:
            with suppress(SourceChanged):
                self._work.do(group_of(commit, self._run.settings), replaces=commit.sequence)
        if commit.sequence in self._state.unpublished:
            # A source changed or can no longer be read, so the remaining ones are planned again.
            self._run.log.append(self._state, commit.voided(self._run.run_id))


def group_of(commit: Commit, settings: Settings) -> ObjectGroup:
    """Return the group of a commit's output, to be rebuilt with the same bytes."""
    output = commit.output
    copied = output is not None and output.copied
    sources = tuple(row.source for row in commit.rows)
    return ObjectGroup(commit.group_id, sources, copied, output_form(settings, sources[0].key))


def is_given(commit: Commit, run: PartitionRun) -> bool:
    """Return True if the table log names the commit's output.

    The table may have rewritten its rows elsewhere and deleted the output.

    Raises:
        IntegrityError: the table log is damaged or was altered.
    """
    from compactor.sinks.table_proof import is_given  # noqa: PLC0415 - outputs are hardly ever lost

    return is_given(run.settings, run.store, run.partition.path, commit.sequence)
