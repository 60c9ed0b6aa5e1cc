"""What a partition of the readers' table shows: sources, outputs, or a list of both. Pure.

A record stands in a source, and once that is compacted in an output as well. A partition shows it
once when it shows, of all that can be read there,

- ``raw``: what lies below the source's prefix, and no output. Always fresh. Only while no
  source that an output holds is gone;
- ``compacted``: what lies below the destination's prefix, and no source. Only while every source is
  held by an output that can be read;
- ``listed``: the outputs that can be read, and the sources that none of them holds, by name.

Once a partition shows outputs it never shows ``raw`` again: clean-up may have begun to delete, and
looks at the catalog for that alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from compactor.model import ARCHIVED_CLASSES, SourceObject

# As Hive, Trino and Spark hide files: by a segment below the table's location.
_HIDDEN = re.compile(r"(?:^|/)[_.]")


class Shown(StrEnum):
    """What a partition shows."""

    RAW = "raw"
    COMPACTED = "compacted"
    LISTED = "listed"


@dataclass(frozen=True, slots=True)
class Held:
    """What one look at a partition found, of all that a query engine can read there.

    Attributes:
        loose: sources that no readable output holds, in the order of keys.
        outputs: those that can be read, and that the log names, in the order of keys.
        standing: every source that an output holds is where it was, with its content.
        others: below the prefix of the outputs engines would read more than these.
        unread: objects that no engine reads for now, because they lie in an archive tier.
    """

    loose: tuple[SourceObject, ...] = ()
    outputs: tuple[SourceObject, ...] = ()
    standing: bool = True
    others: bool = False
    unread: int = 0


@dataclass(frozen=True, slots=True)
class Decision:
    """What a partition is to show; ``names`` are of a list, as (bucket, key)."""

    shown: Shown
    names: tuple[tuple[str, str], ...] = ()


def decide(
    held: Held, current: Shown | None, *, fresh: bool, exact: bool = True
) -> Decision | None:
    """What a partition is to show.

    Args:
        held: what was seen of it.
        current: what it shows now; None where the catalog does not know it.
        fresh: its time is not over, and clean-up has not had anything to delete in it: it may
            still show all sources.
        exact: show every record; otherwise outputs alone.

    Returns:
        None where there is nothing to show, and no catalog shows it.
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
    """True for what query engines pass over below a prefix: names that begin with _ or a dot."""
    return _HIDDEN.search(key, len(prefix)) is not None or key.startswith(("_", "."), len(prefix))


def has_rows(one: SourceObject, prefix: str) -> bool:
    """True for an object of which an engine reads anything below a prefix."""
    return one.size > 0 and not is_hidden(one.key, prefix)


def is_archived(one: SourceObject, now: float) -> bool:
    """True for an object that cannot be read until it is restored; UNIX seconds."""
    return one.storage_class in ARCHIVED_CLASSES and one.restored_until <= now
