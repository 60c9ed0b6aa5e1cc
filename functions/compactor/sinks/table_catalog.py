"""The port to a table in its catalog, independent of the table format."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol


class TableFile(NamedTuple):
    """An output that becomes a data file of the table; ``rows`` is None if not counted.

    ``size`` is in bytes, as stored.
    """

    bucket: str
    key: str
    size: int
    rows: int | None

    @property
    def uri(self) -> str:
        """The output's URI."""
        return f"s3://{self.bucket}/{self.key}"


@dataclass(frozen=True, slots=True)
class TableState:
    """A table's state at one moment, according to its metadata.

    Attributes:
        uuid: of the table; a re-created table has another one.
        location: URI prefix of the table's own files.
        last: number of the last table log entry that is in the table; 0 if none is.
        version: of the table, for messages: a snapshot id or a version number.
        fault: why ``last`` cannot be true, in one line: the commit that recorded it is no longer
            part of the table. Empty if nothing contradicts it.
        handle: the catalog's own object, which an append is conditional on.
        properties: of the table, if the catalog has them.
        refusal: why no file can be added to the table at all, and what would be accepted instead.
        shape: what decides which outputs fit, as text: columns and partitioning.
    """

    uuid: str
    location: str
    last: int
    version: str
    fault: str = ""
    handle: object = field(default=None, compare=False, repr=False)
    properties: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    refusal: str = ""
    shape: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Holdings:
    """Which outputs a table has, as far back as its history goes.

    Attributes:
        present: outputs that are data files of the table now.
        passed: outputs that were added after ``number``, and rewritten or deleted since.
        number: entry number that the table's latest ancestor with a recorded number had reached;
            0 if none ever had one; None if the history no longer goes back that far.
        others: number of other data files.
        other_rows: rows in these, as far as they are counted.
    """

    present: frozenset[str]
    passed: frozenset[str]
    number: int | None
    others: int
    other_rows: int


class TableContents(Protocol):
    """The files of one table version. Metadata is read on first use.

    Every method may raise TransientStoreError.
    """

    def names(self, file: TableFile) -> bool:
        """Return True if this output is a file of the table, with or without deletes."""
        ...

    def fault_of(self, file: TableFile) -> str:
        """Return why not all rows of an output are in the table, in one line; empty if they are.

        They are if the output is a file of the table and no delete applies to it, or if commits
        that only rewrite files have replaced it by such files.

        Raises:
            IntegrityError: metadata is damaged.
        """
        ...


class TableCatalog(Protocol):
    """A table in its catalog. Every method may raise TransientStoreError.

    No method retries a commit: the caller reads the table again before each attempt.
    """

    @property
    def address(self) -> str:
        """The table as the run's input names it."""
        ...

    def load(self, log_id: str) -> TableState | None:
        """Return the table's current state; None if there is no table.

        Args:
            log_id: identity of the log whose entry number is wanted.

        Raises:
            IntegrityError: it is not a table of this format, or the recorded number is invalid.
            InvalidInput: reading it is not permitted.
        """
        ...

    def create(self, files: Sequence[TableFile]) -> None:
        """Create the table with the columns of these files.

        Raises:
            TableConflict: another writer created it first.
            InvalidInput: a column has a type that the table format does not support.
        """
        ...

    def unfit(
        self, table: TableState | None, files: Sequence[TableFile], *, evolve: bool
    ) -> Mapping[TableFile, str]:
        """Return the files that cannot be appended, each with the reason.

        Args:
            table: as it was read; None before it is created. Then only the files that no table
                could take are returned.
            files: outputs, in the order in which they would be appended.
            evolve: columns that the table does not have may be added.

        Raises:
            InvalidInput: the table accepts no files at all.
        """
        ...

    def append(
        self, table: TableState, files: Sequence[TableFile], number: int, *, evolve: bool
    ) -> str:
        """Add files, and record in the same commit that all entries up to ``number`` are in.

        Args:
            table: as it was read; the commit fails if the table has changed since.
            files: outputs of the entries after ``table.last``, up to ``number``.
            number: of the last of these entries.
            evolve: add columns that the table does not have in the same commit.

        Returns:
            The table's new version, for messages.

        Raises:
            TableConflict: another writer committed first; nothing was added.
            TransientStoreError: it is unknown whether the commit succeeded.
            InvalidInput: a file does not fit.
        """
        ...

    def holdings(self, table: TableState, outputs: Collection[str]) -> Holdings:
        """Return which of these outputs the table has.

        Args:
            table: as it was read.
            outputs: their URIs.

        Raises:
            InvalidInput: the table's rows have a key, so its files do not show its outputs.
        """
        ...

    def contents(self, table: TableState) -> TableContents:
        """Return the files of a table version.

        Args:
            table: as it was read.

        Raises:
            IntegrityError: the table's rows are merged, so no file of it proves an output.
        """
        ...
