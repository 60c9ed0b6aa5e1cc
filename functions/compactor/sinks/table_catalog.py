"""What is asked of a table, whatever it is made of."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol


class TableFile(NamedTuple):
    """One output that becomes a data file of the table; ``rows`` is None where not counted.

    ``size`` is in bytes, as stored.
    """

    bucket: str
    key: str
    size: int
    rows: int | None

    @property
    def uri(self) -> str:
        """Where it lies."""
        return f"s3://{self.bucket}/{self.key}"


@dataclass(frozen=True, slots=True)
class TableState:
    """What a table says of itself at one moment.

    Attributes:
        uuid: of the table; a table that is made again has another.
        location: URI below which the table keeps its own files.
        last: up to which entry of our log it has everything; 0 where it was given nothing yet.
        version: of the table as it was read, for a person: a snapshot's id, or a number.
        fault: why ``last`` cannot be true, in one line: the commit that said so is no longer part
            of the table. Empty when nothing contradicts it.
        handle: the catalog's own: what an append is conditional on.
        properties: of the table, where the catalog has them.
        refusal: what would be accepted instead, where no file can be added to the table at all.
        shape: what decides which outputs fit it, as text: columns and partitioning.
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
    """Which outputs a table has, as far as its own history shows.

    Attributes:
        present: those that are its data files now.
        passed: those that came into it after ``number``, and have been rewritten or deleted since.
        number: up to which entry of our log the last of its ancestors that says so had everything;
            0 where none ever did; None where its history no longer goes back so far.
        others: its other data files.
        other_rows: that these hold, as far as they are counted.
    """

    present: frozenset[str]
    passed: frozenset[str]
    number: int | None
    others: int
    other_rows: int


class TableContents(Protocol):
    """What one version of a table says of its files. Reads metadata when it is asked first.

    Every method may raise TransientStoreError.
    """

    def names(self, file: TableFile) -> bool:
        """True when the table is made of this output, whether deletes apply to it or not."""
        ...

    def fault_of(self, file: TableFile) -> str:
        """Why the rows of an output are not all in the table, in one line; empty when they are.

        They are when the output is a file of the table without deletes that apply to it, or when
        commits that only rewrite files have replaced it by such files.

        Raises:
            IntegrityError: metadata is damaged.
        """
        ...


class TableCatalog(Protocol):
    """One table in its catalog. Every method may raise TransientStoreError.

    Nothing here retries a commit: the caller looks at the table before each try.
    """

    @property
    def address(self) -> str:
        """The table as the run's input names it."""
        ...

    def load(self, log_id: str) -> TableState | None:
        """The table as it is now; None where there is none.

        Args:
            log_id: identity of the log whose number is wanted.

        Raises:
            IntegrityError: what stands there is no such table, or its number is invalid.
            InvalidInput: it may not be read.
        """
        ...

    def create(self, files: Sequence[TableFile]) -> None:
        """Make the table with the columns of these files.

        Raises:
            TableConflict: another writer made it meanwhile.
            InvalidInput: a column has a type that the table cannot have.
        """
        ...

    def unfit(
        self, table: TableState | None, files: Sequence[TableFile], *, evolve: bool
    ) -> Mapping[TableFile, str]:
        """Which of these files cannot be appended, each with the reason; no others are.

        Args:
            table: as it was read; None before it is made: then a file is unfit that no table takes.
            files: outputs, in the order in which they would be appended.
            evolve: columns that the table has not may be added.

        Raises:
            InvalidInput: the table takes no file at all.
        """
        ...

    def append(
        self, table: TableState, files: Sequence[TableFile], number: int, *, evolve: bool
    ) -> str:
        """Add files, and with the same commit say that everything up to ``number`` is in.

        Args:
            table: as it was read; the commit fails when it is not so any more.
            files: outputs of the entries after ``table.last``, up to ``number``.
            number: of the last of these entries.
            evolve: columns that the table has not are added with the same commit.

        Returns:
            The table's new version, for a person.

        Raises:
            TableConflict: another writer was first; nothing of this is in the table.
            TransientStoreError: it is unknown whether it is.
            InvalidInput: a file does not fit.
        """
        ...

    def holdings(self, table: TableState, outputs: Collection[str]) -> Holdings:
        """Which of these outputs the table has.

        Args:
            table: as it was read.
            outputs: their URIs.

        Raises:
            InvalidInput: nothing can be said of a table whose rows have a key.
        """
        ...

    def contents(self, table: TableState) -> TableContents:
        """The files of a table.

        Args:
            table: as it was read.

        Raises:
            IntegrityError: its rows are merged, so no file of it proves an output.
        """
        ...
