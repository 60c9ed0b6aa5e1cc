"""Reading sources, each GET pinned to the ETag that was listed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from compactor.errors import AlreadyExists, ObjectMissing, SourceChanged, UnreadableSource
from compactor.model import SourceObject
from compactor.ports import SourceBody
from compactor.stores.base import S3Base, readable_tier
from compactor.stores.fast_get import FastGet
from compactor.stores.readahead import read_ahead
from compactor.stores.translate import translated

MIB = 1024 * 1024
# Larger sources are streamed in ranges of this size, not held whole.
WHOLE_SOURCE_BYTES = 8 * MIB
RANGE_BYTES = 8 * MIB


class S3Sources(S3Base):
    """The source-reading part of :class:`compactor.ports.ObjectStore`."""

    _threads: int
    _budget_bytes: int
    _fast: FastGet | None

    def read_sources(self, sources: Iterable[SourceObject]) -> Iterator[SourceBody]:
        """See the port."""
        return read_ahead(
            sources, self._fetch, threads=self._threads, budget_bytes=self._budget_bytes
        )

    def _fetch(self, source: SourceObject) -> SourceBody:
        if not source.size:
            return SourceBody(source, content=b"")
        if source.size > WHOLE_SOURCE_BYTES:
            return SourceBody(source, chunks=lambda: self._ranges(source))
        try:
            return SourceBody(source, content=self._read(source, 0, source.size))
        except (SourceChanged, UnreadableSource) as error:
            return SourceBody(source, error=error)

    def read_range(self, source: SourceObject, start: int, length: int) -> bytes:
        """See the port."""
        return self._read(source, start, length)

    def _ranges(self, source: SourceObject) -> Iterator[bytes]:
        for start in range(0, source.size, RANGE_BYTES):
            yield self._read(source, start, min(RANGE_BYTES, source.size - start))

    def _read(self, source: SourceObject, start: int, length: int) -> bytes:
        whole = length == source.size
        if self._fast is not None and whole and self._fast.takes(source.key):
            self.requests.add("GET")
            body = self._fast.get(source)
        else:
            body = self._slow_read(source, {} if whole else {"Range": byte_range(start, length)})
        self.requests.add("bytes_read", len(body))
        if len(body) != length:
            raise SourceChanged(source.key, source.etag, f"{len(body)} bytes, not {length}")
        return body

    def _slow_read(self, source: SourceObject, arguments: dict[str, Any]) -> bytes:
        self.requests.add("GET")
        try:
            with translated("get", source.bucket, source.key), readable_tier(source.key):
                answer = self._client.get_object(
                    Bucket=source.bucket, Key=source.key, IfMatch=f'"{source.etag}"', **arguments
                )
                return answer["Body"].read()
        except AlreadyExists:
            raise SourceChanged(source.key, source.etag, "another ETag") from None
        except ObjectMissing:
            raise SourceChanged(source.key, source.etag, "no object") from None


def byte_range(start: int, length: int) -> str:
    """The value of an HTTP Range header."""
    return f"bytes={start}-{start + length - 1}"
