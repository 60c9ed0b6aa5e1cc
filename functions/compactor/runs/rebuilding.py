"""Build an output again: of which group, without copies, or from the copy that was kept of it.

What takes an output away, and knows of tables, is imported when that is done: outputs are hardly
ever lost, or wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from compactor.destination import Destination
from compactor.errors import CommitConflict, IntegrityError, SourceChanged, WrongCopies
from compactor.log.entries import Commit
from compactor.log.state import LogState
from compactor.model import ObjectGroup
from compactor.planning.packing import uncopied
from compactor.runs.given import PartitionRun
from compactor.runs.shown import hide

if TYPE_CHECKING:
    from compactor.outputs.undo import Undoing


@contextmanager
def unless_replaced(commit: Commit, run: PartitionRun, state: LogState) -> Iterator[None]:
    """Take it for a lost race where another output stands at the key of a replaced commit.

    One key may get other bytes once its commit is void: from the same first source on, fewer or
    more of those behind it.

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


def group_of(commit: Commit) -> ObjectGroup:
    """The group whose output a commit names, to become the same bytes once more."""
    output = commit.output
    copied = output is not None and output.copied
    # Where a CRC32 is known the store copied nothing.
    copies = output is None or output.crc32 is None
    sources = tuple(row.source for row in commit.rows)
    return ObjectGroup(commit.group_id, sources, copied, copies)


def take_wrong_away(commit: Commit, error: WrongCopies, run: PartitionRun) -> PartitionRun:
    """Let nobody read an output with wrong copied parts any more.

    Returns:
        The run from then on: its store copies nothing.

    Raises:
        IntegrityError: a source changed, or the output cannot be deleted: all stays.
    """
    from compactor.outputs.undo import take_away  # noqa: PLC0415 - see above

    try:
        take_away(commit, _undoing(run))
    except SourceChanged as changed:
        raise IntegrityError(f"{error}; it is not built again: {changed}") from error
    traits = replace(run.store.traits, copies=False)
    return replace(run, store=run.store.with_traits(traits))


def is_given(commit: Commit, run: PartitionRun) -> bool:
    """Whether a table was given an output: it deletes that once it has the rows elsewhere.

    Raises:
        IntegrityError: the table log is not what it was.
    """
    from compactor.tables.proof import is_given  # noqa: PLC0415 - see above

    return is_given(run.settings, run.store, run.partition.path, commit.sequence)


def kept_draft(commit: Commit, run: PartitionRun, destination: Destination) -> Commit | None:
    """The entry that publishes what was kept of an output taken away; None where nothing was.

    Under another key, so that of two runs at once one gets its entry in.
    """
    from compactor.outputs.undo import from_kept  # noqa: PLC0415 - see above

    group = uncopied(group_of(commit))
    output = from_kept(commit, group.id, destination, _undoing(run))
    if output is None:
        return None
    return commit.moved(run.run_id, run.clock.now(), group.id, output)


def forget(commit: Commit, run: PartitionRun) -> None:
    """Delete what was kept, once its records are readable elsewhere."""
    from compactor.outputs.undo import forget_kept  # noqa: PLC0415 - see above

    forget_kept(commit, _undoing(run))


def _undoing(run: PartitionRun) -> Undoing:
    from compactor.outputs.undo import Undoing  # noqa: PLC0415 - see above

    # The log is at hand, and need not be looked through.
    path, state = run.partition.path, run.settings.state
    return Undoing(run.store, state, path, run.log, 0, partial(hide, run=run))
