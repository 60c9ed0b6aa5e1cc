"""Lists keys page by page, one page ahead of the caller."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from compactor.errors import CompactorError, IntegrityError, InvalidInput
from compactor.model import ARCHIVED_CLASSES, SourceObject
from compactor.ports import KeyPage, require_order
from compactor.s3.base import S3Base
from compactor.s3.bodies import TimeIsUp
from compactor.s3.list_parser import PAGE, ListedPage, page_of
from compactor.s3.translate import Again

# If a page returns its own token this many times in a row, the listing does not advance.
MOST_REPEATS = 100

_ListPage = Callable[[Mapping[str, Any], threading.Event], ListedPage]


class S3Listing(S3Base):
    """The listing part of :class:`compactor.ports.ObjectStore`."""

    def list_objects(
        self, bucket: str, prefix: str, *, start_after: str = "", until: str = ""
    ) -> Iterator[Sequence[SourceObject]]:
        place = {"Bucket": bucket, "Prefix": prefix}
        list_page = _WithRestores(self._page)
        for page in _pages(list_page, place, start_after=start_after, until=until):
            if until and _last(page) > until:
                yield [one for one in page.objects if one.key <= until]
            else:
                yield page.objects

    def list_level(self, bucket: str, prefix: str) -> Iterator[KeyPage]:
        for page in _pages(self._page, {"Bucket": bucket, "Prefix": prefix, "Delimiter": "/"}):
            yield KeyPage(tuple(page.objects), page.prefixes)

    def _page(self, arguments: Mapping[str, Any], stopped: threading.Event) -> ListedPage:
        bucket, prefix = arguments["Bucket"], arguments["Prefix"]

        def request(_: TimeIsUp) -> ListedPage:
            answer: Any = self.client.list_objects_v2(**arguments)
            try:
                page = page_of(answer.get(PAGE, b""), bucket)
            except (ValueError, KeyError, OverflowError) as error:
                detail = f"{type(error).__name__} {error}"
                raise Again(f"the listing of {bucket} cannot be read: {detail}") from error
            require_order([one.key for one in page.objects])
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
            asked: Any = {**arguments, "MaxKeys": 1, "RequestPayer": "requester"}
            self.client.list_objects_v2(**asked)
            return True

        bucket, prefix = arguments["Bucket"], arguments["Prefix"]
        try:
            return self._answer("LIST", "list", bucket, prefix, request)
        except CompactorError:
            return False


class _WithRestores:
    """Lists pages that show which archived objects are restored.

    The restore status is requested from the first page on that has archived objects; that page is
    listed twice. Other stores may not know this option, and have no archived objects.
    """

    def __init__(self, list_page: _ListPage) -> None:
        self._list_page = list_page
        self._extra: dict[str, Any] = {}

    def __call__(self, arguments: Mapping[str, Any], stopped: threading.Event) -> ListedPage:
        page = self._list_page({**arguments, **self._extra}, stopped)
        if self._extra or ARCHIVED_CLASSES.isdisjoint(one.storage_class for one in page.objects):
            return page
        extra = {"OptionalObjectAttributes": ["RestoreStatus"]}
        try:
            page = self._list_page({**arguments, **extra}, stopped)
        except InvalidInput:
            # The store rejects the option: its archived objects are left alone.
            return page
        self._extra = extra
        return page


def _pages(
    list_page: _ListPage, place: Mapping[str, Any], *, start_after: str = "", until: str = ""
) -> Iterator[ListedPage]:
    """Yield pages up to the one with ``until``; the next is listed while the caller works.

    Raises:
        IntegrityError: keys are out of order, or the listing would never end.
    """
    stopped = threading.Event()
    page = list_page({**place, "StartAfter": start_after} if start_after else place, stopped)
    last, repeats = start_after, 0
    with ThreadPoolExecutor(1, thread_name_prefix="list") as pool:
        try:
            require_order(_first(page), last)
            while page.token and not (until and _last(page) > until):
                more = {**place, "ContinuationToken": page.token}
                following = pool.submit(list_page, more, stopped)
                yield page
                token, last, page = page.token, _last(page) or last, following.result()
                require_order(_first(page), last)
                repeats = repeats + 1 if page.token == token else 0
                if repeats > MOST_REPEATS:
                    raise IntegrityError(
                        f"the store lists the same page again and again: token {token!r}"
                    )
            yield page
        finally:
            stopped.set()


def _first(page: ListedPage) -> Sequence[str]:
    """Return the first key or prefix; empty for an empty page."""
    return sorted((*(one.key for one in page.objects[:1]), *page.prefixes[:1]))[:1]


def _last(page: ListedPage) -> str:
    """Return the last key or prefix; empty for an empty page."""
    return max((*(one.key for one in page.objects[-1:]), *page.prefixes[-1:]), default="")


def _requester_pays(bucket: str) -> InvalidInput:
    accepted = "a bucket whose owner pays for requests"
    line = (
        f"the bucket {bucket} is Requester Pays, which is not supported: copy what you need into a"
        " bucket of your own, or ask its owner to switch it off"
    )
    return InvalidInput("bucket", bucket, accepted, message=line)
