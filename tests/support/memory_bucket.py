"""The contents of the in-memory store: buckets, objects and unfinished uploads."""

from __future__ import annotations

import zlib
from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice

from compactor.attributes import Attributes, pairs_of
from compactor.errors import ObjectMissing, SourceChanged
from compactor.model import SourceObject
from compactor.ports import KeyPage, ObjectHead, OpenUpload
from tests.support.memory_upload import Upload, md5

MAX_KEY_BYTES = 1_024
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
    metadata: Mapping[str, str] = field(default_factory=dict)
    restored_until: float = 0.0
    encoding: str = ""

    @property
    def attributes(self) -> Attributes | None:
        """The attributes that S3 stores with its bytes; None if there are none."""
        found = Attributes(self.encoding, pairs_of(self.metadata), self.content_type)
        return None if found == Attributes() else found

    def with_attributes(self, given: Attributes | None) -> Stored:
        """Return the object with these attributes."""
        if given is None:
            return self
        return replace(
            self,
            metadata=dict(given.metadata),
            encoding=given.encoding,
            content_type=given.content_type,
        )

    def head(self, now: float) -> ObjectHead:
        return ObjectHead(
            len(self.body),
            self.etag,
            self.crc32,
            self.last_modified,
            self.storage_class,
            now,
            self.metadata,
        )

    def listed(self, bucket: str, key: str) -> SourceObject:
        return SourceObject(
            bucket,
            key,
            self.etag,
            len(self.body),
            self.last_modified,
            self.storage_class,
            self.restored_until,
        )


def stored(
    body: bytes, last_modified: float, *, storage_class: str = "STANDARD", content_type: str = ""
) -> Stored:
    """Return an object as PutObject creates it: its ETag is the MD5 of its bytes."""
    etag = md5(body).hex()
    return Stored(body, etag, last_modified, storage_class, zlib.crc32(body), content_type)


@dataclass(slots=True)
class Bucket:
    """Objects by key, listed in UTF-8 order as S3 does.

    Attributes:
        objects: current versions, without delete markers.
        noncurrent: earlier versions of a versioned bucket, oldest first.
        completing: keys for which an upload is being completed right now.
    """

    name: str
    versioned: bool = False
    objects: dict[str, Stored] = field(default_factory=dict)
    noncurrent: dict[str, list[Stored]] = field(default_factory=dict)
    uploads: dict[str, Upload] = field(default_factory=dict)
    completing: set[str] = field(default_factory=set)
    _sorted: list[str] | None = None

    def set(self, key: str, one: Stored) -> None:
        # A character has at most four bytes, so short keys need no encoding.
        short = len(key) <= MAX_KEY_BYTES // 4 or len(key.encode()) <= MAX_KEY_BYTES
        assert key, "InvalidURI: a key has at least one byte"
        assert short, f"KeyTooLongError: {key[:40]}..."
        if key not in self.objects:
            if self._sorted is not None:
                insort(self._sorted, key)
        elif self.versioned:
            self._keep(key)
        self.objects[key] = one

    def remove(self, key: str) -> bool:
        """Delete a key; return whether this left a delete marker and kept the version."""
        if self.versioned:
            self._keep(key)
        del self.objects[key]
        if self._sorted is not None:
            del self._sorted[bisect_left(self._sorted, key)]
        return self.versioned

    def _keep(self, key: str) -> None:
        self.noncurrent.setdefault(key, []).append(self.objects[key])

    def page(self, prefix: str, start_after: str, size: int) -> tuple[list[SourceObject], bool]:
        """Return at most ``size`` objects below a prefix, after a key, and whether more follow."""
        first = start_after + "\0" if start_after else ""
        keys = list(islice(self._keys_from(prefix, first), size + 1))
        return [self.objects[key].listed(self.name, key) for key in keys[:size]], len(keys) > size

    def level_page(self, prefix: str, first: str, size: int) -> tuple[KeyPage, str]:
        """Return at most ``size`` objects and common prefixes of one level, from a key on.

        Returns:
            The page, and the key at which the next one starts; empty after the last page.
        """
        objects: list[SourceObject] = []
        prefixes: list[str] = []
        while (key := next(self._keys_from(prefix, first), None)) is not None:
            if len(objects) + len(prefixes) == size:
                return KeyPage(tuple(objects), tuple(prefixes)), key
            head, delimiter, _ = key[len(prefix) :].partition("/")
            if delimiter:
                prefixes.append(prefix + head + "/")
                # "0" follows "/", so this skips everything below that prefix.
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
        """Return the source if it is as listed, like a request with If-Match."""
        one = self.objects.get(source.key)
        if one is None or one.etag != source.etag:
            found = "another ETag" if one else "gone"
            raise SourceChanged(source.key, source.etag, found, gone=one is None)
        readable = one.storage_class not in ARCHIVED or one.restored_until
        assert readable, f"InvalidObjectState: {source.key}"
        return one

    def upload(self, key: str, upload_id: str) -> Upload:
        upload = self.uploads.get(upload_id)
        if upload is None or upload.key != key:
            raise ObjectMissing(f"s3://{self.name}/{key}: no upload {upload_id}")
        return upload

    def uploads_page(
        self, prefix: str, after: tuple[str, float, str], size: int
    ) -> tuple[list[OpenUpload], tuple[str, float, str] | None]:
        """Return at most ``size`` open uploads after a position in S3's order.

        Also returns the position of the last one; None on the last page.
        """
        places = sorted(
            place
            for id_, one in self.uploads.items()
            if one.key.startswith(prefix) and (place := (one.key, one.began, id_)) > after
        )
        page = [OpenUpload(key, id_, began) for key, began, id_ in places[:size]]
        return page, places[size - 1] if len(places) > size else None

    def _keys_from(self, prefix: str, first: str) -> Iterator[str]:
        # Code point order is UTF-8 byte order.
        if self._sorted is None:
            self._sorted = sorted(self.objects)
        for position in range(bisect_left(self._sorted, max(prefix, first)), len(self._sorted)):
            if not self._sorted[position].startswith(prefix):
                return
            yield self._sorted[position]
