"""Finds markers of tables and registries that a listing of sources does not show.

Each level is queried at most once; not at all if it was listed for another reason. One LIST shows
nearly all markers; on a level with more pages, each marker that sorts after the first two pages is
looked up by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from concurrent.futures import Future
from itertools import accumulate, islice
from threading import Lock

from compactor.errors import InvalidInput
from compactor.model import Listing, SkipReason
from compactor.planning.markers import LAYOUT, LEVELS, PERHAPS, Roots, owner_of, root_in, roots_in
from compactor.ports import KeyPage, ObjectStore

_PAGES = 2
_NAMES = (*LEVELS, *PERHAPS, LAYOUT)
_MARKERS = frozenset(_NAMES)
# 1.7 KB each.
_MOST_LOOKS = 10_000
# With more levels than this, the objects between the first and the last key are listed instead.
_MOST_LEVELS = 64

#: Results by level, known or pending.
Looks = dict[str, Future[SkipReason | None]]


class Level:
    """Collects the markers of a level from all its pages.

    Args:
        prefix: the level's prefix.
    """

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.markers: set[str] = set()

    def take(self, page: KeyPage) -> None:
        """Add the markers on the next page."""
        self.markers |= _MARKERS.intersection(_names(page, self.prefix))


class Surroundings:
    """Finds which levels of a bucket are the root of a table or registry; thread safe.

    Args:
        store: the store to query. A level that may not be listed counts as no root.
        bucket: the sources' bucket.
        looks: recent results for this bucket; updated.
    """

    def __init__(self, store: ObjectStore, bucket: str, looks: Looks | None = None) -> None:
        self._store = store
        self._bucket = bucket
        self._looks: Looks = {} if looks is None else looks
        self._lock = Lock()

    def learn(self, level: Level) -> None:
        """Add a level that was listed to its end, so that it is not queried."""
        if not level.markers.isdisjoint(PERHAPS):
            # What lies below these decides, and is not listed here.
            return
        look: Future[SkipReason | None] = Future()
        look.set_result(_reason(level.markers))
        with self._lock:
            self._keep(level.prefix, look)

    def above(self, prefix: str) -> SkipReason | None:
        """Return why everything below a prefix is left alone, by its name and the levels above it.

        Raises:
            TransientStoreError: the store did not answer.
        """
        named = root_in(prefix)
        if named is not None:
            return named[1]
        looks = (self._at(level) for level in _levels(prefix) if level != prefix)
        return next((reason for reason in looks if reason is not None), None)

    def owned(self, prefix: str, keys: Sequence[str]) -> str | None:
        """Return the first of some keys below a prefix that a table or registry owns, or None.

        Args:
            prefix: the partition's prefix.
            keys: in UTF-8 order.

        Raises:
            TransientStoreError: the store did not answer.
        """
        if not keys or self.above(prefix) is not None:
            return next(iter(keys), None)
        roots = self._within(prefix, keys)
        return next((key for key in keys if root_in(key) or owner_of(key, roots)), None)

    def _within(self, prefix: str, keys: Sequence[str]) -> Roots:
        levels = {level for key in keys for level in _levels(key) if level.startswith(prefix)}
        roots: dict[str, SkipReason] = {}
        if len(levels) > _MOST_LEVELS:
            first, last = keys[0], keys[-1]
            listed = self._store.list_objects(self._bucket, prefix, start_after=first, until=last)
            for page in listed:
                roots |= roots_in(page)
            # The listing covered all other levels of the keys.
            levels = {*_levels(first), *_levels(last)} & levels
        return roots | self._marked(levels)

    def around(
        self, listing: Listing, start_after: str, *, partial: bool = False
    ) -> dict[str, SkipReason]:
        """Return roots that a listing may show only in part: where it begins or ends inside them.

        Args:
            listing: the listing of a partition, or a window of it.
            start_after: the key after which it begins; empty for the partition's first.
            partial: keys may be missing anywhere in the listing.

        Raises:
            TransientStoreError: the store did not answer.
        """
        inside = listing.partition.prefix
        keys = [start_after] if start_after else []
        if not listing.complete:
            keys.append(listing.last_key)
        levels = {level for key in keys for level in _levels(key) if level.startswith(inside)}
        if partial:
            levels |= {level for source in listing.objects for level in _levels(source.key)}
        return self._marked(levels)

    def _marked(self, levels: Iterable[str]) -> dict[str, SkipReason]:
        reasons = ((level, self._at(level)) for level in sorted(levels))
        return {level: reason for level, reason in reasons if reason is not None}

    def _at(self, level: str) -> SkipReason | None:
        with self._lock:
            look = self._looks.get(level)
            if mine := look is None:
                look = Future()
                self._keep(level, look)
        if mine:
            try:
                look.set_result(self._asked(level))
            except BaseException as error:
                self._looks.pop(level, None)
                look.set_exception(error)
        return look.result()

    def _keep(self, level: str, look: Future[SkipReason | None]) -> None:
        if len(self._looks) >= _MOST_LOOKS:
            self._looks.clear()
        self._looks[level] = look

    def _asked(self, level: str) -> SkipReason | None:
        try:
            return self._found(level)
        except InvalidInput as error:
            # A role that may list the source need not be allowed to list the levels above it.
            if error.field != "permission":
                raise
            return None

    def _found(self, level: str) -> SkipReason | None:
        pages = list(islice(self._pages(level), _PAGES))
        names = {name for page in pages for name in _names(page, level)}
        if len(pages) == _PAGES:
            last = max(names, default="")
            wanted = (name for name in _NAMES if name > last)
            names |= {name for name in wanted if self._is_there(level, name)}
        found = _reason(names)
        if found is None and any(
            self._has_a_tables_file(level + name) for name in PERHAPS if name in names
        ):
            return SkipReason.TABLE
        return found

    def _is_there(self, level: str, name: str) -> bool:
        first = next(self._pages(level + name), KeyPage((), ()))
        return bool(first.prefixes) or any(
            name.endswith("/") or one.key == level + name for one in first.objects
        )

    def _has_a_tables_file(self, level: str) -> bool:
        first = next(self._pages(level), KeyPage((), ()))
        return any(root_in(one.key) is not None for one in first.objects)

    def _pages(self, prefix: str) -> Iterator[KeyPage]:
        return iter(self._store.list_level(self._bucket, prefix))


def _reason(names: Set[str]) -> SkipReason | None:
    """Return what the names in a level prove by themselves."""
    if LAYOUT in names:
        return SkipReason.REGISTRY
    return None if names.isdisjoint(LEVELS) else SkipReason.TABLE


def places_above(prefix: str) -> list[str]:
    """Return the prefixes that are listed by level to find what owns all below a prefix."""
    above = [level for level in _levels(prefix) if level != prefix]
    return [level + name for level in above for name in ("", *_NAMES)]


def _levels(key: str) -> Iterable[str]:
    """Return the prefixes above a key, the bucket's root first."""
    return ("", *accumulate(f"{name}/" for name in key.split("/")[:-1]))


def _names(page: KeyPage, level: str) -> Iterator[str]:
    yield from (one.removeprefix(level) for one in page.prefixes)
    # Some stores ignore a delimiter.
    names = (one.key.removeprefix(level).partition("/") for one in page.objects)
    yield from (name + slash for name, slash, _ in names)
