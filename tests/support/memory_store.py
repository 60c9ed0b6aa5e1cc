"""A strict in-memory S3: what the protocol tests stand on.

It honours every condition that :mod:`compactor.ports` speaks of (servers on PyPI ignore some),
shows no upload before it is completed, checks part sizes, ETags and full-object checksums, and
answers a mistake in the caller with AssertionError, as S3 would with a 400.

    store = MemoryStore(ManualClock(1_700_000_000.0))
    store.seed("logs", "day=1/a.json", b"{}\\n", last_modified=1_699_000_000.0)
    store.hooks.crash("after", "create")
"""

from __future__ import annotations

import threading
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from compactor.errors import AlreadyExists, IntegrityError, InvalidInput, SourceChanged
from compactor.model import SourceObject, StoredPart
from compactor.ports import Clock, KeyPage, ObjectHead, OpenUpload, SourceBody
from tests.support.memory_bucket import Bucket, Stored, Upload, md5, stored
from tests.support.memory_hooks import Call, Crashed, Hooks

__all__ = ["Call", "Crashed", "Hooks", "ManualClock", "MemoryStore"]

MIB = 1024 * 1024
_KINDS = {
    "list_objects": "LIST",
    "list_level": "LIST",
    "list_uploads": "LIST",
    "read_source": "GET",
    "get": "GET",
    "get_range": "GET",
    "open": "GET",
    "head": "HEAD",
    "abort_upload": "DELETE",
    "delete_source": "DELETE",
}


@dataclass
class ManualClock:
    """Time that moves only when a test says so; UNIX seconds."""

    time: float = 1_700_000_000.0

    def now(self) -> float:
        return self.time

    def advance(self, seconds: float) -> None:
        self.time += seconds


