"""What is stored for a key, and which of two events about it is later.

There is one item for each key of a stream. It holds the state after the latest event, by the
sequencer that S3 gives each event of a key. So duplicate, late and reordered events lead to the
same item.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from heapq import merge

import msgspec

from compactor.model import Partition, SourceObject

# S3's sequencers have 16 to 18 digits, but no documented maximum length.
_SEQUENCER_DIGITS = 64


class ItemState(StrEnum):
    """The state of the object that a key names."""

    PENDING = "PENDING"
    LEFT = "LEFT"
    COMPACTED = "COMPACTED"
    OVERWRITTEN = "OVERWRITTEN"
    WITHDRAWN = "WITHDRAWN"
    GONE = "GONE"


#: Prefix of the reason why an object was left, if that may pass, such as access denied.
LEFT_PASSING = "passing"
#: States of items that no commit names yet, and that are therefore listed.
OPEN_STATES = frozenset({ItemState.PENDING, ItemState.LEFT})


def ordered_sequencer(text: str) -> str:
    """Return a sequencer as text that sorts in S3's event order: hex, padded with zeros.

    Amazon S3 requires padding the shorter one *on the right* before two are compared.
    """
    return text.upper().ljust(_SEQUENCER_DIGITS, "0") if text else ""


@dataclass(frozen=True, slots=True)
class Item:
    """What is stored for one key.

    Attributes:
        name: the key below its partition.
        time: when the object was put, UNIX seconds; for a withdrawn one, when it was deleted.
        sequencer: from :func:`ordered_sequencer`; empty if no event had one.
        registered: when the item was last written, UNIX seconds.
        version: of the object; empty in an unversioned bucket.
        reason: why it was left, and under which settings; empty unless it was left.
    """

    partition: Partition
    name: str
    etag: str
    size: int
    time: float
    sequencer: str = ""
    registered: float = 0.0
    version: str = ""
    state: ItemState = ItemState.PENDING
    reason: str = ""

    @property
    def source(self) -> SourceObject:
        """The object as LIST would return it."""
        return SourceObject(
            self.partition.bucket,
            self.partition.prefix + self.name,
            self.etag,
            self.size,
            self.time,
        )


class Removal(msgspec.Struct, frozen=True):
    """An object that was removed.

    Attributes:
        version: the version that was deleted; empty if the key has no current object.
    """

    partition: Partition
    name: str
    time: float
    sequencer: str = ""
    version: str = ""


class Head(msgspec.Struct, frozen=True):
    """A partition with pending items.

    Attributes:
        touched: increases with every registration.
        newest: when its latest object was put, UNIX seconds.
    """

    path: str
    touched: int
    newest: float


class Mark(msgspec.Struct, frozen=True):
    """A change of state to record for an item, unless it has changed since."""

    item: Item
    state: ItemState
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Batch:
    """The progress of a stream's executions.

    Attributes:
        number: of the next one.
        cut: when the last one was started, UNIX seconds; 0.0 before the first.
        execution: ARN of the last one; empty before the first.
    """

    number: int = 1
    cut: float = 0.0
    execution: str = ""


def supersedes(new: Item, old: Item) -> bool:
    """Return whether an item replaces what is stored for its key.

    An item with a sequencer does if its event is the later one. Items from LIST have none: they do
    if their object cannot be the stored one, or is stored as gone. An object with the ETag of a
    compacted one was put again only if it is newer.
    """
    if new.sequencer:
        return old.sequencer < new.sequencer
    if old.state in {ItemState.GONE, ItemState.WITHDRAWN}:
        return True
    if old.etag == new.etag and old.state is ItemState.COMPACTED:
        return new.time > old.time
    if old.etag == new.etag:
        return old.state is ItemState.LEFT and old.reason.startswith(LEFT_PASSING)
    # LIST returns whole seconds.
    return new.time >= int(old.time)


def in_place_of(new: Item, old: Item) -> Item:
    """Return the item that replaces another; only events increase the sequencer."""
    return replace(new, sequencer=new.sequencer or old.sequencer)


def withdraws(removal: Removal, old: Item | None) -> bool:
    """Return whether a removal is the latest known event of its key.

    A removal of an unknown key is stored too, so that a late event does not bring the key back.
    Objects that a commit names are no longer pending: clean-up deletes millions of these.
    """
    if old is None:
        return bool(removal.sequencer) and not removal.version
    if old.state is ItemState.COMPACTED:
        return False
    if removal.version and removal.version != old.version:
        return False
    if removal.sequencer:
        return old.sequencer < removal.sequencer
    return old.time <= removal.time


def latest(items: Iterable[Item]) -> list[Item]:
    """Return, for each key, the item that remains after registering all, in their order."""
    found: dict[tuple[str, str], Item] = {}
    for one in items:
        place = one.partition.path, one.name
        old = found.get(place)
        if old is None or supersedes(one, old):
            found[place] = one
    return list(found.values())


def in_name_order(shards: Iterable[Iterable[Item]]) -> Iterator[Item]:
    """Merge shards of a partition, each sorted by name in UTF-8 order, into one sorted stream."""
    return merge(*shards, key=name_bytes)


def name_bytes(item: Item) -> bytes:
    """Return the sort key of items."""
    return item.name.encode("utf-8", "surrogatepass")
