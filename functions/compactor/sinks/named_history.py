"""Whether the commit that said what a table has is still part of it (pure).

A rollback of an Iceberg table moves it to an earlier snapshot and leaves its properties; a RESTORE
of a Delta table leaves its transactions. Either way the number stays, and the rows are gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf
from typing import NamedTuple


class Snapshot(NamedTuple):
    """One snapshot of an Iceberg table.

    Attributes:
        parent: None for the first, and for one whose parent pyiceberg expired.
        sequence: its sequence number.
        adds_all: it added all files that it has: nothing was in the table before.
    """

    parent: int | None
    sequence: int
    adds_all: bool = False


class Restored(NamedTuple):
    """A RESTORE of a Delta table: the version it made, and the one that it went back to."""

    version: int
    to: int


def rolled_back(
    snapshots: Mapping[int, Snapshot],
    current: int | None,
    ours: int,
    sequence: int,
    earlier: Iterable[Mapping[int, Snapshot]] = (),
) -> str:
    """Why our snapshot is not among those that the table is made of; empty when nothing says so.

    Sequence numbers only rise (Iceberg specification, version 2), so the ancestors of the current
    snapshot are gone through until one has no higher number than ours. Where expiry took one of
    them, earlier metadata of the table still knows its parent.

    Args:
        snapshots: those that the table's metadata has, by id.
        current: id of the current one; None for an empty table.
        ours: id of the snapshot that our last commit made.
        sequence: its sequence number.
        earlier: the snapshots of earlier metadata of the table, newest first.
    """
    if current is None:
        return "it was emptied of all snapshots"
    known = dict(snapshots)
    found, last = _look_for(known, current, ours, sequence)
    for more in earlier:
        if found is not None:
            break
        # What pyiceberg expires is no snapshot's parent; the entry before still says whose it was.
        known |= {
            name: one
            for name, one in more.items()
            if name not in known or known[name].parent is None
        }
        found, last = _look_for(known, current, ours, sequence)
    if found is None and last.parent is None and last.adds_all:
        return f"it was replaced, and no longer has snapshot {ours}"
    return found or ""


def _look_for(
    known: Mapping[int, Snapshot], current: int, ours: int, sequence: int
) -> tuple[str | None, Snapshot]:
    """What the ancestors say, empty when ours is among them; None when they end too early."""
    at: int | None = current
    last = Snapshot(None, 0)
    while at is not None and at in known:
        last = known[at]
        if at == ours:
            return "", last
        if last.sequence <= sequence:
            return f"it was rolled back to snapshot {at}, and no longer has snapshot {ours}", last
        at = last.parent
    return None, last


def restored_before(restores: Iterable[Restored], ours: int) -> str:
    """Why the version that our last commit made does not count; empty when nothing says so.

    Args:
        restores: of the table, as far as its log shows.
        ours: version that our last commit made.
    """
    at = inf
    for one in sorted(restores, reverse=True):
        # One restore may take back another: what counts is where the last one went back to.
        if ours < one.version <= at:
            at = one.to
            if at < ours:
                return f"version {one.version} restored it to version {one.to}, before our {ours}"
    return ""