class MemoryStore:
    """Implements :class:`compactor.ports.ObjectStore`; thread safe.

    Args:
        clock: gives the arrival times of what is written.
        min_part_bytes: S3 refuses smaller parts, except the last.
        page_size: keys in one page of a listing.
        whole_bytes: sources up to this size come whole, larger ones in chunks.
        chunk_bytes: size of a chunk.
    """

    def __init__(
        self,
        clock: Clock | None = None,
        *,
        min_part_bytes: int = 5 * MIB,
        page_size: int = 1_000,
        whole_bytes: int = MIB,
        chunk_bytes: int = 256 * 1024,
    ) -> None:
        self.clock = clock or ManualClock()
        self.hooks = Hooks()
        self.calls: list[Call] = []
        self.denied: set[str] = set()
        self._min_part_bytes = min_part_bytes
        self._page_size = page_size
        self._whole_bytes = whole_bytes
        self._chunk_bytes = chunk_bytes
        self._buckets: dict[str, Bucket] = {}
        self._moved: Counter[str] = Counter()
        self._started = 0
        self._lock = threading.RLock()

    # What tests arrange and look at; none of this is a request.

    def add_bucket(self, name: str) -> None:
        with self._lock:
            self._buckets.setdefault(name, Bucket(name))

    def seed(
        self,
        bucket: str,
        key: str,
        body: bytes,
        *,
        last_modified: float | None = None,
        storage_class: str = "STANDARD",
    ) -> SourceObject:
        """Put an object there as some producer did; makes the bucket where needed."""
        arrived = self.clock.now() if last_modified is None else last_modified
        one = stored(body, arrived, storage_class=storage_class)
        with self._lock:
            self.add_bucket(bucket)
            self._buckets[bucket].set(key, one)
        return one.listed(bucket, key)

    def remove(self, bucket: str, key: str) -> None:
        """Take an object away as some other program would."""
        with self._lock:
            self._buckets[bucket].remove(key)

    def contents(self, bucket: str, prefix: str = "") -> dict[str, bytes]:
        """The readable objects below a prefix, in key order."""
        with self._lock:
            objects = self._buckets[bucket].objects
            return {k: objects[k].body for k in sorted(objects) if k.startswith(prefix)}

    def unfinished_uploads(self, bucket: str) -> dict[str, str]:
        """Keys of the uploads that were neither completed nor aborted, by upload id."""
        with self._lock:
            return {id_: upload.key for id_, upload in self._buckets[bucket].uploads.items()}

    def count(self, *names: str, bucket: str | None = None, prefix: str = "") -> int:
        """Requests of these names (any, when none is given) about keys below a prefix."""
        with self._lock:
            return sum(
                (not names or call.name in names)
                and bucket in (None, call.bucket)
                and call.key.startswith(prefix)
                for call in self.calls
            )

    # The port.

    @property
    def requests(self) -> MemoryStore:
        """The counts of :class:`compactor.ports.RequestCounts`."""
        return self

    def snapshot(self) -> Mapping[str, int]:
        """Requests by kind, and bytes moved."""
        with self._lock:
            kinds = Counter(_KINDS.get(call.name, "PUT") for call in self.calls)
            return dict(kinds + self._moved)

    def list_objects(
        self, bucket: str, prefix: str, *, start_after: str = ""
    ) -> Iterator[Sequence[SourceObject]]:
        after = start_after
        while True:
            with self._request("list_objects", bucket, prefix) as there:
                page, more = there.page(prefix, after, self._page_size)
            yield page
            if not more:
                return
            after = page[-1].key

    def list_level(self, bucket: str, prefix: str) -> Iterator[KeyPage]:
        first = ""
        while True:
            with self._request("list_level", bucket, prefix) as there:
                page, first = there.level_page(prefix, first, self._page_size)
            yield page
            if not first:
                return

    def read_sources(self, sources: Iterable[SourceObject]) -> Iterator[SourceBody]:
        for source in sources:
            if not source.size:
                yield SourceBody(source, content=b"")
                continue
            if source.size > self._whole_bytes:
                chunks = _Chunks(partial(self._read, source), self._chunk_bytes)
                yield SourceBody(source, chunks=chunks.start)
                chunks.passed = True
                continue
            try:
                yield SourceBody(source, content=self._read(source))
            except SourceChanged as changed:
                yield SourceBody(source, error=changed)

    def read_range(self, source: SourceObject, start: int, length: int) -> bytes:
        with self._request("read_source", source.bucket, source.key) as there:
            return self._sent(there.pinned(source).body[start : start + length])

    def get(self, bucket: str, key: str) -> bytes:
        with self._request("get", bucket, key) as there:
            return self._sent(there.existing(key).body)

    def get_range(self, bucket: str, key: str, start: int, length: int) -> bytes:
        with self._request("get_range", bucket, key) as there:
            body = there.existing(key).body
            assert 0 <= start < len(body), "InvalidRange"
            assert length > 0, "InvalidRange"
            return self._sent(body[start : start + length])

    def open(self, bucket: str, key: str) -> Iterator[bytes]:
        with self._request("open", bucket, key) as there:
            body = self._sent(there.existing(key).body)
        return _Chunks(lambda: body, self._chunk_bytes).start()

    def head(self, bucket: str, key: str) -> ObjectHead | None:
        with self._request("head", bucket, key) as there:
            one = there.objects.get(key)
            return one.head() if one else None

    def put(self, bucket: str, key: str, body: bytes, *, content_type: str = "") -> None:
        with self._request("put", bucket, key) as there:
            self._write(there, key, body, content_type)

    def create(self, bucket: str, key: str, body: bytes, *, content_type: str = "") -> None:
        with self._request("create", bucket, key) as there:
            if key in there.objects:
                raise AlreadyExists(f"s3://{bucket}/{key}")
            self._write(there, key, body, content_type)

    def create_upload(self, bucket: str, key: str, *, content_type: str = "") -> str:
        with self._request("create_upload", bucket, key) as there:
            self._started += 1
            upload_id = f"upload-{self._started}"
            there.uploads[upload_id] = Upload(key, content_type, self.clock.now())
            return upload_id

    def upload_part(
        self, bucket: str, key: str, upload_id: str, number: int, body: bytes | memoryview
    ) -> StoredPart:
        with self._request("upload_part", bucket, key) as there:
            self._moved["bytes_written"] += len(body)
            return there.upload(key, upload_id).add(number, bytes(body))

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
        with self._request("copy_part", bucket, key) as there:
            upload = there.upload(key, upload_id)
            body = self._bucket(source.bucket).pinned(source).body
            assert start >= 0, "InvalidRange"
            assert 0 < length <= len(body) - start, "InvalidRange"
            return upload.add(number, body[start : start + length])

    def complete_upload(
        self,
        bucket: str,
        key: str,
        upload_id: str,
        parts: Sequence[StoredPart],
        *,
        crc32: int | None,
    ) -> None:
        with self._request("complete_upload", bucket, key) as there:
            upload = there.upload(key, upload_id)
            if key in there.objects:
                # The upload stays, as it does on S3, until somebody aborts it.
                raise AlreadyExists(f"s3://{bucket}/{key}")
            bodies = upload.assemble(parts, self._min_part_bytes)
            body = b"".join(bodies)
            found = zlib.crc32(body)
            if crc32 not in (None, found):
                raise IntegrityError(f"s3://{bucket}/{key}: CRC32 is {found}, expected {crc32}")
            etag = f"{md5(b''.join(map(md5, bodies))).hex()}-{len(bodies)}"
            now = self.clock.now()
            there.set(key, Stored(body, etag, now, "STANDARD", found, upload.content_type))
            del there.uploads[upload_id]

    def abort_upload(self, bucket: str, key: str, upload_id: str) -> None:
        with self._request("abort_upload", bucket, key) as there:
            there.uploads.pop(upload_id, None)

    def list_uploads(self, bucket: str, prefix: str) -> Iterator[OpenUpload]:
        with self._request("list_uploads", bucket, prefix) as there:
            found = [
                OpenUpload(upload.key, id_, upload.began)
                for id_, upload in there.uploads.items()
                if upload.key.startswith(prefix)
            ]
        yield from found

    def delete_sources(self, sources: Sequence[SourceObject]) -> Sequence[tuple[str, str]]:
        refused = []
        for source in sources:
            # DeleteObjects is not atomic: a crash may fall between any two keys.
            with self._request("delete_source", source.bucket, source.key) as there:
                one = there.objects.get(source.key)
                if one is None:
                    continue
                if one.etag != source.etag:
                    refused.append((source.key, "PreconditionFailed"))
                else:
                    there.remove(source.key)
        return refused

    # Inside.

    @contextmanager
    def _request(self, name: str, bucket: str, key: str) -> Iterator[Bucket]:
        call = Call(name, bucket, key)
        for hook in tuple(self.hooks.before):
            hook(call)
        with self._lock:
            self.calls.append(call)
            yield self._bucket(bucket)
        for hook in tuple(self.hooks.after):
            hook(call)

    def _bucket(self, name: str) -> Bucket:
        if name in self.denied:
            raise InvalidInput("permission", name, "a role that allows this request")
        if name not in self._buckets:
            raise InvalidInput("bucket", name, "a bucket that exists")
        return self._buckets[name]

    def _read(self, source: SourceObject) -> bytes:
        with self._request("read_source", source.bucket, source.key) as there:
            return self._sent(there.pinned(source).body)

    def _sent(self, body: bytes) -> bytes:
        self._moved["bytes_read"] += len(body)
        return body

    def _write(self, there: Bucket, key: str, body: bytes, content_type: str) -> None:
        self._moved["bytes_written"] += len(body)
        there.set(key, stored(body, self.clock.now(), content_type=content_type))


class _Chunks:
    """A body to be read once, when asked for, and before the next one is asked for."""

    def __init__(self, read: Callable[[], bytes], size: int) -> None:
        self._read = read
        self._size = size
        self._started = False
        self.passed = False

    def start(self) -> Iterator[bytes]:
        assert not self._started, "a body can be read only once"
        self._started = True
        return self._pieces()

    def _pieces(self) -> Iterator[bytes]:
        body = self._read()
        for start in range(0, len(body), self._size):
            assert not self.passed, "bodies must be read in order"
            yield body[start : start + self._size]
