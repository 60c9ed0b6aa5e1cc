"""Whether the commit that said what a table has is still part of it (pure).

A rollback of an Iceberg table moves it to an earlier snapshot and leaves its properties; a RESTORE
of a Delta table leaves its transactions. Either way the number stays, and the rows are gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple


class Snapshot(NamedTuple):
    """One snapshot of an Iceberg table; ``parent`` is None for the first."""

    parent: int | None
    sequence: int


class Restored(NamedTuple):
    """A RESTORE of a Delta table: the version it made, and the one that it went back to."""

    version: int
    to: int


def rolled_back(
    snapshots: Mapping[int, Snapshot], current: int | None, ours: int, sequence: int
) -> str:
    """Why our snapshot is not among those that the table is made of; empty when nothing says so.

    Sequence numbers only rise (Iceberg specification, version 2), so the ancestors of the current
    snapshot are gone through until one has no higher number than ours. Snapshots that expired
    end the way earlier, and say nothing.

    Args:
        snapshots: those that the table's metadata has, by id.
        current: id of the current one; None for an empty table.
        ours: id of the snapshot that our last commit made.
        sequence: its sequence number.
    """
    if current is None:
        return "it was emptied of all snapshots"
    at: int | None = current
    while at is not None and at in snapshots:
        if at == ours:
            return ""
        if snapshots[at].sequence <= sequence:
            return f"it was rolled back to snapshot {at}, and no longer has snapshot {ours}"
        at = snapshots[at].parent
    if at is None:
        return f"it was replaced, and no longer has snapshot {ours}"
    return ""


def restored_before(restores: Iterable[Restored], ours: int) -> str:
    """Why the version that our last commit made does not count; empty when nothing says so.

    Args:
        restores: of the table, as far as its log tells.
        ours: version that our last commit made.
    """
    for one in restores:
        if one.version > ours > one.to:
            return f"version {one.version} restored it to version {one.to}, before our {ours}"
    return ""
