"""Reading sources, each GET pinned to the ETag that was listed."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from compactor.errors import (
    AlreadyExists,
    ObjectMissing,
    SourceChanged,
    TransientStoreError,
    UnreadableSource,
)
from compactor.model import SourceObject
from compactor.ports import SourceBody
from compactor.stores.base import S3Base, readable_tier
from compactor.stores.fast_get import FastGet, SlowDown
from compactor.stores.limiter import Limiter
from compactor.stores.readahead import pieces_ahead, read_ahead
from compactor.stores.translate import translated

MIB = 1024 * 1024
# Larger sources are streamed in ranges of this size, not held whole.
WHOLE_SOURCE_BYTES = 8 * MIB
RANGE_BYTES = 8 * MIB
RANGES_AHEAD = 3
FIRST_WAIT_SECONDS = 0.1
LONGEST_WAIT_SECONDS = 10.0


class S3Sources(S3Base):
    """The source-reading part of :class:`compactor.ports.ObjectStore`."""

    _threads: int
    _budget_bytes: int
    _fast: FastGet | None
    _limiter: Limiter
    _deadline_seconds: float

    def read_sources(self, sources: Iterable[SourceObject]) -> Iterator[SourceBody]:
        """See the port."""
        return read_ahead(
            sources,
            self._fetch,
            threads=self._threads,
            budget_bytes=self._budget_bytes,
            permits=self,
        )

    @contextmanager
    def permit(self, requests: int) -> Iterator[None]:
        """One run of reads: waits its turn, and is counted as one."""
        with self._limiter.permit(requests), self.requests.together():
            yield

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
        reads = (
            partial(self._read, source, start, min(RANGE_BYTES, source.size - start))
            for start in range(0, source.size, RANGE_BYTES)
        )
        return pieces_ahead(reads, RANGES_AHEAD)

    def _read(self, source: SourceObject, start: int, length: int) -> bytes:
        whole = length == source.size
        if self._fast is not None and whole and self._fast.takes(source.key):
            body = self._fast_read(self._fast, source)
        else:
            body = self._slow_read(source, {} if whole else {"Range": byte_range(start, length)})
        self.requests.add("bytes_read", len(body))
        if len(body) != length:
            raise SourceChanged(source.key, source.etag, f"{len(body)} bytes, not {length}")
        return body

    def _fast_read(self, fast: FastGet, source: SourceObject) -> bytes:
        """Retries are ours, so that SlowDown is seen; exponential waits with full jitter."""
        give_up = time.monotonic() + self._deadline_seconds
        longest = FIRST_WAIT_SECONDS
        while True:
            self.requests.add("GET")
            try:
                return fast.get(source)
            except TransientStoreError as error:
                if isinstance(error, SlowDown):
                    self._limiter.slow_down()
                wait = random.uniform(0, longest)  # noqa: S311 - jitter keeps no secret
                if time.monotonic() + wait > give_up:
                    # Under the name that the state machine retries.
                    raise TransientStoreError(str(error)) from error
            time.sleep(wait)
            longest = min(2 * longest, LONGEST_WAIT_SECONDS)

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
