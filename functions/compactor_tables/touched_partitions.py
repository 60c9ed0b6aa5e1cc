"""Whether what wrote to a table has touched the rows of a partition. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from compactor_tables.measures import PartitionValue


class Touched(NamedTuple):
    """A partition of Iceberg that was written: files came, data or deletes, or went.

    Attributes:
        spec: the id of the partition spec of those files.
        name: of the partition, as an order names it.
        where: what its rows have in common; empty for a whole table.
    """

    spec: int
    name: str
    where: tuple[PartitionValue, ...]


def touches(found: Iterable[Touched], wanted: Touched) -> bool:
    """Whether rows of a partition may be among what a snapshot touched.

    Args:
        found: all that it touched, also by other divisions of the table.
        wanted: the partition.
    """
    return any(
        one.name == wanted.name
        if one.spec == wanted.spec
        else may_share_rows(wanted.where, one.where)
        for one in found
    )


_PERIODS = {"year", "month", "day", "hour", "identity"}
# Of the texts of all these, the one longer or not, a date is the beginning.
_DATE = len("2026-11-01")


def may_share_rows(one: Sequence[PartitionValue], other: Sequence[PartitionValue]) -> bool:
    """Whether partitions of two divisions may hold rows of one another."""
    pairs = ((a, b) for a in one for b in other if a.column == b.column)
    return not any(_are_apart(mine, theirs) for mine, theirs in pairs)


def _are_apart(one: PartitionValue, other: PartitionValue) -> bool:
    if "void" in {one.transform, other.transform}:
        return False
    if one.transform == other.transform or None in {one.value, other.value}:
        # A transform of null is null, and of nothing else.
        return one.value != other.value
    if not {one.transform, other.transform} <= _PERIODS:
        return False
    first, second = sorted((str(each.value)[:_DATE] for each in (one, other)), key=len)
    return not second.startswith(first)
