"""One call's work on one partition, from settling its log to updating the readers' table.

    settle the log -> plan a window -> (compact and verify a group) -> commit -> publish
    -> plan the window again, until nothing in it is left -> the next window -> finish -> show

A worker (a Lambda function, or the driver of the Spark job) decides when and where groups are
compacted. Both share four parts: :class:`Settling`, :class:`WindowPlanner`, :class:`GroupWork`
and, after the last window, :meth:`PartitionProgress.finish`.
"""

from __future__ import annotations

from dataclasses import replace

from compactor.destination import Destination
from compactor.errors import CommitConflict, CompactorError, InvalidInput, SourceChanged
from compactor.log.state import LogState
from compactor.model import SkipReason
from compactor.readers.outcome import Outcome
from compactor.runs.group_work import Claim, GroupWork, RowsRefused
from compactor.runs.listings import Listings
from compactor.runs.partition_run import Attempts, PartitionResult, PartitionRun
from compactor.runs.registered_objects import NamedBy, settle_registered
from compactor.runs.settling import Settling
from compactor.runs.source_notes import SourceNotes, require_readable
from compactor.runs.window_planner import WindowPlanner


class PartitionProgress:
    """The parts that do one call's work, and the state they share.

    Args:
        run: the run's input.
        state: the log as it was loaded.
        listings: listings already begun; by default the first plan begins them.

    Attributes:
        result: what was done so far.
        notes: findings about single sources.
        attempts: the time and retries left.
        windows: lists and plans windows.
        groups: compacts, verifies, commits and publishes.
        settling: publishes what earlier runs committed.
    """

    def __init__(
        self,
        run: PartitionRun,
        state: LogState,
        listings: Listings | None = None,
    ) -> None:
        self.run, self.state = run, state
        self.result = result = PartitionResult(done=False)
        for reason, one in run.place.skipped.items():
            result.skip(SkipReason(reason), one)
        self.notes = notes = SourceNotes(result)
        self.attempts = attempts = Attempts(run)
        self._refused: list[InvalidInput] = []
        self._claim = claim = Claim(run.log, state)
        self._named = named = NamedBy(run)
        self.groups = GroupWork(run, state, result, notes, named, attempts=attempts, claim=claim)
        self.windows = WindowPlanner(
            run,
            state,
            result,
            notes,
            named,
            listings=listings,
        )
        self.settling = Settling(
            run, state, result, self.groups, attempts=attempts, claim=claim, give_up=self.give_up
        )

    @property
    def destination(self) -> Destination:
        """The destination of outputs, with the identity of the log, which is checked first.

        The check ensures that the log names every output at the destination.
        """
        return replace(self.run.destination, log_id=self._claim.identity())

    def give_up(self, error: CompactorError) -> None:
        """Count a group given up because of another run or a changed source, to be planned again.

        Raises:
            TransientStoreError: too many were given up since the last group was published.
        """
        self.refuse(type(error))
        self.attempts.set_back(error)

    def refuse(self, kind: type[CompactorError]) -> None:
        """Count a group that was given up, without limiting how many may be."""
        if issubclass(kind, SourceChanged):
            self.result.changed += 1
            self.windows.listings.doubt()
        elif issubclass(kind, CommitConflict):
            self.result.conflicts += 1

    def set_aside(self, refused: RowsRefused) -> None:
        """Leave a group out of every later plan of this call, and continue with the others."""
        self.notes.set_aside(refused.group)
        self._refused.append(refused.error)

    def require_none_refused(self) -> None:
        """Require that the rows of every group could be written.

        Raises:
            InvalidInput: some were refused; why the first one was.
        """
        if not self._refused:
            return
        first, *others = self._refused
        more = f"; and {len(others):,} more groups" if others else ""
        raise InvalidInput(first.field, first.value, "", message=f"{first}{more}") from first

    def finish(self) -> PartitionResult:
        """Finish the call after its last window, and return what it did.

        Raises:
            TransientStoreError: registered objects could not be marked; commits are not affected.
            InvalidInput: several sources were denied and no source was ever read, or access to the
                registry is denied.
        """
        result, windows = self.result, self.windows
        # Other runs may have committed in the meantime.
        result.done = self.settling.settle()
        # Sources that earlier calls of this run dealt with do not count as skipped.
        result.leave_out(windows.passing.own)
        require_readable(result.unread.values(), self.state)
        if result.done:
            roots = windows.listings.roots
            result.marked = settle_registered(self.run, self.state, self._named, roots).compacted
        return result


def show(run: PartitionRun) -> Outcome | None:
    """Update the readers' table to the partition's current state.

    Failures are returned, and do not fail the run: commits stand, readers still see each record
    once, and clean-up waits.

    Returns:
        The outcome; None if the settings name no table.

    Raises:
        InvalidInput: the table has no column for the partition, so that no later run can show it
            either.
    """
    settings, path = run.settings, run.partition.path
    if settings.reader_table is None:
        return None
    from compactor.readers.refresh import Refreshing, refresh  # noqa: PLC0415 - few runs have such a table

    try:
        catalog = run.readers(settings.reader_table)
        work = Refreshing(settings, run.store, run.clock, catalog)
        (outcome,) = refresh([path], work)
    except CompactorError as error:
        return Outcome(path, fault=f"{type(error).__name__}: {error}")
    if outcome.is_refused:
        raise InvalidInput("reader_table", settings.reader_table, "", message=outcome.fault)
    return outcome
