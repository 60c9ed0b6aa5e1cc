"""Take the listing of one partition, in bounded memory."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Container, Generator, Iterator, Sequence
from contextlib import suppress
from math import inf
from typing import Any, Protocol

import msgspec

from compactor.errors import CompactorError
from compactor.fingerprint import Fingerprint, columns_of
from compactor.limits import USUAL, WorkerLimits
from compactor.model import Listing, Partition, SourceObject
from compactor.ports import ObjectStore, require_order


class Lists(Protocol):
    """What lists objects: a store, or an earlier listing."""

    def list_objects(
        self, bucket: str, prefix: str, *, start_after: str = ""
    ) -> Iterator[Sequence[SourceObject]]:
        """Pages of all objects below a prefix in UTF-8 key order."""
        ...


class EarlierListing(Lists, Protocol):
    """What was listed before the run began."""

    @property
    def as_of(self) -> float:
        """When it was, UNIX seconds."""
        ...

    def newest(self, partition: Partition) -> float:
        """When a partition's latest object arrived, listed or not; 0.0 where all are listed."""
        ...


class AsOf(msgspec.Struct, frozen=True):
    """What a store lists, but for what arrived after a time.

    Attributes:
        at: UNIX seconds.
    """

    store: Lists
    at: float

    def list_objects(
        self, bucket: str, prefix: str, *, start_after: str = ""
    ) -> Iterator[Sequence[SourceObject]]:
        """Pages of what was there before, and is there still."""
        for page in self.store.list_objects(bucket, prefix, start_after=start_after):
            yield [one for one in page if one.last_modified <= self.at]


class ListsSource(Lists, Protocol):
    """Lists the objects of a source that a store could list, too."""

    def covers(self, bucket: str, prefix: str) -> bool:
        """True where it has all that is below a prefix."""
        ...


class ListedStore:
    """Stands in for :class:`compactor.ports.ObjectStore`: a store whose source is listed elsewhere.

    Args:
        store: for all the rest.
        listing: of the source.
    """

    def __init__(self, store: ObjectStore, listing: ListsSource) -> None:
        self._store = store
        self._listing = listing

    def __getattr__(self, name: str) -> Any:
        """Whatever lists nothing is the store's own."""
        return getattr(self._store, name)

    def list_objects(
        self, bucket: str, prefix: str, *, start_after: str = "", until: str = ""
    ) -> Iterator[Sequence[SourceObject]]:
        """Pages of all objects below a prefix; of the source from its listing."""
        if not self._listing.covers(bucket, prefix):
            place = {"start_after": start_after, "until": until}
            return self._store.list_objects(bucket, prefix, **place)
        return _up_to(until, self._listing.list_objects(bucket, prefix, start_after=start_after))


def _up_to(until: str, pages: Iterator[Sequence[SourceObject]]) -> Iterator[Sequence[SourceObject]]:
    """Pages as far as a key; all of them where it is empty."""
    for page in pages:
        if until and page and page[-1].key > until:
            yield [one for one in page if one.key <= until]
            return
        yield page


