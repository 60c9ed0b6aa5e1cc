"""Listings: of one level page by page, of all keys by several key ranges at once."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from compactor.errors import IntegrityError, TransientStoreError
from compactor.model import SourceObject
from compactor.ports import KeyPage
from compactor.stores.base import S3Base
from compactor.stores.key_ranges import key_ahead
from compactor.stores.list_parser import PAGE, ListedPage
from compactor.stores.translate import translated

# A cut falls somewhere into a page, and half a page is listed twice: two pages to a range
# cost a fourth more requests, and a LIST costs as much as 12 GETs of the 1,000 it saves.
PAGES_PER_RANGE = 2
# A range that turns out denser than expected is cut again after so many pages.
MOST_PAGES_PER_RANGE = 4
# Few at first: what lies behind the last key is asked for in vain.
FIRST_RANGES, MOST_RANGES = 3, 8

Objects = Sequence[SourceObject]


class S3Listing(S3Base):
    """The listing part of :class:`compactor.ports.ObjectStore`."""

    def list_objects(self, bucket: str, prefix: str, *, start_after: str = "") -> Iterator[Objects]:
        """See the port."""

        def list_page(place: _Place) -> tuple[Objects, str]:
            arguments = {"Bucket": bucket, "Prefix": prefix}
            if place.token:
                arguments["ContinuationToken"] = place.token
            elif place.key:
                arguments["StartAfter"] = place.key
            page = self._page(arguments)
            return page.objects(bucket), page.token

        objects, token = list_page(_Place(start_after))
        yield objects
        if token:
            yield from _Ranges(list_page, fixed=len(prefix)).behind(objects, token)

    def list_level(self, bucket: str, prefix: str) -> Iterator[KeyPage]:
        """See the port."""
        arguments = {"Bucket": bucket, "Prefix": prefix, "Delimiter": "/"}
        page = self._page(arguments)
        with ThreadPoolExecutor(1, thread_name_prefix="list") as pool:
            while page.token:
                following = pool.submit(self._page, arguments | {"ContinuationToken": page.token})
                yield KeyPage(tuple(page.objects(bucket)), page.prefixes)
                page = following.result()
        yield KeyPage(tuple(page.objects(bucket)), page.prefixes)

    def _page(self, arguments: dict[str, Any]) -> ListedPage:
        self.requests.add("LIST")
        with translated("list", arguments["Bucket"], arguments["Prefix"]):
            answer: Any = self._client.list_objects_v2(**arguments)
        page: ListedPage | None = answer.get(PAGE)
        if page is None:
            where = f"list s3://{arguments['Bucket']}/{arguments['Prefix']}"
            raise TransientStoreError(f"{where}: the answer is no listing")
        return page


@dataclass(frozen=True, slots=True)
class _Place:
    """Where to go on: behind ``key``; with a ``token`` where the page that gave it ended.

    A page may be empty with more behind it, so that the key alone would not get on.
    """

    key: str
    token: str = ""


@dataclass(frozen=True, slots=True)
class _Listed:
    """What came of one range.

    Attributes:
        next: where its rest begins; None when it was listed to its end.
        last: nothing follows, in this range or behind it.
    """

    pages: list[Objects]
    next: _Place | None
    last: bool


@dataclass(slots=True)
class _Range:
    """Keys behind a place and up to ``end``; without an end, all that follow."""

    start: _Place
    end: str | None
    listed: Future[_Listed] | None = None


class _Ranges:
    """A listing behind its first page, several ranges ahead of the caller.

    Args:
        list_page: place -> objects, and a token when more follow; thread safe.
        fixed: length of the prefix that all keys have.
    """

    def __init__(self, list_page: Callable[[_Place], tuple[Objects, str]], *, fixed: int) -> None:
        self._list_page = list_page
        self._fixed = fixed
        self._stopped = threading.Event()
        self._ahead = FIRST_RANGES
        self._sample = ("", "")

    def behind(self, first: Objects, token: str) -> Iterator[Objects]:
        """Pages in key order, each key once.

        Args:
            first: the first page, perhaps empty.
            token: what it ended with.
        """
        self._learn(first)
        ranges = deque([_Range(_Place(self._sample[1], token), None)])
        pool = ThreadPoolExecutor(MOST_RANGES, thread_name_prefix="list")
        try:
            while ranges:
                head = self._start(ranges, pool)
                listed = head.result()
                end = ranges.popleft().end
                for page in listed.pages:
                    self._learn(page)
                    yield page
                if listed.last:
                    return
                if listed.next is not None:
                    ranges.appendleft(_Range(listed.next, end))
                self._ahead = min(MOST_RANGES, self._ahead + 1)
        finally:
            self._stopped.set()
            pool.shutdown(wait=True, cancel_futures=True)

    def _learn(self, page: Objects) -> None:
        if page:
            self._sample = (page[0].key, page[-1].key)

    def _start(self, ranges: deque[_Range], pool: ThreadPoolExecutor) -> Future[_Listed]:
        """Cut what comes next, list up to ``ahead`` ranges of it at once; returns the first."""
        running: list[Future[_Listed]] = []
        for number in range(self._ahead):
            if number == len(ranges):
                break
            one = ranges[number]
            if one.listed is None:
                cut = key_ahead(*self._sample, one.start.key, PAGES_PER_RANGE, fixed=self._fixed)
                if cut is not None and (one.end is None or cut < one.end):
                    ranges.insert(number + 1, _Range(_Place(cut), one.end))
                    one.end = cut
                one.listed = pool.submit(self._list, one.start, one.end)
            running.append(one.listed)
        return running[0]

    def _list(self, place: _Place, end: str | None) -> _Listed:
        pages: list[Objects] = []
        while len(pages) < MOST_PAGES_PER_RANGE and not self._stopped.is_set():
            page, token = self._list_page(place)
            if page and page[0].key <= place.key:
                # Going on would list objects twice, or forever.
                detail = f"{page[0].key!r} was listed behind {place.key!r}"
                raise IntegrityError(f"the store does not list keys in order: {detail}")
            if end is not None and page and page[-1].key > end:
                pages.append([source for source in page if source.key <= end])
                return _Listed(pages, None, last=False)
            pages.append(page)
            if not token:
                return _Listed(pages, None, last=True)
            place = _Place(page[-1].key if page else place.key, token)
        return _Listed(pages, place, last=False)
