"""A store as it was at a given time, in which outputs are built but not stored.

Reads are real: sources are read, and objects are queried with HEAD.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

from compactor.model import SourceObject, StoredPart
from compactor.pieces import Body
from compactor.ports import ObjectStore

# Bytes held in memory at a time of a source that S3 would copy.
_RANGE_BYTES = 16 * 1024 * 1024


class Rehearsal:
    """A stand-in for :class:`compactor.ports.ObjectStore` that writes nothing.

    Args:
        store: the store to read from.
        at: UNIX seconds; objects that arrived later are not listed.
    """

    def __init__(self, store: ObjectStore, at: float) -> None:
        self._store = store
        self._at = at

    def __getattr__(self, name: str) -> Any:
        """Delegate everything that changes nothing to the store."""
        return getattr(self._store, name)

    def list_objects(
        self, bucket: str, prefix: str, *, start_after: str = "", until: str = ""
    ) -> Iterator[Sequence[SourceObject]]:
        """Yield pages of the objects that had arrived by then."""
        for page in self._store.list_objects(bucket, prefix, start_after=start_after, until=until):
            yield [one for one in page if one.last_modified <= self._at]

    def create_upload(self, *_: object, **__: object) -> str:
        """Return an upload id without creating an upload."""
        return "adopted"

    def upload_part(
        self, bucket: str, key: str, upload_id: str, number: int, body: Body
    ) -> StoredPart:
        """Return what S3 would answer if ETags are MD5 sums."""
        etag = hashlib.md5(bytes(body), usedforsecurity=False).hexdigest()
        return StoredPart(number, etag, len(body))

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
        """Return the same for bytes that a worker otherwise does not read."""
        digest = hashlib.md5(usedforsecurity=False)
        for at in range(start, start + length, _RANGE_BYTES):
            size = min(_RANGE_BYTES, start + length - at)
            digest.update(self._store.read_range(source, at, size))
        return StoredPart(number, digest.hexdigest(), length)

    def abort_upload(self, *_: object) -> None:
        """Do nothing, because there is no upload."""

    def complete_upload(self, *_: object, **__: object) -> None:
        """Raise AssertionError: a rehearsal publishes nothing."""
        raise AssertionError("a rehearsal publishes nothing")

    create = put = delete_sources = complete_upload
