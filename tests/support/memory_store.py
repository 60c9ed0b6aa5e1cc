"""A strict in-memory S3, which the protocol tests use.

It enforces every condition that :mod:`compactor.ports` mentions (servers on PyPI ignore some),
shows no upload before it is completed, answers 409 to concurrent completions of one key, checks
part sizes, ETags and checksums, puts delete markers in versioned buckets, and raises AssertionError
for mistakes of the caller, for which S3 would answer 400.

    store = MemoryStore(ManualClock(1_700_000_000.0))
    store.seed("logs", "day=1/a.json", b"{}\\n", last_modified=1_699_000_000.0)
    store.hooks.crash("after", "create")
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from compactor.attributes import Attributes
from compactor.errors import (
    AlreadyExists,
    IntegrityError,
    ObjectMissing,
    SourceChanged,
    TransientStoreError,
    UnreadableSource,
)
from compactor.model import SourceObject, StoredPart
from compactor.pieces import Body
from compactor.ports import (
    Deletes,
    Deletion,
    KeyPage,
    ObjectHead,
    OpenUpload,
    Refused,
    SourceBody,
)
from compactor.s3.deletes import NO_SAFE_DELETE
from tests.support.memory_base import ManualClock, MemoryBase
from tests.support.memory_bucket import Bucket, Stored, stored
from tests.support.memory_hooks import Call, Crashed, Hooks
from tests.support.memory_upload import Upload
from tests.support.server_differences import Condition

__all__ = ["Call", "Crashed", "Hooks", "ManualClock", "MemoryStore"]


class MemoryStore(MemoryBase):
    """Implements :class:`compactor.ports.ObjectStore`; thread safe.

    Args:
        clock: gives the time of writes.
        min_part_bytes: smaller parts are refused, except the last.
        max_part_bytes: larger parts are refused.
        page_size: number of keys in a page of a listing.
        whole_bytes: sources up to this size are read whole, larger ones in chunks.
        chunk_bytes: size of a chunk.
    """

    @property
    def requests(self) -> MemoryStore:
        """The counts of :class:`compactor.ports.RequestCounts`."""
        return self

    def list_objects(
        self, bucket: str, prefix: str, *, start_after: str = "", until: str = ""
    ) -> Iterator[Sequence[SourceObject]]:
        after = start_after
        while True:
            with self._request("list_objects", bucket, prefix) as there:
                page, more = there.page(prefix, after, self.page_size)
            if until and page and page[-1].key > until:
                yield [one for one in page if one.key <= until]
                return
            yield page
            if not more:
                return
            after = page[-1].key

    def list_level(self, bucket: str, prefix: str) -> Iterator[KeyPage]:
        first = ""
        while True:
            with self._request("list_level", bucket, prefix) as there:
                page, first = there.level_page(prefix, first, self.page_size)
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
                yield SourceBody(source, chunks=chunks.start, attributes=self._attributes(source))
                chunks.passed = True
                continue
            try:
                content = self._read(source)
                yield SourceBody(source, content, attributes=self._attributes(source))
            except (SourceChanged, UnreadableSource) as error:
                yield SourceBody(source, error=error)

    def _attributes(self, source: SourceObject) -> Attributes | None:
        one = self._buckets[source.bucket].objects.get(source.key)
        if one is None or one.etag != source.etag:
            return None
        return one.attributes

    def read_range(self, source: SourceObject, start: int, length: int) -> bytes:
        with self._request("read_source", source.bucket, source.key):
            return self._sent(_range_of(self._pinned(source).body, start, length))

    def get(self, bucket: str, key: str) -> bytes:
        with self._request("get", bucket, key) as there:
            return self._sent(there.existing(key).body)

    def get_range(self, bucket: str, key: str, start: int, length: int) -> bytes:
        with self._request("get_range", bucket, key) as there:
            self._require_restored(there.existing(key), bucket, key)
            body = there.existing(key).body
            if start >= len(body):
                raise ObjectMissing(f"get s3://{bucket}/{key}: InvalidRange")
            return self._sent(_range_of(body, start, length))

    def open(self, bucket: str, key: str) -> Iterator[bytes]:
        with self._request("open", bucket, key) as there:
            self._require_restored(there.existing(key), bucket, key)
            body = self._sent(there.existing(key).body)
        return _Chunks(lambda: body, self._chunk_bytes).start()

    def head(self, bucket: str, key: str) -> ObjectHead | None:
        with self._request("head", bucket, key) as there:
            one = there.objects.get(key)
            return one.head(self.clock.now()) if one else None

    def put(self, bucket: str, key: str, body: bytes, *, content_type: str = "") -> None:
        with self._request("put", bucket, key) as there:
            arrived = self._arrived("put", bucket, key, body)
            there.set(key, stored(arrived, self.clock.now(), content_type=content_type))

    def create(
        self,
        bucket: str,
        key: str,
        body: bytes,
        *,
        content_type: str = "",
        attributes: Attributes | None = None,
    ) -> None:
        with self._request("create", bucket, key) as there:
            if key in there.objects and Condition.CREATE not in self.ignores:
                raise AlreadyExists(f"s3://{bucket}/{key}")
            arrived = self._arrived("create", bucket, key, body)
            one = stored(arrived, self.clock.now(), content_type=content_type)
            there.set(key, one.with_attributes(attributes))

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
        with self._request("replace", bucket, key) as there:
            if there.existing(key).etag != etag:
                raise AlreadyExists(f"s3://{bucket}/{key}")
            arrived = self._arrived("replace", bucket, key, body)
            one = stored(arrived, self.clock.now(), content_type=content_type)
            there.set(key, one.with_attributes(attributes))

    def create_upload(
        self,
        bucket: str,
        key: str,
        *,
        content_type: str = "",
        metadata: Mapping[str, str] | None = None,
        attributes: Attributes | None = None,
    ) -> str:
        with self._request("create_upload", bucket, key) as there:
            upload_id = f"upload-{next(self._started)}"
            began = self.clock.now()
            there.uploads[upload_id] = Upload(
                key, content_type, began, self._max_part_bytes, dict(metadata or {}), attributes
            )
            return upload_id

    def upload_part(
        self, bucket: str, key: str, upload_id: str, number: int, body: Body
    ) -> StoredPart:
        with self._request("upload_part", bucket, key) as there:
            upload = there.upload(key, upload_id)
            return upload.add(number, self._arrived("upload_part", bucket, key, bytes(body)))

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
            body = self._pinned(source, Condition.COPY).body
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
        call = Call("complete_upload", bucket, key)
        self._hooked(self.hooks.before, call)
        with self._lock:
            self.calls.append(call)
            there = self._bucket(bucket)
            one = self._assembled(there, key, upload_id, parts, crc32)
            there.completing.add(key)
        try:
            self._hooked(self.hooks.during, call)
            with self._lock:
                there.upload(key, upload_id)
                if key in there.objects and Condition.PUBLISH not in self.ignores:
                    raise _conflict(there, key, upload_id)
                there.set(key, one)
                del there.uploads[upload_id]
        finally:
            there.completing.discard(key)
        self._hooked(self.hooks.after, call)

    def _assembled(
        self,
        there: Bucket,
        key: str,
        upload_id: str,
        parts: Sequence[StoredPart],
        crc32: int | None,
    ) -> Stored:
        """Check the conditions of a completion; return the object that the upload becomes."""
        upload = there.upload(key, upload_id)
        where = f"s3://{there.name}/{key}"
        if key in there.completing:
            raise _conflict(there, key, upload_id)
        if key in there.objects and Condition.PUBLISH not in self.ignores:
            # The upload stays open, as on S3, until it is aborted.
            raise AlreadyExists(where)
        body, etag = upload.assemble(parts, self._min_part_bytes)
        found = zlib.crc32(body)
        if crc32 not in (None, found) and Condition.WHOLE_CHECKSUM not in self.ignores:
            raise IntegrityError(f"BadDigest: {where}: CRC32 is {found}, expected {crc32}")
        # S3 dates an object from the start of its upload.
        one = Stored(
            body, etag, upload.began, "STANDARD", found, upload.content_type, upload.metadata
        )
        return one.with_attributes(upload.attributes)

    def abort_upload(self, bucket: str, key: str, upload_id: str) -> None:
        with self._request("abort_upload", bucket, key) as there:
            there.uploads.pop(upload_id, None)

    def list_uploads(self, bucket: str, prefix: str) -> Iterator[OpenUpload]:
        after: tuple[str, float, str] | None = ("", 0.0, "")
        while after is not None:
            with self._request("list_uploads", bucket, prefix) as there:
                page, after = there.uploads_page(prefix, after, self.page_size)
            yield from page

    def delete_sources(self, sources: Sequence[SourceObject]) -> Deletion:
        if self.traits.deletes is Deletes.NONE:
            return Deletion(tuple(Refused(source.key, NO_SAFE_DELETE) for source in sources))
        refused = []
        markers = 0
        absent = set[str]()
        for source in sources:
            # DeleteObjects is not atomic: a crash may come between any two keys.
            with self._request("delete_source", source.bucket, source.key) as there:
                one = there.objects.get(source.key)
                if one is None:
                    absent.add(source.key)
                    continue
                if one.etag != source.etag and self._compares_on_delete():
                    refused.append(Refused(source.key, "PreconditionFailed", final=True))
                else:
                    markers += there.remove(source.key)
        return Deletion(tuple(refused), markers, frozenset(absent))

    def _read(self, source: SourceObject) -> bytes:
        with self._request("read_source", source.bucket, source.key):
            return self._sent(self._pinned(source).body)

    def _compares_on_delete(self) -> bool:
        """True if the store enforces the condition of a delete."""
        is_single = self.traits.deletes is Deletes.SINGLE
        return (Condition.DELETE_ONE if is_single else Condition.DELETE_MANY) not in self.ignores


def _range_of(body: bytes, start: int, length: int) -> bytes:
    assert 0 <= start < len(body), "InvalidRange"
    assert length > 0, "InvalidRange"
    return body[start : start + length]


def _conflict(there: Bucket, key: str, upload_id: str) -> TransientStoreError:
    """Return S3's 409 and drop the upload: after it all parts must be uploaded again."""
    there.uploads.pop(upload_id, None)
    where = f"complete upload s3://{there.name}/{key}"
    return TransientStoreError(f"{where}: ConditionalRequestConflict")


class _Chunks:
    """A body in chunks that is read lazily, once, and before the next body is requested."""

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
