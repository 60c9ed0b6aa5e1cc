"""Groups the files of a table with evolved partition specs by the condition that selects them.

A condition on partition values also selects files of other specs that may hold such rows. If it
selects files of an older spec, everything that it selects has to lie inside that partition: these
files, of all specs, are rewritten together. Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from compactor_tables.measures import (
    DataFile,
    PartitionMeasure,
    PartitionValue,
    TableMeasure,
)

_SHARED = "files of an older partition spec may have rows of it"
_PERIODS = {"year", "month", "day", "hour", "identity"}
# The values of all these transforms are prefixes of a date, or begin with one.
_DATE = len("2026-11-01")
_Where = frozenset[PartitionValue]
_Shape = frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Group:
    """The files that one condition selects.

    Attributes:
        partition: whose values are the condition, with all files that it selects.
        packs: these files as they are packed: those of older specs together, those of the current
            spec by partition.
        refusal: why no condition selects exactly these files; empty if one does.
    """

    partition: PartitionMeasure
    packs: tuple[tuple[DataFile, ...], ...]
    refusal: str = ""


def grouped(measure: TableMeasure) -> list[Group]:
    """Return all files of a table, each in one group, in the order of the groups' partitions."""
    older = [one for one in measure.partitions if one.spec != measure.spec]
    inside = _inside(measure.partitions, older)
    found: dict[int, Group] = {}
    taken: set[int] = set()
    refused: list[PartitionMeasure] = []
    for one in sorted(older, key=lambda each: len(each.where)):
        if id(one) in taken:
            continue
        if why := one.refusal or _shared(one, measure.partitions):
            refused.append(one)
            found[id(one)] = Group(one, (one.files,), why)
            continue
        members = inside[frozenset(one.where)]
        found[id(one)] = _group(one, members, measure)
        taken |= {id(each) for each in members}
    for one in measure.partitions:
        if one.spec == measure.spec and id(one) not in taken:
            shares = any(may_share_rows(one.where, each.where) for each in refused)
            found[id(one)] = Group(one, (one.files,), _SHARED if shares else "")
    return [found[id(one)] for one in measure.partitions if id(one) in found]


def _inside(
    partitions: Sequence[PartitionMeasure], older: Sequence[PartitionMeasure]
) -> Mapping[_Where, list[PartitionMeasure]]:
    """Return the partitions of any spec by the values of the older partition that holds them."""
    found: dict[_Where, list[PartitionMeasure]] = defaultdict(list)
    shapes = {_shape(one) for one in older}
    for one in partitions:
        for shape in shapes:
            where = frozenset(each for each in one.where if each[:2] in shape)
            if len(where) == len(shape):
                found[where].append(one)
    return found


def _shape(one: PartitionMeasure) -> _Shape:
    return frozenset(each[:2] for each in one.where)


def _shared(one: PartitionMeasure, partitions: Sequence[PartitionMeasure]) -> str:
    """Return why its condition selects files outside of it; empty if it selects none.

    A partition whose spec has all fields of this one lies inside, or shares no rows with it.
    """
    shape = _shape(one)
    others = (each for each in partitions if not shape <= _shape(each))
    return _SHARED if any(may_share_rows(one.where, each.where) for each in others) else ""


def _group(
    one: PartitionMeasure, members: Sequence[PartitionMeasure], measure: TableMeasure
) -> Group:
    older = tuple(chain(*(each.files for each in members if each.spec != measure.spec)))
    present = (each.files for each in members if each.spec == measure.spec)
    packs = (older, *present)
    moments = [measure.last_commit if each.changed is None else each.changed for each in members]
    changed = max((each for each in moments if each is not None), default=None)
    return Group(replace(one, files=tuple(chain(*packs)), changed=changed), packs)


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