class Onward:
    """Lists on after the last window, with the pages that were listed ahead of its end.

    A store lists ahead of its caller (:mod:`compactor.s3.listing`: 50 pages at
    most), and a window ends amid them. Any other place is listed again.

    Args:
        lists: lists the objects of one prefix.
    """

    def __init__(self, lists: Lists) -> None:
        self._lists = lists
        self._pages: Iterator[Sequence[SourceObject]] = iter(())
        self._page: Sequence[SourceObject] = ()
        self._before = ""
        # Where the pages begin that were not asked for yet.
        self._begun: str | None = None

    def begin(self, bucket: str, prefix: str, *, start_after: str) -> None:
        """List the first page before anybody asks for it.

        What fails here is asked for again when it is needed, and fails there.
        """
        pages = self._lists.list_objects(bucket, prefix, start_after=start_after)
        with suppress(CompactorError):
            self._pages = _with_first(next(pages, ()), pages)
            # Started, so that closing it closes the pages that follow.
            next(self._pages)
            self._begun = start_after

    def list_objects(
        self, bucket: str, prefix: str, *, start_after: str = ""
    ) -> Iterator[Sequence[SourceObject]]:
        """Pages of all objects below a prefix in UTF-8 key order; some perhaps listed before."""
        if self._ends_in_page(start_after):
            yield self._page[bisect_right(self._page, start_after, key=lambda one: one.key) :]
        elif self._begun == start_after:
            self._begun, self._before = None, start_after
        else:
            self.drop()
            self._before = start_after
            self._pages = self._lists.list_objects(bucket, prefix, start_after=start_after)
        try:
            for page in self._pages:
                if page:
                    if self._page:
                        self._before = self._page[-1].key
                    self._page = page
                yield page
        except Exception:
            # What has raised once would end without a word.
            self.drop()
            raise

    def drop(self) -> None:
        """Keep nothing more of what was listed ahead."""
        if isinstance(self._pages, Generator):
            # Those that are listing ahead for it end now.
            self._pages.close()
        self._pages, self._page, self._before, self._begun = iter(()), (), "", None

    def _ends_in_page(self, key: str) -> bool:
        return bool(self._page) and self._before <= key <= self._page[-1].key


def _with_first(
    first: Sequence[SourceObject], pages: Iterator[Sequence[SourceObject]]
) -> Generator[Sequence[SourceObject], None, None]:
    yield ()
    yield first
    yield from pages


def take_listing(
    store: Lists,
    partition: Partition,
    committed: Container[bytes],
    start_after: str = "",
    until: str | None = None,
    *,
    written_at: float = inf,
    limits: WorkerLimits = USUAL,
    seen: Fingerprint | None = None,
) -> Listing:
    """List a partition, holding only what no commit names, at most ``window_objects`` of it.

    Where a listing ends depends on the keys alone, never on how the store cuts its pages: two
    workers that list the same objects hold the same.

    Args:
        store: lists the partition.
        partition: what to list.
        committed: identities of sources that commits name; they are only counted.
        start_after: list from after this key on; empty for the start.
        written_at: when the newest commit was written, by the store's clock; UNIX seconds. What
            one names, and is younger, was put again.
        until: the last key to list, however many there are before it; None for as many as a
            listing may hold.
        limits: what a worker keeps to.
        seen: takes what is listed, committed or not.
    """
    fresh: list[SourceObject] = []
    returned: list[SourceObject] = []
    committed_objects = committed_bytes = 0
    newest = 0.0
    complete, last_key = True, ""
    most = limits.window_objects
    objects = _objects(store, partition, start_after, seen)
    for source in objects:
        if until is not None and source.key > until:
            break
        held = len(fresh) + len(returned)
        if source.identity in committed:
            if source.last_modified <= written_at:
                committed_objects += 1
                committed_bytes += source.size
            elif until is None and held >= most:
                complete = False
                break
            else:
                returned.append(source)
        elif until is None and held >= most:
            complete = False
            break
        else:
            fresh.append(source)
        newest = max(newest, source.last_modified)
        last_key = source.key
    objects.close()
    if until is not None:
        complete, last_key = False, until
    return Listing(
        partition,
        tuple(fresh),
        committed_objects,
        committed_bytes,
        newest,
        complete,
        last_key,
        tuple(returned),
    )


def _objects(
    store: Lists, partition: Partition, start_after: str, seen: Fingerprint | None
) -> Generator[SourceObject, None, None]:
    """What is listed; whatever the caller took before it asked for the next is ``seen``.

    Raises:
        IntegrityError: a key is listed twice, or out of order.
    """
    after = start_after
    for page in store.list_objects(partition.bucket, partition.prefix, start_after=start_after):
        # Before its objects are made, which is when it takes a fifth of the time.
        columns = columns_of(page) if page and seen is not None else ()
        require_order([one.key for one in page], after)
        after = page[-1].key if page else after
        taken = 0
        try:
            for source in page:
                yield source
                taken += 1
        finally:
            if seen is not None and taken == len(page) and taken:
                seen.take(page, columns)
            elif seen is not None:
                seen.add(list(page[:taken]))
