"""What is remembered of a key, and which of two events about it is the later one.

There is one item for each key of a stream. It holds what the latest event said, by the sequencer
that S3 gives each event of a key: so events that come twice, late or in any order come to the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from heapq import merge

import msgspec

from compactor.model import Partition, SourceObject

# S3's have 16 to 18 digits, and promise no length.
_SEQUENCER_DIGITS = 64


class ItemState(StrEnum):
    """What became of the object that a key has."""

    PENDING = "PENDING"
    LEFT = "LEFT"
    COMPACTED = "COMPACTED"
    WITHDRAWN = "WITHDRAWN"
    GONE = "GONE"


#: How the reason begins for which an object was left that may pass, such as access denied.
LEFT_PASSING = "passing"
#: In no commit yet, and so listed.
OPEN_STATES = frozenset({ItemState.PENDING, ItemState.LEFT})


def ordered_sequencer(text: str) -> str:
    """A sequencer whose text sorts as S3 orders events of one key: as hex, padded with zeros.

    S3 asks to pad the shorter one *on the right* before two are compared.
    """
    return text.upper().ljust(_SEQUENCER_DIGITS, "0") if text else ""


@dataclass(frozen=True, slots=True)
class Item:
    """What is remembered of one key.

    Attributes:
        name: the key below its partition.
        time: when the object was put, UNIX seconds; of a withdrawn one, when it was deleted.
        sequencer: as :func:`ordered_sequencer` has it; empty where no event had one.
        registered: when the item came to be what it is, UNIX seconds.
        version: of the object; empty in a bucket without versions.
        reason: why it was left, and by which settings; empty unless it was.
        restored: an archived object can be read now. Never stored.
        past: it was listed some time ago, by an inventory. Never stored.
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
    restored: bool = False
    past: bool = False

    @property
    def source(self) -> SourceObject:
        """The object, as LIST would show it."""
        return SourceObject(
            self.partition.bucket,
            self.partition.prefix + self.name,
            self.etag,
            self.size,
            self.time,
        )


class Removal(msgspec.Struct, frozen=True):
    """An object that is no more.

    Attributes:
        version: the one version that was deleted; empty where the key has no object now.
    """

    partition: Partition
    name: str
    time: float
    sequencer: str = ""
    version: str = ""


class Head(msgspec.Struct, frozen=True):
    """A partition with something pending.

    Attributes:
        touched: grows with every registration.
        newest: when its latest object was put, UNIX seconds.
    """

    path: str
    touched: int
    newest: float


class Mark(msgspec.Struct, frozen=True):
    """What is to be noted of an item, if it is still what it was.

    Attributes:
        commit: id of the commit that names it, where that is known.
    """

    item: Item
    state: ItemState
    commit: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Batch:
    """How far the executions of a stream are.

    Attributes:
        number: of the next one.
        cut: when the last one was started, UNIX seconds; 0.0 before the first.
        execution: ARN of the last one; empty before the first.
        objects, bytes: registered since, as a hint: when it is worth a look.
        looked: when a sweep looked last, UNIX seconds.
    """

    number: int = 1
    cut: float = 0.0
    execution: str = ""
    objects: int = 0
    bytes: int = 0
    looked: float = 0.0


def supersedes(new: Item, old: Item) -> bool:
    """Whether an item takes the place of what is remembered of its key.

    One with a sequencer does where that is the later one. One that LIST found has none: it does
    where its object cannot be the one that is remembered, or is remembered as gone; that of a
    compacted one was put again where it is younger. One that an inventory lists may be gone since:
    it does where it is younger than what is remembered.
    """
    if new.sequencer:
        return old.sequencer < new.sequencer
    if new.past:
        return new.time > old.time
    if old.state in {ItemState.GONE, ItemState.WITHDRAWN}:
        return True
    if old.etag == new.etag and old.state is ItemState.COMPACTED:
        return new.time > old.time
    if old.etag == new.etag:
        may_pass = new.restored or old.reason.startswith(LEFT_PASSING)
        return may_pass and old.state is ItemState.LEFT
    # LIST has whole seconds.
    return new.time >= int(old.time)


def in_place_of(new: Item, old: Item) -> Item:
    """The item that takes the place of another; only events raise the sequencer."""
    return replace(new, sequencer=new.sequencer or old.sequencer)


def withdraws(removal: Removal, old: Item | None) -> bool:
    """Whether a removal is the latest that is known of its key.

    One of a key that is not known is remembered, too, so that a late event does not bring it back.
    What a commit names is no longer pending: clean-up deletes millions of such.
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
    """The item of each key that stands when all were registered, in their order."""
    found: dict[tuple[str, str], Item] = {}
    for one in items:
        place = one.partition.path, one.name
        old = found.get(place)
        if old is None or supersedes(one, old):
            found[place] = one
    return list(found.values())


def in_name_order(shards: Iterable[Iterable[Item]]) -> Iterator[Item]:
    """The items of a partition in UTF-8 order of names, out of shards each of which has them so."""
    return merge(*shards, key=name_bytes)


def name_bytes(item: Item) -> bytes:
    """What items are in order by."""
    return item.name.encode("utf-8", "surrogatepass")
