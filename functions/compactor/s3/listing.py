"""Listings: one level page by page, or all keys below a prefix by concurrent key ranges."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import msgspec

from compactor.errors import CompactorError, IntegrityError, InvalidInput, TransientStoreError
from compactor.model import ARCHIVED_CLASSES, SourceObject
from compactor.ports import KeyPage, last_of, require_order
from compactor.s3.base import S3Base
from compactor.s3.bodies import TimeIsUp
from compactor.s3.curl_handle import Received
from compactor.s3.direct import OK, Asked
from compactor.s3.key_ranges import key_ahead
from compactor.s3.list_parser import PAGE, ListedObjects, ListedPage, page_of
from compactor.s3.retries import NEVER
from compactor.s3.translate import Again

# Estimated length of a key range, in pages.
PAGES_PER_RANGE = 8
# A range that turns out denser than expected is listed in turns of this many pages, to bound the
# pages waiting for the caller.
MOST_PAGES_PER_TURN = 10
MOST_RANGES = 5
# A cut falls inside a page, which is then partly listed twice, and a range after the last key is
# listed in vain: at most one LIST wasted per cut. A LIST costs as much as 12 GETs, so wasted ones
# are limited to this share.
MOST_IN_VAIN = 0.08
# If a page returns its own token this many times in a row, the listing does not advance.
MOST_REPEATS = 100

_QUERY = {
    "Prefix": "prefix",
    "Delimiter": "delimiter",
    "StartAfter": "start-after",
    "ContinuationToken": "continuation-token",
}

Objects = Sequence[SourceObject]


class _Page(msgspec.Struct, frozen=True):
    """One page. The token is empty on the last page."""

    objects: Objects
    prefixes: tuple[str, ...]
    token: str

    @property
    def key_page(self) -> KeyPage:
        return KeyPage(tuple(self.objects), self.prefixes)

    @property
    def first(self) -> Sequence[str]:
        """The first key or prefix; empty for an empty page."""
        return sorted((*(one.key for one in self.objects[:1]), *self.prefixes[:1]))[:1]


class S3Listing(S3Base):
    """The listing part of :class:`compactor.ports.ObjectStore`."""

    def list_objects(
        self, bucket: str, prefix: str, *, start_after: str = "", until: str = ""
    ) -> Iterator[Objects]:
        stopped, wants_restores = threading.Event(), threading.Event()

        def list_page(place: _Place) -> tuple[Objects, str]:
            arguments = {"Bucket": bucket, "Prefix": prefix}
            if place.token:
                arguments["ContinuationToken"] = place.token
            elif place.key:
                arguments["StartAfter"] = place.key
            page = self._page_with_restores(arguments, stopped, wants_restores)
            return page.objects, page.token

        objects, token = list_page(_Place(start_after))
        require_order([one.key for one in objects[:1]], start_after)
        if until and objects and objects[-1].key > until:
            yield [one for one in objects if one.key <= until]
            return
        yield objects
        if token:
            ranges = _Ranges(list_page, fixed=len(prefix), stopped=stopped)
            yield from ranges.after(objects, token, until or None)

    def list_level(self, bucket: str, prefix: str) -> Iterator[KeyPage]:
        arguments = {"Bucket": bucket, "Prefix": prefix, "Delimiter": "/"}
        page = self._page(arguments)
        repeated = 0
        with ThreadPoolExecutor(1, thread_name_prefix="list") as pool:
            while page.token:
                more = arguments | {"ContinuationToken": page.token}
                following = pool.submit(self._page, more)
                yield page.key_page
                token, last, page = page.token, last_of(page.key_page), following.result()
                require_order(page.first, last)
                repeated = _repeated(token, page.token, repeated)
        yield page.key_page

    def _page_with_restores(
        self, arguments: dict[str, Any], stopped: threading.Event, wanted: threading.Event
    ) -> _Page:
        """Return a page that shows which archived objects are restored.

        The restore status is requested from the first page on that has archived objects; that
        page is listed twice. Other stores may not know this option, and have no archived objects.
        """
        asked = arguments | {"OptionalObjectAttributes": ["RestoreStatus"]}
        if wanted.is_set():
            return self._page(asked, stopped)
        page = self._page(arguments, stopped)
        if ARCHIVED_CLASSES.isdisjoint(_classes(page.objects)):
            return page
        try:
            page = self._page(asked, stopped)
        except InvalidInput:
            # The store rejects the option: its archived objects are left alone.
            return page
        wanted.set()
        return page

    def _page(self, arguments: dict[str, Any], stopped: threading.Event = NEVER) -> _Page:
        bucket, prefix = arguments["Bucket"], arguments["Prefix"]

        def otherwise(_: TimeIsUp) -> ListedPage:
            answer: Any = self.client.list_objects_v2(**arguments)
            found: ListedPage | None = answer.get(PAGE)
            if found is None:
                raise Again("an answer that is no listing")
            return found

        ask = self._direct_or(_asked(arguments), _listed, otherwise)

        def request(time_is_up: TimeIsUp) -> _Page:
            listed = ask(time_is_up)
            try:
                page = _Page(listed.objects(bucket), listed.prefixes, listed.token)
            except TransientStoreError as error:
                raise Again(error) from error
            require_order(_keys(page.objects))
            require_order(page.prefixes)
            return page

        try:
            return self._answer("LIST", "list", bucket, prefix, request, stopped)
        except InvalidInput as error:
            if error.field == "permission" and self._is_requester_pays(arguments):
                raise _requester_pays(bucket) from error
            raise

    def _is_requester_pays(self, arguments: Mapping[str, Any]) -> bool:
        """Return whether a denied listing is allowed to a requester who pays for it.

        S3 answers 403 without the header, and does not say why ("Using Requester Pays general
        purpose buckets" in the Amazon S3 User Guide).
        """

        def request(_: TimeIsUp) -> bool:
            asked = {**arguments, "MaxKeys": 1, "RequestPayer": "requester"}
            self.client.list_objects_v2(**asked)
            return True

        bucket, prefix = arguments["Bucket"], arguments["Prefix"]
        try:
            return self._answer("LIST", "list", bucket, prefix, request)
        except CompactorError:
            return False


def _requester_pays(bucket: str) -> InvalidInput:
    accepted = "a bucket whose owner pays for requests"
    line = (
        f"the bucket {bucket} is Requester Pays, which is not supported: copy what you need into a"
        " bucket of your own, or ask its owner to switch it off"
    )
    return InvalidInput("bucket", bucket, accepted, message=line)


def _classes(objects: Objects) -> Collection[str]:
    if isinstance(objects, ListedObjects):
        return objects.classes
    return {one.storage_class for one in objects}


def _keys(objects: Objects) -> Sequence[str]:
    return objects.keys if isinstance(objects, ListedObjects) else [one.key for one in objects]


def _asked(arguments: Mapping[str, Any]) -> Asked:
    """Return a ListObjectsV2 request with these botocore parameters."""
    query = {"list-type": "2", "encoding-type": "url"}
    query |= {
        name: arguments[parameter]
        for parameter, name in _QUERY.items()
        if arguments.get(parameter) is not None
    }
    wanted = arguments.get("OptionalObjectAttributes")
    headers = {"x-amz-optional-object-attributes": ",".join(wanted)} if wanted else {}
    return Asked("GET", arguments["Bucket"], "", query, headers)


def _listed(received: Received) -> ListedPage | None:
    return page_of(received.body) if received.status == OK else None


def _repeated(token: str, following: str, before: int) -> int:
    """Return how many times in a row a page has returned its own token.

    Raises:
        IntegrityError: it has done so too often; the listing would never end.
    """
    if token != following:
        return 0
    if before == MOST_REPEATS:
        raise IntegrityError(f"the store lists the same page again and again: token {token!r}")
    return before + 1


class _Place(msgspec.Struct, frozen=True):
    """Where to resume: after ``key``, or at ``token`` if there is one.

    A page can be empty although more follow; then the key alone would not advance. ``repeated``
    counts how many times in a row the token was the same.
    """

    key: str
    token: str = ""
    repeated: int = 0


class _Listed(msgspec.Struct, frozen=True):
    """The result of listing one turn of a range.

    Attributes:
        next: where the rest of the range begins; None at the end of the range.
        last: the whole listing has ended.
    """

    pages: list[Objects]
    next: _Place | None
    last: bool


class _Range(msgspec.Struct):
    """The keys after ``start`` and up to ``end``; all that follow if ``end`` is None."""

    start: _Place
    end: str | None
    listed: Future[_Listed] | None = None


class _Ranges:
    """Lists what follows the first page, several ranges ahead of the caller.

    Args:
        list_page: lists the page at a place. Returns its objects, and a token if more follow;
            thread safe.
        fixed: length of the prefix that all keys share.
        stopped: set once no more pages are wanted.
    """

    def __init__(
        self,
        list_page: Callable[[_Place], tuple[Objects, str]],
        *,
        fixed: int,
        stopped: threading.Event | None = None,
    ) -> None:
        self._list_page = list_page
        self._fixed = fixed
        self._stopped = stopped or threading.Event()
        self._sample = ("", "")
        self._lists = self._objects = 0
        self._full_page = 1

    def after(self, first: Objects, token: str, until: str | None = None) -> Iterator[Objects]:
        """Yield pages in key order, each key once.

        Args:
            first: the first page; may be empty.
            token: its continuation token.
            until: last key wanted; None for all.
        """
        self._learn([first])
        ranges = deque([_Range(_Place(self._sample[1], token), until)])
        pool = ThreadPoolExecutor(MOST_RANGES, thread_name_prefix="list")
        try:
            while ranges:
                listed = self._start(ranges, pool).result()
                end = ranges.popleft().end
                self._learn(listed.pages)
                if listed.next is not None:
                    ranges.appendleft(_Range(listed.next, end))
                if ranges and not listed.last:
                    self._start(ranges, pool)
                yield from listed.pages
                if listed.last:
                    return
        finally:
            self._stopped.set()
            pool.shutdown(wait=True, cancel_futures=True)

    def _learn(self, pages: Sequence[Objects]) -> None:
        for page in pages:
            self._lists += 1
            self._objects += len(page)
            self._full_page = max(self._full_page, len(page))
            if page:
                self._sample = (page[0].key, page[-1].key)

    def _start(self, ranges: deque[_Range], pool: ThreadPoolExecutor) -> Future[_Listed]:
        """Cut and start the next ranges; return the future of the first.

        Cuts are limited by :data:`MOST_IN_VAIN`.
        """
        running: list[Future[_Listed]] = []
        for number in range(MOST_RANGES):
            if number == len(ranges):
                break
            one = ranges[number]
            if one.listed is None:
                cut = self._cut(one, len(ranges))
                if cut is not None:
                    ranges.insert(number + 1, _Range(_Place(cut), one.end))
                    one.end = cut
                turn = min(MOST_PAGES_PER_TURN, 1 + self._lists // 4)
                one.listed = pool.submit(self._list, one.start, one.end, turn)
            running.append(one.listed)
        return running[0]

    def _cut(self, one: _Range, ranges: int) -> str | None:
        """Return the key at which to cut a range; None to leave it whole."""
        in_vain = self._lists - self._objects / self._full_page
        if in_vain + ranges > MOST_IN_VAIN * self._lists:
            return None
        cut = key_ahead(*self._sample, one.start.key, PAGES_PER_RANGE, fixed=self._fixed)
        return cut if cut is not None and (one.end is None or cut < one.end) else None

    def _list(self, place: _Place, end: str | None, turn: int) -> _Listed:
        pages: list[Objects] = []
        while len(pages) < turn and not self._stopped.is_set():
            page, token = self._list_page(place)
            require_order([one.key for one in page[:1]], place.key)
            if end is not None and page and page[-1].key > end:
                pages.append([source for source in page if source.key <= end])
                return _Listed(pages, None, last=False)
            pages.append(page)
            if not token:
                return _Listed(pages, None, last=True)
            repeated = _repeated(place.token, token, place.repeated)
            place = _Place(page[-1].key if page else place.key, token, repeated)
        return _Listed(pages, place, last=False)
