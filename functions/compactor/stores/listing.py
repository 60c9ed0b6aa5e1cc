"""Listings, page by page, the next page asked for while one is used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from compactor.model import SourceObject
from compactor.ports import KeyPage
from compactor.stores.base import S3Base
from compactor.stores.list_parser import PAGE, ListedPage
from compactor.stores.translate import translated


class S3Listing(S3Base):
    """The listing part of :class:`compactor.ports.ObjectStore`."""

    def list_objects(
        self, bucket: str, prefix: str, *, start_after: str = ""
    ) -> Iterator[Sequence[SourceObject]]:
        """See the port."""
        arguments: dict[str, Any] = {"Bucket": bucket, "Prefix": prefix}
        if start_after:
            arguments["StartAfter"] = start_after
        for page in self._pages(arguments):
            yield page.objects(bucket)

    def list_level(self, bucket: str, prefix: str) -> Iterator[KeyPage]:
        """See the port."""
        for page in self._pages({"Bucket": bucket, "Prefix": prefix, "Delimiter": "/"}):
            yield KeyPage(tuple(page.objects(bucket)), page.prefixes)

    def _pages(self, arguments: dict[str, Any]) -> Iterator[ListedPage]:
        page = self._page(arguments, "")
        if not page.token:
            yield page
            return
        with ThreadPoolExecutor(1, thread_name_prefix="list") as pool:
            while page.token:
                following = pool.submit(self._page, arguments, page.token)
                yield page
                page = following.result()
            yield page

    def _page(self, arguments: dict[str, Any], token: str) -> ListedPage:
        self.requests.add("LIST")
        more: dict[str, Any] = {"ContinuationToken": token} if token else {}
        with translated("list", arguments["Bucket"], arguments["Prefix"]):
            answer: Any = self._client.list_objects_v2(**arguments, **more)
        page: ListedPage = answer[PAGE]
        return page
