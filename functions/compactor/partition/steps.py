"""Single steps of :mod:`compactor.partition.work` that need no state of a call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import chain

from compactor.destination import Destination
from compactor.encoding.output_encoding import output_form
from compactor.errors import CommitConflict, CompactorError, IntegrityError, InvalidInput
from compactor.log.entries import Commit
from compactor.log.state import LogState, RunTotals
from compactor.model import PASSING_REASONS, ObjectGroup
from compactor.outputs.group import store_group
from compactor.outputs.group_reading import ReadingTime
from compactor.outputs.pending import PendingOutput
from compactor.partition.inputs import PartitionRun
from compactor.ports import ObjectStore
from compactor.readers.outcome import Outcome
from compactor.settings.settings import Settings


class RowsRefused(CompactorError):
    """No output can hold the rows of a group, which says nothing of other groups."""

    def __init__(self, error: InvalidInput) -> None:
        super().__init__(str(error))
        self.error = error


def store(
    group: ObjectGroup,
    settings: Settings,
    objects: ObjectStore,
    destination: Destination,
    time: ReadingTime | None = None,
) -> PendingOutput:
    """Do steps 1 to 3 of the write order for one group; see :func:`store_group` for the errors.

    Sources that do not fit into the time for reading are left to the next plan.
    """
    if not group.form.rows or group.copy:
        return store_group(group, settings, objects, destination, time)
    if not settings.columnar and find_spec("pyarrow") is None:
        return PendingOutput.of_none(group, "Parquet is merged only with the extra rows (pyarrow)")
    from compactor.rows.groups import store_rows  # noqa: PLC0415 - only runs with rows import Arrow

    return store_rows(group, settings, objects, destination, time)


def is_oversized(groups: Sequence[ObjectGroup], committed: RunTotals, settings: Settings) -> bool:
    """Return True if these groups, with what the run committed, are more than a worker takes."""
    objects = committed.sources + sum(len(group.sources) for group in groups)
    size = committed.source_bytes + sum(group.size for group in groups)
    return bool(groups) and settings.is_oversized(objects, size)


@contextmanager
def unless_replaced(commit: Commit, run: PartitionRun, state: LogState) -> Iterator[None]:
    """Turn an integrity error into a conflict if another run has replaced the commit.

    After a commit is void, its output key may get other bytes: a group with the same first source,
    but fewer or more sources after it.
    """
    try:
        yield
    except IntegrityError as error:
        run.log.refresh(state)
        if commit.sequence not in state.replaced:
            raise
        raise CommitConflict(f"commit {commit.sequence} was replaced meanwhile") from error


def group_of(commit: Commit, settings: Settings) -> ObjectGroup:
    """Return the group of a commit's output, to be rebuilt with the same bytes."""
    copied = commit.output is not None and commit.output.copied
    form = output_form(settings, commit.sources[0].key)
    return ObjectGroup(commit.group_id, commit.sources, copied, form)


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
        (outcome,) = refresh([path], Refreshing(settings, run.store, run.clock, catalog))
    except CompactorError as error:
        return Outcome(path, fault=f"{type(error).__name__}: {error}")
    if outcome.is_refused:
        raise InvalidInput("reader_table", settings.reader_table, "", message=outcome.fault)
    return outcome


def is_in_table(commit: Commit, run: PartitionRun) -> bool:
    """Return True if the table log names the commit's output.

    The table may have rewritten its rows elsewhere and deleted the output.
    """
    from compactor.sinks.table_proof import is_given  # noqa: PLC0415 - outputs are hardly ever lost

    return is_given(run.settings, run.store, run.partition.path, commit.sequence)


def covered_by_declaration(draft: Commit, settings: Settings) -> tuple[tuple[int, int, int], ...]:
    """Count the declared sources of an entry by declaration, see :attr:`Commit.covered`."""
    counts: dict[int, tuple[int, int]] = {}
    lasting = (
        unread.source for unread in draft.quarantined if unread.reason not in PASSING_REASONS
    )
    for source in chain(draft.sources, lasting):
        number = settings.declaration_number(source.key)
        objects, size = counts.get(number, (0, 0))
        counts[number] = (objects + 1, size + source.size)
    counts.pop(0, None)
    return tuple((number, *amount) for number, amount in sorted(counts.items()))
