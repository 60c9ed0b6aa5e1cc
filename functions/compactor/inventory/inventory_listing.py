"""Serves the sorted pages of an inventory as a listing of the source, like LIST."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from itertools import takewhile
from threading import Lock

from compactor.inventory.pages import (
    InventoryIndex,
    RunShelf,
    Shelf,
    read_index,
    read_listed,
)
from compactor.model import Partition, SourceObject
from compactor.planning.partition_listing import ListedStore
from compactor.ports import KeyPage, ObjectStore
from compactor.settings.settings import Settings

# Neighbouring partitions share pages. A page takes some 4 MB.
_PAGES_HELD = 12
# The character after "/": all keys below "level/" sort before "level0".
_AFTER_SLASH = chr(ord("/") + 1)


class InventoryListing:
    """The listing of a source from an inventory; thread safe.

    Args:
        index: index of the pages.
        shelf: where the pages are stored.
    """

    def __init__(self, index: InventoryIndex, shelf: Shelf) -> None:
        self.index = index
        self._shelf = shelf
        self._first = [page.first for page in index.pages]
        self._held: OrderedDict[int, list[SourceObject]] = OrderedDict()
        self._lock = Lock()

    @property
    def as_of(self) -> float:
        """Time at which the objects were listed, UNIX seconds."""
        return self.index.created_at

    def newest(self, partition: Partition) -> float:
        """Return 0.0: all objects are in the listing."""
        return 0.0

    def covers(self, bucket: str, prefix: str) -> bool:
        """Return True if the listing has everything below a prefix."""
        return bucket == self.index.bucket and prefix.startswith(self.index.prefix)

    def list_objects(
        self, bucket: str, prefix: str, *, start_after: str = ""
    ) -> Iterator[Sequence[SourceObject]]:
        """Return pages of all objects below a prefix in UTF-8 key order, like ObjectStore.

        Raises:
            IntegrityError: a page is missing or damaged.
        """
        # The next possible key after another is that key with a NUL appended.
        return self._from(prefix, max(prefix, start_after + "\0" if start_after else ""))

    def _from(self, prefix: str, key: str) -> Iterator[Sequence[SourceObject]]:
        """Yield pages of the objects below a prefix, from ``key`` on."""
        for number in range(max(0, bisect_right(self._first, key) - 1), len(self._first)):
            if self._first[number] > prefix and not self._first[number].startswith(prefix):
                return
            page = self._page(number)
            begin = bisect_left(page, key, key=_key)
            end = bisect_left(page, True, lo=begin, key=lambda one: not one.key.startswith(prefix))
            if begin < end:
                yield page[begin:end]

    def list_level(self, bucket: str, prefix: str) -> Iterator[KeyPage]:
        """Yield pages of one level below a prefix, delimited by ``/``, like ObjectStore.

        Raises:
            IntegrityError: a page is missing or damaged.
        """
        below, following = len(prefix), prefix
        while (page := next(self._from(prefix, following), None)) is not None:
            # Objects of this level are contiguous up to the next deeper key.
            direct = tuple(takewhile(lambda one: "/" not in one.key[below:], page))
            if direct:
                yield KeyPage(direct, ())
                following = direct[-1].key + "\0"
                continue
            level = page[0].key[: page[0].key.index("/", below) + 1]
            yield KeyPage((), (level,))
            following = level[:-1] + _AFTER_SLASH

    def _page(self, number: int) -> list[SourceObject]:
        with self._lock:
            found = self._held.get(number)
            if found is not None:
                self._held.move_to_end(number)
                return found
        bucket = self.index.bucket
        found = [
            SourceObject(bucket, row.key, row.etag, row.size, row.last_modified, row.storage_class)
            for row in read_listed(self._shelf, self.index, self.index.pages[number])
        ]
        with self._lock:
            self._held[number] = found
            while len(self._held) > _PAGES_HELD:
                self._held.popitem(last=False)
        return found


def _key(one: SourceObject) -> str:
    return one.key


class InventoriedStore(ListedStore):
    """A store that lists its source from an inventory, also level by level."""

    def __init__(self, store: ObjectStore, listing: InventoryListing) -> None:
        super().__init__(store, listing)
        self._levels = listing

    def list_level(self, bucket: str, prefix: str) -> Iterator[KeyPage]:
        """Return pages of one level below a prefix, from the inventory if it covers the prefix."""
        lists = self._levels if self._levels.covers(bucket, prefix) else self._store
        return lists.list_level(bucket, prefix)


def open_listing(settings: Settings, run_id: str, store: ObjectStore) -> InventoryListing | None:
    """Return the inventory listing that discovery made for a run; None if the run uses LIST.

    Raises:
        IntegrityError: the index is damaged, or a later version wrote it.
    """
    if settings.listing_kind != "inventory":
        return None
    shelf = RunShelf(settings, run_id, store)
    index = read_index(shelf)
    # Without an index, the run falls back to LIST.
    return None if index is None else InventoryListing(index, shelf)
