"""The faults of a request, and an S3 client that suffers them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import partial
from typing import Self, TypeVar

from compactor.attributes import Attributes
from compactor.errors import SourceChanged, TransientStoreError
from compactor.model import SourceObject, StoredPart
from compactor.pieces import Body
from compactor.ports import (
    Deletion,
    KeyPage,
    ObjectHead,
    OpenUpload,
    RequestCounts,
    SourceBody,
    StoreTraits,
)
from tests.support.memory_store import Call, Crashed, MemoryStore

_T = TypeVar("_T")
# The number of attempts that the real client makes.
TRIES = 3
# Small, so that a few objects fill several pages.
PAGE_SIZE = 3


class Fault(StrEnum):
    """What happens to one request. The client retries when a real one would."""

    NONE = "none"
    CRASH_BEFORE = "crash before the request"
    CRASH_AFTER = "crash after the request"
    SLOW_DOWN = "503 SlowDown"
    INTERNAL_ERROR = "500 InternalError"
    RESET = "connection reset before the request"
    LOST_ANSWER = "done, but the answer is lost"
    TIME_OUT = "done, but the answer comes too late for any retry"
    OUTAGE = "refused until the client gives up"
    TRUNCATED = "answer cut short"
    CONFLICT = "409 ConditionalRequestConflict"
    FLIPPED = "a byte of the part flipped before it is sent"
    REPEATED = "a key listed twice"


_ANY = (
    Fault.CRASH_BEFORE,
    Fault.CRASH_AFTER,
    Fault.LOST_ANSWER,
    Fault.TIME_OUT,
    Fault.OUTAGE,
    Fault.SLOW_DOWN,
    Fault.INTERNAL_ERROR,
    Fault.RESET,
)
_BY_CALL = {
    "read_source": (*_ANY, Fault.TRUNCATED),
    "get": (*_ANY, Fault.TRUNCATED),
    "create": (*_ANY, Fault.CONFLICT),
    "complete_upload": (*_ANY, Fault.CONFLICT),
    "upload_part": (*_ANY, Fault.FLIPPED),
}
#: Faults in which the store stores or returns the wrong thing, in schedules of one partition.
SPOILED = frozenset({Fault.FLIPPED, Fault.REPEATED})
#: Faults that end the process.
DIES = frozenset({Fault.CRASH_BEFORE, Fault.CRASH_AFTER})
# Faults in which the request did not reach the store, or was refused.
_NOT_DONE = frozenset({Fault.SLOW_DOWN, Fault.INTERNAL_ERROR, Fault.RESET, Fault.CONFLICT})
_ANSWER_LOST = frozenset({Fault.LOST_ANSWER, Fault.TRUNCATED})


def faults_of(call: Call) -> tuple[Fault, ...]:
    """Return the faults that can happen to a request."""
    return _BY_CALL.get(call.name, _ANY)


def _repeated(listed: Callable[[], Sequence[SourceObject]]) -> Sequence[SourceObject]:
    page = listed()
    return [*page, *page[-1:]]


class Guard(StrEnum):
    """A condition that the client can leave out, to check that the tests notice."""

    READ_IF_MATCH = "If-Match on read"
    CREATE_IF_ABSENT = "create-if-absent on commit"
    DELETE_IF_MATCH = "ETag on delete"
    PUBLISH_CHECKSUM = "checksum on publish"


class Client:
    """Implements :class:`compactor.ports.ObjectStore` for one process of the simulation.

    Args:
        s3: the store that all processes share.
        ask: called before each request; hands control to the scheduler, and returns the request's
            fault.
        without: conditions that this client leaves out.
    """

    def __init__(
        self, s3: MemoryStore, ask: Callable[[Call], Fault], without: frozenset[Guard] = frozenset()
    ) -> None:
        self._s3 = s3
        self._ask = ask
        self._without = without
        self._dead = False

    @property
    def requests(self) -> RequestCounts:
        return self._s3.requests

    def _request(
        self,
        name: str,
        bucket: str,
        key: str,
        operation: Callable[[], _T],
        spoiled: Callable[[], _T] | None = None,
    ) -> _T:
        call = Call(name, bucket, key)
        for _ in range(TRIES):
            fault = self._fault(call)
            if fault is Fault.OUTAGE:
                break
            if fault in _NOT_DONE:
                continue
            answer = spoiled() if spoiled and fault in SPOILED else operation()
            if fault is Fault.CRASH_AFTER:
                self._die(fault, call)
            if fault is Fault.TIME_OUT:
                break
            if fault not in _ANSWER_LOST:
                return answer
        raise TransientStoreError(f"{name} s3://{bucket}/{key}")

    def _fault(self, call: Call) -> Fault:
        if self._dead:
            raise Crashed(f"already dead at {call}")
        fault = self._ask(call)
        if fault is Fault.CRASH_BEFORE:
            self._die(fault, call)
        return fault

    def _die(self, fault: Fault, call: Call) -> None:
        self._dead = True
        raise Crashed(f"{fault}: {call}")

    def list_objects(
        self, bucket: str, prefix: str, *, start_after: str = "", until: str = ""
    ) -> Iterator[Sequence[SourceObject]]:
        after = start_after
        while True:
            listed = partial(self._page, bucket, prefix, after)
            page = self._request("list_objects", bucket, prefix, listed, partial(_repeated, listed))
            if until and page and page[-1].key > until:
                yield [one for one in page if one.key <= until]
                return
            yield page
            if len(page) < PAGE_SIZE:
                return
            after = page[-1].key

    def _page(self, bucket: str, prefix: str, after: str) -> Sequence[SourceObject]:
        return next(self._s3.list_objects(bucket, prefix, start_after=after), ())

    @property
    def endpoint_url(self) -> str:
        return self._s3.endpoint_url

    @property
    def region(self) -> str:
        return self._s3.region

    @property
    def traits(self) -> StoreTraits:
        return self._s3.traits

    def with_traits(self, traits: StoreTraits) -> Self:
        store = copy.copy(self)
        store._s3 = self._s3.with_traits(traits)
        return store

    def list_level(self, bucket: str, prefix: str) -> Iterator[KeyPage]:
        whole = self._request(
            "list_level", bucket, prefix, lambda: list(self._s3.list_level(bucket, prefix))
        )
        yield from whole

    def read_sources(self, sources: Iterable[SourceObject]) -> Iterator[SourceBody]:
        for source in sources:
            yield self._read_source(source)

    def _read_source(self, source: SourceObject) -> SourceBody:
        if not source.size:
            return SourceBody(source, content=b"")

        def read() -> SourceBody:
            return next(iter(self._s3.read_sources([self._pinned(source)])))

        body = self._request("read_source", source.bucket, source.key, read)
        if body.content is not None and len(body.content) != source.size:
            return SourceBody(source, error=SourceChanged(source.key, source.etag, "another size"))
        return body._replace(source=source)

    def _pinned(self, source: SourceObject) -> SourceObject:
        if Guard.READ_IF_MATCH not in self._without:
            return source
        there = self._s3.head(source.bucket, source.key)
        return source if there is None else replace(source, etag=there.etag)

    def read_range(self, source: SourceObject, start: int, length: int) -> bytes:
        return self._request(
            "read_source",
            source.bucket,
            source.key,
            lambda: self._s3.read_range(self._pinned(source), start, length),
        )

    def get(self, bucket: str, key: str) -> bytes:
        return self._request("get", bucket, key, lambda: self._s3.get(bucket, key))

    def get_range(self, bucket: str, key: str, start: int, length: int) -> bytes:
        return self._request(
            "get", bucket, key, lambda: self._s3.get_range(bucket, key, start, length)
        )

    def open(self, bucket: str, key: str) -> Iterator[bytes]:
        return iter([self.get(bucket, key)])

    def head(self, bucket: str, key: str) -> ObjectHead | None:
        return self._request("head", bucket, key, lambda: self._s3.head(bucket, key))

    def put(self, bucket: str, key: str, body: bytes, *, content_type: str = "") -> None:
        self._request("put", bucket, key, lambda: self._s3.put(bucket, key, body))

    def create(self, bucket: str, key: str, body: bytes, **_: object) -> None:
        write = self._s3.put if Guard.CREATE_IF_ABSENT in self._without else self._s3.create
        self._request("create", bucket, key, lambda: write(bucket, key, body))

    def replace(
        self,
        bucket: str,
        key: str,
        body: bytes,
        *,
        etag: str,
        content_type: str = "",
        attributes: Attributes | None = None,
    ) -> None:
        def write() -> None:
            self._s3.replace(bucket, key, body, etag=etag)

        self._request("replace", bucket, key, write)

    def create_upload(
        self,
        bucket: str,
        key: str,
        *,
        content_type: str = "",
        metadata: Mapping[str, str] | None = None,
        attributes: Attributes | None = None,
    ) -> str:
        def begin() -> str:
            return self._s3.create_upload(bucket, key, metadata=metadata)

        return self._request("create_upload", bucket, key, begin)

    def upload_part(
        self, bucket: str, key: str, upload_id: str, number: int, body: Body
    ) -> StoredPart:
        def send(content: bytes) -> StoredPart:
            return self._s3.upload_part(bucket, key, upload_id, number, content)

        sent = bytes(body)
        # The checksum is computed from the spoiled bytes, so the store accepts the part.
        spoiled = bytes([sent[0] ^ 1]) + sent[1:] if sent else sent
        return self._request(
            "upload_part", bucket, key, partial(send, sent), partial(send, spoiled)
        )

    def copy_part(
        self,
        bucket: str,
        key: str,
        upload_id: str,
        number: int,
        source: SourceObject,
        start: int,
        length: int,
    ) -> StoredPart:
        return self._request(
            "copy_part",
            bucket,
            key,
            lambda: self._s3.copy_part(bucket, key, upload_id, number, source, start, length),
        )

    def complete_upload(
        self,
        bucket: str,
        key: str,
        upload_id: str,
        parts: Sequence[StoredPart],
        *,
        crc32: int | None,
    ) -> None:
        told = None if Guard.PUBLISH_CHECKSUM in self._without else crc32
        self._request(
            "complete_upload",
            bucket,
            key,
            lambda: self._s3.complete_upload(bucket, key, upload_id, parts, crc32=told),
        )

    def abort_upload(self, bucket: str, key: str, upload_id: str) -> None:
        self._request(
            "abort_upload", bucket, key, lambda: self._s3.abort_upload(bucket, key, upload_id)
        )

    def list_uploads(self, bucket: str, prefix: str) -> Iterator[OpenUpload]:
        yield from self._request(
            "list_uploads", bucket, prefix, lambda: list(self._s3.list_uploads(bucket, prefix))
        )

    def delete_sources(self, sources: Sequence[SourceObject]) -> Deletion:
        # DeleteObjects is not atomic: anything may happen between two keys.
        answers = [self._delete(source) for source in sources]
        refused = tuple(one for answer in answers for one in answer.refused)
        return Deletion(refused, sum(answer.markers for answer in answers))

    def _delete(self, source: SourceObject) -> Deletion:
        def delete() -> Deletion:
            doomed = source
            if Guard.DELETE_IF_MATCH in self._without:
                there = self._s3.head(source.bucket, source.key)
                doomed = source if there is None else replace(source, etag=there.etag)
            return self._s3.delete_sources([doomed])

        return self._request("delete_source", source.bucket, source.key, delete)
