"""A numbered log on S3: the next entry is one PUT that fails if another writer was first.

Entry n, from 1 on, is the object ``<prefix><n, in 20 digits>.<ending>``. What belongs to it has its
number and a kind, such as ``<20 digits>.checkpoint.<ending>``. Entries are never changed or
deleted. All who read the log agree on it: entries have the order of their numbers, and none is
missing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Generic, Protocol, TypeVar

import msgspec

from compactor.documents import create_once
from compactor.errors import IntegrityError, TransientStoreError
from compactor.log.identity import WAY_OUT
from compactor.ports import ObjectStore

CHECKPOINT = "checkpoint"
Entry = TypeVar("Entry")
Added_contra = TypeVar("Added_contra", contravariant=True)


class Listed(msgspec.Struct):
    """The numbers of a log's objects.

    Attributes:
        entries: numbers of the entries.
        others: by kind, numbers of the entries that have such an object.
    """

    entries: set[int] = msgspec.field(default_factory=set)
    others: dict[str, set[int]] = msgspec.field(default_factory=dict)

    @property
    def checkpoint(self) -> int:
        """The number of the newest checkpoint, or 0."""
        return self.newest(CHECKPOINT)

    def newest(self, kind: str) -> int:
        """Return the highest number that has an object of this kind, or 0."""
        return max(self.others.get(kind, ()), default=0)


class Fold(Protocol[Added_contra]):
    """What a reader keeps of a log's entries.

    Attributes:
        last: number of the last entry that was added.
    """

    last: int

    def add(self, entry: Added_contra, /) -> None:
        """Add the next entry."""


class NumberedLog(Generic[Entry]):
    """A numbered log.

    Args:
        store: the store that holds it.
        bucket: its bucket.
        prefix: start of its keys; deeper keys do not belong to it.
        ending: end of its keys, without the first dot.
        read: returns the entry at a bucket and key, which must have this number.
        encode: returns an entry as it is stored.
        id_of: returns the random id of an entry, by which its writer recognises it.
        most_races: how often an append may find its number taken.
    """

    def __init__(
        self,
        store: ObjectStore,
        bucket: str,
        prefix: str,
        ending: str,
        *,
        read: Callable[[str, str, int], Entry],
        encode: Callable[[Entry], bytes],
        id_of: Callable[[Entry], str],
        most_races: int,
    ) -> None:
        self._store = store
        self._bucket, self._prefix, self._ending = bucket, prefix, ending
        self._read, self._encode, self._id_of = read, encode, id_of
        self._most_races = most_races
        self._name = re.compile(rf"(\d{{20}})\.(?:([a-z]+)\.)?{re.escape(ending)}")

    @property
    def where(self) -> str:
        """The log's location, for messages."""
        return f"s3://{self._bucket}/{self._prefix}"

    def key(self, number: int, kind: str = "") -> str:
        """Return the key of an entry, or of an object of this kind that belongs to it."""
        between = f"{kind}." if kind else ""
        return f"{self._prefix}{number:020d}.{between}{self._ending}"

    def listed(self, after: int = 0, existing: int = 0) -> Listed:
        """List the objects of the entries after a number.

        Args:
            after: a number that was reached before.
            existing: number of an entry that another object names.

        Raises:
            IntegrityError: an entry is missing.
        """
        objects = Listed()
        start = self.key(after) if after else ""
        for page in self._store.list_objects(self._bucket, self._prefix, start_after=start):
            for stored in page:
                match = self._name.fullmatch(stored.key, len(self._prefix))
                if match is None or int(match[1]) <= after:
                    continue
                numbers = (
                    objects.others.setdefault(match[2], set()) if match[2] else objects.entries
                )
                numbers.add(int(match[1]))
        existed = {existing}.union(*objects.others.values())
        require_unbroken(self.where, objects.entries, existed, after)
        return objects

    def read(self, number: int) -> Entry:
        """Read one entry.

        Raises:
            IntegrityError: it is damaged, or was deleted since it was listed.
        """
        return self._read(self._bucket, self.key(number), number)

    def fold_in(self, fold: Fold[Entry], listed: Listed) -> list[Entry]:
        """Read the listed entries that a fold does not have, and add them.

        Raises:
            IntegrityError: one cannot be read, or belongs to another log.
        """
        entries = []
        for number in sorted(number for number in listed.entries if number > fold.last):
            entry = self.read(number)
            fold.add(entry)
            entries.append(entry)
        return entries

    def refresh(self, fold: Fold[Entry]) -> list[Entry]:
        """Add the entries that were written since; return them.

        Raises:
            IntegrityError: as :meth:`listed` and :meth:`fold_in`.
        """
        return self.fold_in(fold, self.listed(fold.last))

    def append(
        self,
        fold: Fold[Entry],
        with_number: Callable[[int], Entry],
        may_append: Callable[[], None] = lambda: None,
    ) -> Entry:
        """Write the next entry, add it to the fold, and return it.

        If another writer was first, its entries are read, and the next number is tried.

        Args:
            fold: of the log.
            with_number: returns the entry with a number; its id stays the same.
            may_append: called before each try; raises what ends the append, if entries that the
                fold has by then contradict it.

        Raises:
            TransientStoreError: other writers were always first.
        """
        for _ in range(self._most_races):
            may_append()
            number = fold.last + 1
            entry = with_number(number)
            if create_once(self._store, (self._bucket, self.key(number)), self._encode(entry)):
                fold.add(entry)
                return entry
            new_entries = self.refresh(fold)
            # A repeated PUT may find the entry that its own first attempt wrote.
            if new_entries and self._id_of(new_entries[0]) == self._id_of(entry):
                return new_entries[0]
        raise TransientStoreError(f"log {self.where}: others were first {self._most_races:,} times")

    def attach(self, number: int, kind: str, body: bytes) -> bool:
        """Create an object that belongs to an entry; return False if there is one.

        Args:
            number: of an entry of the log, which is not checked.
            kind: of the object, in lower-case letters.
            body: its bytes.
        """
        return create_once(self._store, (self._bucket, self.key(number, kind)), body)


def require_unbroken(
    where: str, entries: Collection[int], attached: Collection[int], after: int = 0
) -> None:
    """Check that no entry after a number is missing up to the last known one.

    Args:
        where: the log's location, for messages.
        entries: numbers of the existing entries.
        attached: numbers of entries that checkpoints and other objects show to have existed.
        after: a number that was reached before.

    Raises:
        IntegrityError: names the first missing entry.
    """
    last = max((*entries, *attached), default=0)
    missing = [number for number in range(after + 1, last + 1) if number not in entries]
    if missing:
        more = f" nor {len(missing) - 1} others" if len(missing) > 1 else ""
        raise IntegrityError(
            f"log {where} has no entry {missing[0]}{more}, but was {last} entries long: it was"
            f" changed by hand; {WAY_OUT}"
        )
