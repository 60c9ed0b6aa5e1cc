"""Reads sources. Each GET is pinned to the listed ETag."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple, TypeVar

from compactor.attributes import Attributes, from_headers
from compactor.errors import (
    AlreadyExists,
    InvalidInput,
    ObjectMissing,
    SourceChanged,
    TransientStoreError,
    UnreadableSource,
)
from compactor.model import SourceObject, is_md5
from compactor.ports import SourceBody
from compactor.s3.base import S3Base, about_source
from compactor.s3.bodies import TimeIsUp, byte_range, read_body, require_range
from compactor.s3.many_gets import Curl, ManyGets
from compactor.s3.readahead import RunReader, Submit, pieces_ahead, read_ahead
from compactor.s3.refused_reads import require_etag
from compactor.s3.retries import NEVER
from compactor.s3.translate import Again
from compactor.sizes import GET_BYTES

RANGES_AHEAD = 3
Found = TypeVar("Found")

# How often a source is read again over plain HTTP if its MD5 sum is not its ETag.
_MORE_READS = 3
# hashlib releases the interpreter lock for 2,048 bytes or more. With hundreds of reading threads,
# taking it back takes several times as long as hashing 4 KB.
_HELD_BYTES = 2_047
_HASHED_ALONE_BYTES = 32 * 1024


class _Read(NamedTuple):
    """The body of an object or range, and the attributes in its headers."""

    body: bytes
    attributes: Attributes | None


class SourceReader:
    """Reads sources over the connections of a store.

    Args:
        store: the store whose client, limits and counts are used.
        threads: maximum number of sources read concurrently.
        budget_bytes: maximum bytes of sources in flight or waiting to be consumed.
        curl: reads whole sources, many concurrently; None to use botocore.
        compares_etags: compare bodies with those ETags that are MD5 sums. Needed over plain HTTP,
            where bytes may change in transit; TLS prevents that.
    """

    def __init__(
        self,
        store: S3Base,
        *,
        threads: int,
        budget_bytes: int,
        curl: Curl | None,
        compares_etags: bool,
    ) -> None:
        self._store = store
        self._threads = threads
        self._budget_bytes = budget_bytes
        self._curl = curl
        self._compares_etags = compares_etags

    def of(self, store: S3Base) -> SourceReader:
        """Return a reader with the same settings for another store on these connections."""
        return SourceReader(
            store,
            threads=self._threads,
            budget_bytes=self._budget_bytes,
            curl=self._curl,
            compares_etags=self._compares_etags,
        )

    def read_sources(self, sources: Iterable[SourceObject]) -> Iterator[SourceBody]:
        """Yield bodies in the order of the sources; see the port."""
        stopped = threading.Event()
        bodies = read_ahead(
            sources,
            partial(self._fetch, stopped),
            threads=self._threads,
            budget_bytes=self._budget_bytes,
            permits=self,
            stopped=stopped,
            quick=self._quick,
        )
        for body in bodies:
            # Not in the reading threads: hundreds of them compete for the interpreter lock.
            yield self._compared(body) if self._compares_etags else body

    def _quick(self, otherwise: Submit) -> RunReader | None:
        """Return the libcurl reader for runs of whole sources; None without libcurl."""
        return None if self._curl is None else ManyGets(self._store, self._curl, otherwise)

    def _compared(self, body: SourceBody) -> SourceBody:
        as_listed = body.content is None or _is_as_listed(body.source, body.content)
        return body if as_listed or not self._compares_etags else self._read_again(body)

    def _read_again(self, body: SourceBody) -> SourceBody:
        for _ in range(_MORE_READS):
            before, body = body, self._fetch(NEVER, body.source)
            if body.content is None or _is_as_listed(body.source, body.content):
                return body
            if body.content == before.content:
                # Its ETag is not an MD5 sum, as with SSE-KMS. Assume the same of all others.
                self._compares_etags = False
                return body
        raise TransientStoreError(
            f"{body.source.key}: read {1 + _MORE_READS} times, no two alike and none with its ETag"
        )

    @contextmanager
    def permit(self, requests: int) -> Iterator[None]:
        """Hold one permit for a run of reads, whose requests are counted together at its end.

        Raises:
            TransientStoreError: the time for reads ran out first.
        """
        if self._store.retries.reads_over:
            raise TransientStoreError("the invocation ends, and not all sources are read")
        with (
            self._store.limiter.permit(requests, self._store.retries.reads_end_at),
            self._store.requests.together(),
        ):
            yield

    def _fetch(self, stopped: threading.Event, source: SourceObject) -> SourceBody:
        if not source.size:
            return SourceBody(source, content=b"")
        try:
            if source.size > GET_BYTES:
                # Its ranges are read later or copied by S3: no GET returns its attributes now.
                found = self._attributes(source, stopped)
                return SourceBody(source, chunks=lambda: self._ranges(source), attributes=found)
            body, found = self._whole(source, stopped)
            return SourceBody(source, body, attributes=found)
        except (SourceChanged, UnreadableSource) as error:
            return SourceBody(source, error=error)

    def read_range(self, source: SourceObject, start: int, length: int) -> bytes:
        """Return a range of one source; see the port."""
        with self._store.limiter.beside():
            return self._range(source, start, length, NEVER)

    def _ranges(self, source: SourceObject) -> Iterator[bytes]:
        stopped = threading.Event()

        def read(start: int) -> bytes:
            with self._store.limiter.beside():
                return self._range(source, start, min(GET_BYTES, source.size - start), stopped)

        reads = (partial(read, start) for start in range(0, source.size, GET_BYTES))
        return pieces_ahead(reads, RANGES_AHEAD, stopped)

    def _range(
        self, source: SourceObject, start: int, length: int, stopped: threading.Event
    ) -> bytes:
        if length == source.size:
            return self._whole(source, stopped)[0]
        return self._read(source, start, length, stopped).body

    def _whole(self, source: SourceObject, stopped: threading.Event) -> _Read:
        return self._read(source, None, source.size, stopped)

    def _read(
        self, source: SourceObject, start: int | None, length: int, stopped: threading.Event
    ) -> _Read:
        """Read one range, or the whole object if ``start`` is None."""
        bucket, key = source.bucket, source.key
        wanted: Any = {"IfMatch": f'"{source.etag}"'}
        if start is not None:
            wanted["Range"] = byte_range(start, length)

        def request(time_is_up: TimeIsUp) -> _Read:
            with about_source("get", bucket, key):
                answer = self._store.client.get_object(Bucket=bucket, Key=key, **wanted)
            _require_final(answer)
            require_etag(source, answer.get("ETag"))
            body = read_body(answer, time_is_up)
            if start is not None:
                require_range(answer, body, start, length)
            _require_all(source, body, length, answer.get("ETag"))
            return _Read(body, _attributes_of(answer))

        found = self._asked("GET", "get", source, request, stopped)
        self._store.requests.add("bytes_read", len(found.body))
        _require_length(source, found.body, length)
        return found

    def _attributes(self, source: SourceObject, stopped: threading.Event) -> Attributes | None:
        """Return the attributes that HEAD shows; None if it is refused, as the GETs will be."""
        pinned: Any = {"IfMatch": f'"{source.etag}"'}

        def request(_: TimeIsUp) -> Any:
            with about_source("head", source.bucket, source.key):
                return self._store.client.head_object(
                    Bucket=source.bucket, Key=source.key, **pinned
                )

        try:
            return _attributes_of(self._asked("HEAD", "head", source, request, stopped))
        except (InvalidInput, UnreadableSource):
            return None

    def _asked(
        self,
        kind: str,
        operation: str,
        source: SourceObject,
        request: Callable[[TimeIsUp], Found],
        stopped: threading.Event,
    ) -> Found:
        """Return the answer to a request for one source.

        Raises:
            SourceChanged: the object is gone or has another ETag.
        """
        try:
            return self._store.read_of(kind, operation, source, request, stopped)
        except AlreadyExists:
            raise SourceChanged(source.key, source.etag, "another ETag") from None
        except ObjectMissing:
            raise SourceChanged(source.key, source.etag, "no object", gone=True) from None


def _require_final(answer: Mapping[str, Any]) -> None:
    """Reject interim answers: Python's HTTP client returns 103 (Early Hints) as if it were final.

    Raises:
        Again: the answer is an interim one.
    """
    status = answer["ResponseMetadata"]["HTTPStatusCode"]
    if status < 200:
        raise Again(f"status {status}")


def _require_all(source: SourceObject, body: bytes, length: int, etag: str | None) -> None:
    """Reject a truncated body of the listed object.

    Raises:
        Again: the ETag is the listed one, but bytes are missing.
    """
    if len(body) < length and (etag or "").strip('"').lower() == source.etag.lower():
        raise Again(f"{len(body)} bytes, not {length}", cut_short=True)


def _require_length(source: SourceObject, body: bytes, length: int) -> None:
    if len(body) != length:
        raise SourceChanged(source.key, source.etag, f"{len(body)} bytes, not {length}")


def _attributes_of(answer: Any) -> Attributes | None:
    headers = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    return from_headers(headers.items())


def _is_as_listed(source: SourceObject, body: bytes) -> bool:
    """Return False if the ETag has the form of an MD5 sum, but is not that of the body."""
    if not is_md5(source.etag):
        return True
    # Detects bytes that changed in transit. An attacker could change the ETag as well.
    if len(body) > _HASHED_ALONE_BYTES:
        digest = hashlib.md5(body, usedforsecurity=False)
    else:
        digest = hashlib.md5(body[:_HELD_BYTES], usedforsecurity=False)
        for start in range(_HELD_BYTES, len(body), _HELD_BYTES):
            digest.update(body[start : start + _HELD_BYTES])
    return digest.hexdigest() == source.etag
