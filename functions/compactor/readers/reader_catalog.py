"""What is asked of the catalog that has the readers' table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

#: What a partition of a table has in the partition columns.
Values = tuple[str, ...]
_T = TypeVar("_T")


def in_batches(every: Sequence[_T], most: int) -> Iterator[Sequence[_T]]:
    """Batches of the size that a request of a catalog takes."""
    return (every[start : start + most] for start in range(0, len(every), most))


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """A partition as the catalog has it.

    Attributes:
        values: of its partition columns.
        location: where its objects, or a list of them, lie.
        input_format: the class that reads it.
        parameters: of the partition.
        document: ``StorageDescriptor``, of which what is not ours is kept.
    """

    values: Values
    location: str
    input_format: str
    parameters: Mapping[str, str]
    document: Mapping[str, Any] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class CatalogChange:
    """What a partition is to be.

    Attributes:
        new: the catalog does not know it yet.
    """

    values: Values
    descriptor: Mapping[str, Any]
    parameters: Mapping[str, str]
    new: bool = False


class ReaderCatalog(Protocol):
    """The table that query engines read, in its catalog. Documents are those of Glue's API.

    Every method may raise TransientStoreError, and InvalidInput for what may not be asked.
    """

    def table(self) -> Mapping[str, Any] | None:
        """The table (``Table``); None where there is none."""
        ...

    def create_table(self, document: Mapping[str, Any]) -> None:
        """Make the table (``TableInput``). Raises AlreadyExists."""
        ...

    def entries(self, wanted: Sequence[Values]) -> Mapping[Values, CatalogEntry]:
        """The entries of these partitions that the catalog has."""
        ...

    def change(self, changes: Sequence[CatalogChange]) -> Mapping[Values, str]:
        """Add or switch partitions.

        Returns:
            Why a partition is not what it was to be, in one line, by its values; empty where all
            are.
        """
        ...
