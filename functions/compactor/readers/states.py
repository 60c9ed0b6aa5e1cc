"""What a partition of the readers' table shows: sources, outputs, or a list of both. Pure.

A record is in a source and, once that is compacted, in an output as well. A partition shows each
record once if it shows one of these, of everything that can be read there:

- ``raw``: everything below the source's prefix, and no output. Always up to date. Only possible
  while no source that an output holds is gone;
- ``compacted``: everything below the destination's prefix, and no source. Only possible while every
  source is held by a readable output;
- ``listed``: the readable outputs, and the sources that none of them holds, by name.

Once a partition shows outputs, it never shows ``raw`` again: clean-up may have started to delete,
and relies on the catalog alone to know.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from compactor.model import ARCHIVED_CLASSES, SourceObject

# Hive, Trino and Spark hide files if any segment below the table's location begins like this.
_HIDDEN = re.compile(r"(?:^|/)[_.]")


class Shown(StrEnum):
    """What a partition shows."""

    RAW = "raw"
    COMPACTED = "compacted"
    LISTED = "listed"


@dataclass(frozen=True, slots=True)
class Held:
    """What one look at a partition found, of everything that a query engine can read there.

    Attributes:
        loose: sources that no readable output holds, sorted by key.
        outputs: readable outputs that the log names, sorted by key.
        standing: every source that an output holds still exists with the same content.
        others: the outputs' prefix has further objects that engines would read.
        unread: number of objects in an archive tier, which no engine reads for now.
    """

    loose: tuple[SourceObject, ...] = ()
    outputs: tuple[SourceObject, ...] = ()
    standing: bool = True
    others: bool = False
    unread: int = 0


@dataclass(frozen=True, slots=True)
class Decision:
    """What a partition should show; ``names`` is the content of a list, as (bucket, key)."""

    shown: Shown
    names: tuple[tuple[str, str], ...] = ()


def decide(
    held: Held, current: Shown | None, *, fresh: bool, exact: bool = True
) -> Decision | None:
    """Return what a partition should show.

    Args:
        held: what was found in it.
        current: what it shows now; None if the catalog does not have it.
        fresh: its period is not over, and clean-up has had nothing to delete in it, so it may
            still show all sources.
        exact: show every record; otherwise only outputs.

    Returns:
        None if there is nothing to show, and the catalog does not have the partition.
    """
    if current is None and not held.outputs and not (exact and held.loose):
        return None
    if not exact:
        return _of_outputs(held, ())
    began = current in (None, Shown.RAW)
    if began and not held.outputs and held.standing:
        return Decision(Shown.RAW)
    if began and fresh and held.standing:
        return Decision(Shown.RAW)
    return _of_outputs(held, held.loose)


def _of_outputs(held: Held, loose: tuple[SourceObject, ...]) -> Decision:
    if held.outputs and not loose and not held.others:
        return Decision(Shown.COMPACTED)
    names = [(one.bucket, one.key) for one in (*held.outputs, *loose)]
    return Decision(Shown.LISTED, tuple(sorted(set(names))))


def is_hidden(key: str, prefix: str) -> bool:
    """Return True for objects that query engines hide: a segment begins with _ or a dot."""
    return _HIDDEN.search(key, len(prefix)) is not None or key.startswith(("_", "."), len(prefix))


def has_rows(one: SourceObject, prefix: str) -> bool:
    """Return True for an object below a prefix that an engine reads rows from."""
    return one.size > 0 and not is_hidden(one.key, prefix)


def is_archived(one: SourceObject, now: float) -> bool:
    """Return True for an object that must be restored to be read; ``now`` in UNIX seconds."""
    return one.storage_class in ARCHIVED_CLASSES and one.restored_until <= now
