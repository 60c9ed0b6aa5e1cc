"""One call's work on one partition, from its log to what readers see of it.

    settle the log -> plan a window -> (compact and verify a group) -> commit -> publish
    -> plan the window again, until nothing in it is left -> the next window -> finish -> show

A worker (a Lambda function, or the driver of the Spark job) decides when and where groups are
compacted. The four parts here are the same for both: :class:`Settling`, :class:`WindowPlanner`,
:class:`GroupWork` and, after the last window, :meth:`PartitionProgress.finish`.
"""

from __future__ import annotations

from dataclasses import replace

from compactor.destination import Destination
from compactor.errors import CommitConflict, CompactorError, InvalidInput, SourceChanged
from compactor.log.state import LogState
from compactor.model import SkipReason
from compactor.readers.outcome import Outcome
from compactor.runs.group_work import Claim, GroupWork
from compactor.runs.listings import Listings
from compactor.runs.partition_run import Attempts, PartitionResult, PartitionRun
from compactor.runs.registered_objects import NamedBy, settle_registered
from compactor.runs.settling import Settling
from compactor.runs.source_notes import SourceNotes, require_readable
from compactor.runs.window_planner import WindowPlanner


class PartitionProgress:
    """One call: the parts that do its work, and what they share.

    Args:
        run: what to do, and with what.
        state: the log as it was loaded.
        rebuild: build an output that was lost before it was published again; otherwise its
            commit becomes void, and its sources are planned again.
        listings: begun before; by default the first plan begins them.

    Attributes:
        result: what was done so far.
        notes: what was learned of single sources.
        attempts: the time and the tries that are left.
        windows: lists and plans.
        groups: compacts, verifies, commits and publishes.
        settling: publishes what earlier runs committed.
    """

    def __init__(
        self,
        run: PartitionRun,
        state: LogState,
        *,
        rebuild: bool = True,
        listings: Listings | None = None,
    ) -> None:
        self.run, self.state = run, state
        self.result = result = PartitionResult(done=False)
        for reason, one in run.place.skipped.items():
            result.skip(SkipReason(reason), one)
        self.notes = notes = SourceNotes(result)
        self.attempts = attempts = Attempts(run)
        self._claim = claim = Claim(run.log, state)
        self._named = named = NamedBy(run)
        self.groups = GroupWork(run, state, result, notes, named, attempts=attempts, claim=claim)
        self.windows = WindowPlanner(
            run,
            state,
            result,
            notes,
            named,
            dialects_version=self.groups.dialects_version,
            listings=listings,
        )
        work = self.groups if rebuild else None
        self.settling = Settling(
            run, state, result, work, attempts=attempts, claim=claim, give_up=self.give_up
        )

    @property
    def destination(self) -> Destination:
        """Where outputs go, and which log they name, which is known to name all that are there."""
        return replace(self.run.destination, log_id=self._claim.identity())

    def give_up(self, error: CompactorError) -> None:
        """Count a group that another run or a changed source has made void; plan again.

        Raises:
            TransientStoreError: too many were given up since the last group was published.
        """
        self.refuse(type(error))
        self.attempts.set_back(error)

    def refuse(self, kind: type[CompactorError]) -> None:
        """Count a group that was given up for the next plan."""
        if issubclass(kind, SourceChanged):
            self.result.changed += 1
            self.windows.listings.doubt()
        elif issubclass(kind, CommitConflict):
            self.result.conflicts += 1

    def finish(self) -> PartitionResult:
        """What was done, after the last window.

        Raises:
            TransientStoreError: commits stand, and what became of registered objects is not noted.
        """
        result, windows = self.result, self.windows
        # Commits of other runs may have come in on the way.
        result.done = self.settling.settle()
        # What earlier calls of this very run did, it did not skip.
        result.leave_out(windows.passing.own)
        require_readable(result.unread.values(), self.state)
        if result.done:
            roots = windows.listings.roots
            result.marked = settle_registered(self.run, self.state, self._named, roots).compacted
        return result


def show(run: PartitionRun) -> Outcome | None:
    """Let the readers' table show the partition as it is now.

    What goes wrong is reported, and ends no run: what is committed stands, readers see it once, and
    clean-up waits.

    Returns:
        None where the settings name no table.

    Raises:
        InvalidInput: the table has no column for the partition, so that no later run shows it.
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
