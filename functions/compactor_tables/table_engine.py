"""The protocol of an engine for one table, whatever its format and the engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from compactor_tables.orders import Order, PartitionOrder

PREFIX = "s3-compactor"
#: Receives how many files of a partition have been read, and how many there are.
Watch = Callable[[int, int], None]


class RowSums(NamedTuple):
    """Sums that are equal for equal rows; for different rows with a probability of 2**-128.

    Attributes:
        rows: number of rows.
        first, second: sums of the rows' hashes, modulo 2**64, each with a different seed.
    """

    rows: int
    first: int
    second: int


class Rewritten(NamedTuple):
    """A committed rewrite.

    Attributes:
        before, after: version right before its commit, and that of its commit.
        files, bytes: data files that were removed, and their bytes.
        into, into_bytes: data files that were added, and their bytes.
        rows: number of rows, if they were compared before the commit; else None.
    """

    before: str
    after: str
    files: int
    bytes: int
    into: int
    into_bytes: int
    rows: int | None = None


class StepDone(NamedTuple):
    """The result of a step.

    Attributes:
        line: the result as text.
        expired: number of expired snapshots.
        deleted_files, deleted_bytes: deleted files, and their bytes; 0 if unknown.
        before, after: the versions between which the step changed what readers read; empty if it
            changed nothing for them.
    """

    line: str
    expired: int = 0
    deleted_files: int = 0
    deleted_bytes: int = 0
    before: str = ""
    after: str = ""


class Tables(Protocol):
    """One table; each commit of ours records which run made it, and for what."""

    def require_rows(self) -> None:
        """Check that the table's rows can be hashed.

        Raises:
            InvalidInput: the table has a column that Spark cannot hash.
        """
        ...

    def version(self) -> str:
        """Return the current version of the table."""
        ...

    def unfit(self, partition: PartitionOrder, order: Order) -> str:
        """Return why this engine does not rewrite a partition; empty if it does."""
        ...

    def done(self, what: str, order: Order) -> Rewritten | None:
        """Return this run's rewrite with this purpose since the table was measured, or None."""
        ...

    def rewrite(self, partition: PartitionOrder, order: Order, what: str) -> Rewritten | None:
        """Rewrite a partition's data files in one commit; None if there is nothing to do.

        Raises:
            TableConflict: another writer changed these files first; nothing was committed.
            IntegrityError: the new files do not have the old files' rows; nothing was committed.
        """
        ...

    def rows_of(self, partition: PartitionOrder, rewritten: Rewritten) -> tuple[RowSums, RowSums]:
        """Return the sums of the rows that a rewrite replaced, and of those that it added."""
        ...

    def rows_at(self, partition: PartitionOrder, version: str) -> RowSums:
        """Return the sums of all rows of a partition, at a version."""
        ...

    def take_back(self, before: str, after: str, what: str) -> bool:
        """Roll back to ``before``; False, with no change, if another writer committed since."""
        ...

    def deletes(self, partition: PartitionOrder, order: Order, what: str) -> StepDone:
        """Apply the deletes of a partition to its data files, or compact the delete files.

        Raises:
            TableConflict: as in :meth:`rewrite`.
        """
        ...

    def manifests(self, order: Order) -> StepDone:
        """Rewrite manifests into fewer and larger ones."""
        ...

    def checkpoint(self, order: Order) -> StepDone:
        """Write a checkpoint of the log, so that it is read quickly."""
        ...

    def expire(self, order: Order, now: float) -> StepDone:
        """Expire old versions, and delete files that only these use; the mark is kept."""
        ...

    def orphans(self, order: Order, now: float) -> StepDone:
        """Delete old files that nothing refers to."""
        ...


class RewritesOnly:
    """The rest of the protocol, for an engine that only rewrites, and is ordered nothing else.

    It compares rows before its commit, so that it never has to roll one back.
    """

    def require_rows(self) -> None:
        """See the protocol."""

    def unfit(self, partition: PartitionOrder, order: Order) -> str:
        """See the protocol."""
        return ""

    def rows_of(self, partition: PartitionOrder, rewritten: Rewritten) -> tuple[RowSums, RowSums]:
        """See the protocol."""
        raise NotImplementedError

    def rows_at(self, partition: PartitionOrder, version: str) -> RowSums:
        """See the protocol."""
        raise NotImplementedError

    def take_back(self, before: str, after: str, what: str) -> bool:
        """See the protocol."""
        raise NotImplementedError

    def deletes(self, partition: PartitionOrder, order: Order, what: str) -> StepDone:
        """See the protocol."""
        raise NotImplementedError

    def manifests(self, order: Order) -> StepDone:
        """See the protocol."""
        raise NotImplementedError

    def checkpoint(self, order: Order) -> StepDone:
        """See the protocol."""
        raise NotImplementedError

    def expire(self, order: Order, now: float) -> StepDone:
        """See the protocol."""
        raise NotImplementedError

    def orphans(self, order: Order, now: float) -> StepDone:
        """See the protocol."""
        raise NotImplementedError
