"""Lists one partition in bounded memory."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress

from compactor.errors import CompactorError
from compactor.limits import USUAL, WorkerLimits
from compactor.log.digests import Digests
from compactor.model import SHOWN_EXAMPLES, Listing, Partition, Skipped, SourceObject
from compactor.ports import ObjectStore, require_order

Pages = Iterator[Sequence[SourceObject]]
#: Lists one partition: yields pages of its objects after a key, in UTF-8 key order.
ListAfter = Callable[[str], Pages]


def listing_of(store: ObjectStore, partition: Partition) -> ListAfter:
    """Return what lists a partition by LIST."""

    def list_after(key: str) -> Pages:
        return store.list_objects(partition.bucket, partition.prefix, start_after=key)

    return list_after


class Onward:
    """Lists on from the last window, reusing the pages that were listed ahead of its end.

    A store lists ahead of its caller (:mod:`compactor.s3.listing`: 50 pages at most), and a window
    ends somewhere in those pages. A listing from any other key starts a new one.

    Args:
        list_after: lists the partition.
    """

    def __init__(self, list_after: ListAfter) -> None:
        self._list_after = list_after
        self._pages: Pages = iter(())
        self._page: Sequence[SourceObject] = ()
        self._before = ""
        # The start of pages that were listed but not requested yet.
        self._begun: str | None = None

    def begin(self, start_after: str) -> None:
        """List the first page before it is requested.

        An error here is ignored: the request is repeated when the page is needed, and fails there.
        """
        pages = self._list_after(start_after)
        with suppress(CompactorError):
            self._pages = _with_first(next(pages, ()), pages)
            # Advance the generator, so that closing it also closes the underlying pages.
            next(self._pages)
            self._begun = start_after

    def __call__(self, start_after: str) -> Pages:
        """Yield pages of the objects after a key, reusing listed pages."""
        if self._ends_in_page(start_after):
            yield self._page[bisect_right(self._page, start_after, key=lambda source: source.key) :]
        elif self._begun == start_after:
            self._begun, self._before = None, start_after
        else:
            self.drop()
            self._before = start_after
            self._pages = self._list_after(start_after)
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
    first: Sequence[SourceObject], pages: Pages
) -> Generator[Sequence[SourceObject], None, None]:
    yield ()
    yield first
    yield from pages


def take_listing(
    list_after: ListAfter,
    partition: Partition,
    committed: Digests,
    start_after: str = "",
    until: str | None = None,
    *,
    limits: WorkerLimits = USUAL,
) -> Listing:
    """List a partition, keeping at most ``window_objects`` objects in memory.

    Only sources whose keys no commit names are kept.
    Where a listing ends depends on the keys alone, never on how the store splits its pages: two
    workers that list the same objects keep the same ones.

    Args:
        list_after: lists the partition.
        partition: the partition to list.
        committed: identities of sources that commits name. These are only counted, and so are
            objects that were put over them.
        start_after: list only keys after this one; empty for all.
        until: the last key to list, however many there are before it; None to stop at
            ``window_objects``.
        limits: the worker's limits.
    """
    fresh: list[SourceObject] = []
    overwritten = Skipped(0, 0)
    committed_objects = committed_bytes = 0
    newest = 0.0
    complete, last_key = True, ""
    most = limits.window_objects
    objects = _objects(list_after, start_after)
    for source in objects:
        if until is not None and source.key > until:
            break
        if source.identity in committed:
            committed_objects += 1
            committed_bytes += source.size
        elif committed.has_key_of(source.identity):
            overwritten = overwritten.plus(Skipped(1, source.size, (source.key,)), SHOWN_EXAMPLES)
        elif until is None and len(fresh) >= most:
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
        overwritten,
    )


def _objects(list_after: ListAfter, start_after: str) -> Generator[SourceObject, None, None]:
    """Yield the listed objects.

    Raises:
        IntegrityError: a key is listed twice, or out of order.
    """
    after = start_after
    for page in list_after(start_after):
        require_order([source.key for source in page], after)
        after = page[-1].key if page else after
        yield from page
