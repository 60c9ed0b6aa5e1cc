"""Lists one partition in bounded memory."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Container, Generator, Iterator, Sequence
from contextlib import suppress
from math import inf
from typing import Protocol

from compactor.errors import CompactorError
from compactor.fingerprint import Fingerprint
from compactor.limits import USUAL, WorkerLimits
from compactor.model import Listing, Partition, SourceObject
from compactor.ports import require_order


class Lists(Protocol):
    """Anything that lists objects: a store, or the objects that events named."""

    def list_objects(
        self, bucket: str, prefix: str, *, start_after: str = ""
    ) -> Iterator[Sequence[SourceObject]]:
        """Yield pages of all objects below a prefix in UTF-8 key order."""
        ...


class Onward:
    """Lists on from the last window, reusing the pages that were listed ahead of its end.

    A store lists ahead of its caller (:mod:`compactor.s3.listing`: 50 pages at most), and a window
    ends somewhere in those pages. A listing from any other key starts a new one.

    Args:
        lists: lists the objects of one prefix.
    """

    def __init__(self, lists: Lists) -> None:
        self._lists = lists
        self._pages: Iterator[Sequence[SourceObject]] = iter(())
        self._page: Sequence[SourceObject] = ()
        self._before = ""
        # The start of pages that were listed but not requested yet.
        self._begun: str | None = None

    def begin(self, bucket: str, prefix: str, *, start_after: str) -> None:
        """List the first page before it is requested.

        An error here is ignored: the request is repeated when the page is needed, and fails there.
        """
        pages = self._lists.list_objects(bucket, prefix, start_after=start_after)
        with suppress(CompactorError):
            self._pages = _with_first(next(pages, ()), pages)
            # Advance the generator, so that closing it also closes the underlying pages.
            next(self._pages)
            self._begun = start_after

    def list_objects(
        self, bucket: str, prefix: str, *, start_after: str = ""
    ) -> Iterator[Sequence[SourceObject]]:
        """Yield pages of all objects below a prefix in UTF-8 key order, reusing listed pages."""
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
            # A generator that has raised would end silently on the next use.
            self.drop()
            raise

    def drop(self) -> None:
        """Discard everything that was listed ahead."""
        if isinstance(self._pages, Generator):
            # Closing stops the requests that list ahead.
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
    """List a partition, keeping at most ``window_objects`` objects in memory.

    Only sources that no commit names, or that were written again after their commit, are kept.
    Where a listing ends depends on the keys alone, never on how the store splits its pages: two
    workers that list the same objects keep the same ones.

    Args:
        store: lists the partition.
        partition: the partition to list.
        committed: identities of sources that commits name; they are only counted.
        start_after: list only keys after this one; empty for all.
        written_at: when the newest commit was written, by the store's clock; UNIX seconds. A
            committed source with a later time was written again.
        until: the last key to list, however many there are before it; None to stop at
            ``window_objects``.
        limits: the worker's limits.
        seen: updated with every listed object, committed or not.
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
    """Yield the listed objects; those the caller has moved past are added to ``seen``.

    Raises:
        IntegrityError: a key is listed twice, or out of order.
    """
    after = start_after
    for page in store.list_objects(partition.bucket, partition.prefix, start_after=start_after):
        require_order([one.key for one in page], after)
        after = page[-1].key if page else after
        taken = 0
        try:
            for source in page:
                yield source
                taken += 1
        finally:
            if seen is not None:
                seen.add(page[:taken])
