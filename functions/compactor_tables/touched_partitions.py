"""Decides whether a write to a table may have touched the rows of a partition. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from compactor_tables.measures import PartitionValue


class Touched(NamedTuple):
    """A partition of Iceberg in which a snapshot added or removed data or delete files.

    Attributes:
        spec: id of the partition spec of these files.
        name: of the partition, as an order names it.
        where: partition values that its rows share; empty for a whole table.
    """

    spec: int
    name: str
    where: tuple[PartitionValue, ...]


def touches(found: Iterable[Touched], wanted: Touched) -> bool:
    """Return whether a snapshot may have touched rows of a partition.

    Args:
        found: the partitions that it touched, of any partition spec.
        wanted: the partition.
    """
    return any(
        one.name == wanted.name
        if one.spec == wanted.spec
        else may_share_rows(wanted.where, one.where)
        for one in found
    )


_PERIODS = {"year", "month", "day", "hour", "identity"}
# The values of all these transforms are prefixes of a date, or begin with one.
_DATE = len("2026-11-01")


def may_share_rows(one: Sequence[PartitionValue], other: Sequence[PartitionValue]) -> bool:
    """Return whether partitions of two partition specs may share rows."""
    pairs = ((a, b) for a in one for b in other if a.column == b.column)
    return not any(_are_apart(mine, theirs) for mine, theirs in pairs)


def _are_apart(one: PartitionValue, other: PartitionValue) -> bool:
    if "void" in {one.transform, other.transform}:
        return False
    if one.transform == other.transform or None in {one.value, other.value}:
        # A transform maps null, and only null, to null.
        return one.value != other.value
    if not {one.transform, other.transform} <= _PERIODS:
        return False
    first, second = sorted((str(each.value)[:_DATE] for each in (one, other)), key=len)
    return not second.startswith(first)
