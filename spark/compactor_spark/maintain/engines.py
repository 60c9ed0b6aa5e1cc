"""What maintenance asks of a table, whatever it is made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from compactor_spark.maintain.rows import Compared, RowSums
from compactor_tables.orders import Order, PartitionOrder

PREFIX = "s3-compactor"


class Mark(NamedTuple):
    """What an undo returns to.

    Attributes:
        version: of the table, before anything was rewritten.
        until: UNIX seconds; it is kept until then.
    """

    version: str
    until: float


class Rewritten(NamedTuple):
    """A rewrite that is in the table.

    Attributes:
        before, after: version right before its commit, and with it.
        files, bytes: data files that went, and their bytes.
        into, into_bytes: data files that came.
        superseded: URIs of those that went, where the table does not let go of them itself.
    """

    before: str
    after: str
    files: int
    bytes: int
    into: int
    into_bytes: int
    superseded: Sequence[str] = ()


class StepDone(NamedTuple):
    """What a step says of itself.

    Attributes:
        line: for a person.
        expired: snapshots that went.
        deleted_files, deleted_bytes: files that went, and their bytes; 0 where that is unknown.
        before, after: versions between which it changed what readers read; empty where it did not.
    """

    line: str
    expired: int = 0
    deleted_files: int = 0
    deleted_bytes: int = 0
    before: str = ""
    after: str = ""


class Tables(Protocol):
    """One table; each commit of ours says which run made it, and for what."""

    def require_rows(self) -> None:
        """See that rows can be hashed.

        Raises:
            InvalidInput: the table has a column of which Spark makes no hash.
        """
        ...

    def version(self) -> str:
        """The present version of the table."""
        ...

    def mark(self, order: Order, now: float) -> Mark:
        """Keep the version of now for an undo; again, where this run did so before."""
        ...

    def unmark(self, order: Order) -> None:
        """Forget the mark to undo to, as nothing was rewritten."""
        ...

    def written_since(self, partition: PartitionOrder, since: float) -> str:
        """Why a partition is not closed; empty where no writer changed it since.

        Args:
            partition: of an order.
            since: UNIX seconds.
        """
        ...

    def unfit(self, partition: PartitionOrder, order: Order) -> str:
        """Why this engine leaves a partition of the table as it is; empty where it does not."""
        ...

    def done(self, what: str, order: Order, mark: str) -> Rewritten | None:
        """The rewrite that this run committed for this, since the mark; None where it did not."""
        ...

    def rewrite(self, partition: PartitionOrder, order: Order, what: str) -> Rewritten | None:
        """Rewrite a partition's data files in one commit; None where there is nothing to do.

        Raises:
            TableConflict: another writer changed these files first; nothing of ours is in the
                table.
            IntegrityError: the new files have not the rows of the old ones; nothing is committed.
        """
        ...

    def rows_of(self, partition: PartitionOrder, rewritten: Rewritten) -> Compared:
        """The rows that a rewrite replaced, and those that it put there."""
        ...

    def rows_at(self, partition: PartitionOrder, version: str) -> RowSums:
        """All rows of a partition, at a version."""
        ...

    def take_back(self, before: str, after: str, what: str) -> bool:
        """Make the table what it was; False, and no change, if another writer committed since."""
        ...

    def deletes(self, partition: PartitionOrder, order: Order, what: str) -> StepDone:
        """Let the deletes of a partition have their effect on its data files, or pack them.

        Raises:
            TableConflict: as :meth:`rewrite`.
        """
        ...

    def manifests(self, order: Order) -> StepDone:
        """Fewer and larger files of metadata."""
        ...

    def checkpoint(self, order: Order) -> StepDone:
        """A log that is read quickly."""
        ...

    def expire(self, order: Order, now: float) -> StepDone:
        """Let go of old versions, and of files that only these name; not of what is marked."""
        ...

    def orphans(self, order: Order, now: float) -> StepDone:
        """Delete old files that nothing names."""
        ...

    def undo(self, version: str, order: Order) -> str:
        """Return to a version; says for a person what was done.

        Raises:
            InvalidInput: it is not there any more, or others committed since.
        """
        ...
