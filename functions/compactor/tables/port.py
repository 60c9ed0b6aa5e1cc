"""What is asked of a table, whatever it is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol


class TableFile(NamedTuple):
    """One output that becomes a data file of the table; ``rows`` is None where nobody counted.

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
        uuid: of the table; a table that is made anew has another.
        location: URI below which the table keeps its own files.
        last: up to which entry of our log it has everything; 0 where it was given nothing yet.
        version: of the table as it was read, for a person: a snapshot's id, or a number.
        rows: that it has, deleted ones that its files still hold included; None where unknown.
        fault: why ``last`` cannot be true, in one line: the commit that said so is no longer part
            of the table. Empty when nothing contradicts it.
        handle: the catalog's own: what an append is conditional on.
        properties: of the table, where the catalog tells them.
        shape: what decides which outputs fit it, as text: columns and partitioning.
    """

    uuid: str
    location: str
    last: int
    version: str
    rows: int | None = None
    fault: str = ""
    handle: object = field(default=None, compare=False, repr=False)
    properties: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    shape: str = field(default="", compare=False, repr=False)


class TableCatalog(Protocol):
    """One table in its catalog. Every method may raise TransientStoreError.

    Nothing here tries a commit again: whoever calls it looks at the table before each try.
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
            IntegrityError: what stands there is no such table, or its number is none.
            InvalidInput: it may not be read.
        """
        ...

    def create(self, files: Sequence[TableFile]) -> None:
        """Make the table with the columns of these files.

        Raises:
            TableConflict: somebody made it meanwhile.
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
            TableConflict: somebody else was first; nothing of this is in the table.
            TransientStoreError: nobody knows whether it is.
            InvalidInput: a file does not fit.
        """
        ...
