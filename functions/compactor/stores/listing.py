"""Listings, page by page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from compactor.model import SourceObject
from compactor.ports import KeyPage
from compactor.stores.base import S3Base, listed
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
            yield [listed(bucket, entry) for entry in page.get("Contents", ())]

    def list_level(self, bucket: str, prefix: str) -> Iterator[KeyPage]:
        """See the port."""
        for page in self._pages({"Bucket": bucket, "Prefix": prefix, "Delimiter": "/"}):
            yield KeyPage(
                tuple(listed(bucket, entry) for entry in page.get("Contents", ())),
                tuple(entry["Prefix"] for entry in page.get("CommonPrefixes", ())),
            )

    def _pages(self, arguments: dict[str, Any]) -> Iterator[dict[str, Any]]:
        token: dict[str, Any] = {}
        while True:
            self.requests.add("LIST")
            with translated("list", arguments["Bucket"], arguments["Prefix"]):
                page: Any = self._client.list_objects_v2(**arguments, **token)
            yield page
            if not page.get("IsTruncated"):
                return
            token = {"ContinuationToken": page["NextContinuationToken"]}
