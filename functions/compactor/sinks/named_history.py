"""Whether the commit that recorded the table's entry number is still part of its history (pure).

A rollback moves an Iceberg table to an earlier snapshot but keeps its properties; RESTORE of a
Delta table keeps its transactions. In both cases the recorded number stays although rows are gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf
from typing import NamedTuple


class Snapshot(NamedTuple):
    """One snapshot of an Iceberg table.

    Attributes:
        parent: None for the first snapshot, and for one whose parent pyiceberg expired.
        sequence: its sequence number.
        adds_all: it added every file that it has, so the table was empty before.
    """

    parent: int | None
    sequence: int
    adds_all: bool = False


class Restored(NamedTuple):
    """A RESTORE of a Delta table: the version it created, and the version it went back to."""

    version: int
    to: int


def rolled_back(
    snapshots: Mapping[int, Snapshot],
    current: int | None,
    ours: int,
    sequence: int,
    earlier: Iterable[Mapping[int, Snapshot]] = (),
) -> str:
    """Return why our snapshot is not an ancestor of the current one; empty if nothing says so.

    Sequence numbers only increase (Iceberg specification, version 2), so the ancestors of the
    current snapshot are followed until one has a number no higher than ours. Where expiry removed
    one of them, earlier metadata of the table still names its parent.

    Args:
        snapshots: the snapshots in the table's metadata, by id.
        current: id of the current snapshot; None for an empty table.
        ours: id of the snapshot that our last commit created.
        sequence: its sequence number.
        earlier: the snapshots in earlier metadata of the table, newest first.
    """
    if current is None:
        return "it was emptied of all snapshots"
    known = dict(snapshots)
    found, last = _look_for(known, current, ours, sequence)
    for more in earlier:
        if found is not None:
            break
        # When pyiceberg expires a snapshot, it clears the parent of its children; earlier metadata
        # still has that parent.
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
    """Return the fault, or "" if ours is an ancestor, or None if the chain ends too early."""
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
    """Return why the version that our last commit created was undone; empty if nothing says so.

    Args:
        restores: of the table, as far back as its log goes.
        ours: the version that our last commit created.
    """
    at = inf
    for one in sorted(restores, reverse=True):
        # A later restore can undo an earlier one, so start from the last and follow its target.
        if ours < one.version <= at:
            at = one.to
            if at < ours:
                return f"version {one.version} restored it to version {one.to}, before our {ours}"
    return ""
