"""The port to the catalog that has the readers' table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

#: A partition's values for the table's partition columns.
Values = tuple[str, ...]
_T = TypeVar("_T")


def in_batches(every: Sequence[_T], most: int) -> Iterator[Sequence[_T]]:
    """Split a sequence into batches that fit into one catalog request."""
    return (every[start : start + most] for start in range(0, len(every), most))


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """A partition as the catalog has it.

    Attributes:
        values: of its partition columns.
        location: of its objects, or of a list of them.
        input_format: class that reads it.
        parameters: of the partition.
        document: its ``StorageDescriptor``; fields that are not ours are kept.
    """

    values: Values
    location: str
    input_format: str
    parameters: Mapping[str, str]
    document: Mapping[str, Any] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class CatalogChange:
    """What a partition should become.

    Attributes:
        new: the catalog does not have the partition yet.
    """

    values: Values
    descriptor: Mapping[str, Any]
    parameters: Mapping[str, str]
    new: bool = False


class ReaderCatalog(Protocol):
    """The table that query engines read, in its catalog. Documents have the form of Glue's API.

    Every method may raise TransientStoreError, and InvalidInput if access is not permitted.
    """

    def table(self) -> Mapping[str, Any] | None:
        """Return the table (``Table``), or None."""
        ...

    def create_table(self, document: Mapping[str, Any]) -> None:
        """Create the table (``TableInput``). Raises AlreadyExists."""
        ...

    def entries(self, wanted: Sequence[Values]) -> Mapping[Values, CatalogEntry]:
        """Return those of these partitions that the catalog has."""
        ...

    def change(self, changes: Sequence[CatalogChange]) -> Mapping[Values, str]:
        """Add or switch partitions.

        Returns:
            For each partition that was not changed, the reason in one line, by its values; empty
            if all were.
        """
        ...
