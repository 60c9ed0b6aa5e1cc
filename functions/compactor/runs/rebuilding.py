"""Build an output again whose upload was lost: of which group, and whether a table has its rows.

What knows of tables is imported when that is asked: outputs are hardly ever lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from compactor.errors import CommitConflict, IntegrityError
from compactor.log.entries import Commit
from compactor.log.state import LogState
from compactor.model import ObjectGroup
from compactor.runs.partition_run import PartitionRun


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


def is_given(commit: Commit, run: PartitionRun) -> bool:
    """Whether a table was given an output: it deletes that once it has the rows elsewhere.

    Raises:
        IntegrityError: the table log is not what it was.
    """
    from compactor.sinks.table_proof import is_given  # noqa: PLC0415 - see above

    return is_given(run.settings, run.store, run.partition.path, commit.sequence)
