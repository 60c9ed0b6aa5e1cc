"""What the in-memory store keeps: buckets, objects and unfinished uploads."""

from __future__ import annotations

import hashlib
import zlib
from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from compactor.errors import ObjectMissing, SourceChanged
from compactor.model import SourceObject, StoredPart
from compactor.ports import KeyPage, ObjectHead

MAX_PARTS = 10_000
ARCHIVED = frozenset({"GLACIER", "DEEP_ARCHIVE"})


@dataclass(frozen=True, slots=True)
class Stored:
    """One readable object."""

    body: bytes
    etag: str
    last_modified: float
    storage_class: str = "STANDARD"
    crc32: int | None = None
    content_type: str = ""

    def head(self) -> ObjectHead:
        return ObjectHead(
            len(self.body), self.etag, self.crc32, self.last_modified, self.storage_class
        )

    def listed(self, bucket: str, key: str) -> SourceObject:
        return SourceObject(
            bucket, key, self.etag, len(self.body), self.last_modified, self.storage_class
        )


def stored(
    body: bytes, last_modified: float, *, storage_class: str = "STANDARD", content_type: str = ""
) -> Stored:
    """An object as PutObject makes it: its ETag is the MD5 of its bytes."""
    etag = md5(body).hex()
    return Stored(body, etag, last_modified, storage_class, zlib.crc32(body), content_type)


def md5(body: bytes) -> bytes:
    return hashlib.md5(body, usedforsecurity=False).digest()


@dataclass(slots=True)
class Upload:
    """A multipart upload: nobody can read its parts before it is completed."""

    key: str
    content_type: str
    began: float
    parts: dict[int, bytes] = field(default_factory=dict)

    def add(self, number: int, body: bytes) -> StoredPart:
        assert 1 <= number <= MAX_PARTS, f"InvalidArgument: part number {number}"
        self.parts[number] = body
        return StoredPart(number, md5(body).hex(), len(body))

    def assemble(self, parts: Sequence[StoredPart], min_part_bytes: int) -> list[bytes]:
        """The bodies of these parts, under S3's rules for CompleteMultipartUpload."""
        numbers = [part.number for part in parts]
        assert numbers, "MalformedXML: an upload has at least one part"
        assert numbers == sorted(set(numbers)), f"InvalidPartOrder: {numbers}"
        for part in parts:
            body = self.parts.get(part.number)
            assert body is not None, f"InvalidPart: {part.number} was not stored"
            assert part.etag == md5(body).hex(), f"InvalidPart: {part}"
            assert part.size == len(body), f"InvalidPart: {part} has {len(body)} bytes"
        bodies = [self.parts[number] for number in numbers]
        small = [len(body) for body in bodies[:-1] if len(body) < min_part_bytes]
        assert not small, f"EntityTooSmall: parts of {small} bytes before the last"
        return bodies


@dataclass(slots=True)
class Bucket:
    """Objects by key, listed in UTF-8 order as S3 does."""

    name: str
    objects: dict[str, Stored] = field(default_factory=dict)
    uploads: dict[str, Upload] = field(default_factory=dict)
    _sorted: list[str] | None = None

    def set(self, key: str, one: Stored) -> None:
        if key not in self.objects and self._sorted is not None:
            insort(self._sorted, key)
        self.objects[key] = one

    def remove(self, key: str) -> None:
        del self.objects[key]
        if self._sorted is not None:
            del self._sorted[bisect_left(self._sorted, key)]

    def page(self, prefix: str, start_after: str, size: int) -> tuple[list[SourceObject], bool]:
        """At most ``size`` objects below a prefix, after a key; and whether there are more."""
        first = start_after + "\0" if start_after else ""
        keys = list(islice(self._keys_from(prefix, first), size + 1))
        return [self.objects[key].listed(self.name, key) for key in keys[:size]], len(keys) > size

    def level_page(self, prefix: str, first: str, size: int) -> tuple[KeyPage, str]:
        """At most ``size`` objects and common prefixes of one level, from a key on.

        Returns:
            The page, and where the next one begins; empty after the last page.
        """
        objects: list[SourceObject] = []
        prefixes: list[str] = []
        while (key := next(self._keys_from(prefix, first), None)) is not None:
            if len(objects) + len(prefixes) == size:
                return KeyPage(tuple(objects), tuple(prefixes)), key
            head, delimiter, _ = key[len(prefix) :].partition("/")
            if delimiter:
                prefixes.append(prefix + head + "/")
                # "0" follows "/": everything below that prefix is passed over.
                first = prefix + head + "0"
            else:
                objects.append(self.objects[key].listed(self.name, key))
                first = key + "\0"
        return KeyPage(tuple(objects), tuple(prefixes)), ""

    def existing(self, key: str) -> Stored:
        if key not in self.objects:
            raise ObjectMissing(f"s3://{self.name}/{key}")
        return self.objects[key]

    def pinned(self, source: SourceObject) -> Stored:
        """The source as it was listed, as If-Match makes sure."""
        one = self.objects.get(source.key)
        if one is None or one.etag != source.etag:
            raise SourceChanged(source.key, source.etag, one.etag if one else "gone")
        assert one.storage_class not in ARCHIVED, f"InvalidObjectState: {source.key}"
        return one

    def upload(self, key: str, upload_id: str) -> Upload:
        upload = self.uploads.get(upload_id)
        if upload is None or upload.key != key:
            raise ObjectMissing(f"s3://{self.name}/{key}: no upload {upload_id}")
        return upload

    def _keys_from(self, prefix: str, first: str) -> Iterator[str]:
        # Code point order is UTF-8 byte order.
        if self._sorted is None:
            self._sorted = sorted(self.objects)
        for position in range(bisect_left(self._sorted, max(prefix, first)), len(self._sorted)):
            if not self._sorted[position].startswith(prefix):
                return
            yield self._sorted[position]
