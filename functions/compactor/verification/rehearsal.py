"""A store as it was at some time, in which outputs are only put together, and not stored.

Everything else is what it is: sources are read, and objects looked at.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

from compactor.model import SourceObject, StoredPart
from compactor.pieces import Body
from compactor.ports import ObjectStore

# Of a source that S3 would copy, so much is held at a time.
_RANGE_BYTES = 16 * 1024 * 1024


class Rehearsal:
    """Stands in for :class:`compactor.ports.ObjectStore`.

    Args:
        store: what it reads from.
        at: UNIX seconds; what arrived later is not listed.
    """

    def __init__(self, store: ObjectStore, at: float) -> None:
        self._store = store
        self._at = at

    def __getattr__(self, name: str) -> Any:
        """Whatever changes nothing is the store's own."""
        return getattr(self._store, name)

    def list_objects(
        self, bucket: str, prefix: str, *, start_after: str = "", until: str = ""
    ) -> Iterator[Sequence[SourceObject]]:
        """Pages of what was there."""
        for page in self._store.list_objects(bucket, prefix, start_after=start_after, until=until):
            yield [one for one in page if one.last_modified <= self._at]

    def create_upload(self, *_: object, **__: object) -> str:
        """An upload that nothing begins."""
        return "adopted"

    def upload_part(
        self, bucket: str, key: str, upload_id: str, number: int, body: Body
    ) -> StoredPart:
        """What S3 would answer, where ETags are MD5 sums."""
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
        """The same of bytes that a worker never sees otherwise."""
        digest = hashlib.md5(usedforsecurity=False)
        for at in range(start, start + length, _RANGE_BYTES):
            size = min(_RANGE_BYTES, start + length - at)
            digest.update(self._store.read_range(source, at, size))
        return StoredPart(number, digest.hexdigest(), length)

    def abort_upload(self, *_: object) -> None:
        """There is none."""

    def complete_upload(self, *_: object, **__: object) -> None:
        """Refuse to publish."""
        raise AssertionError("a rehearsal publishes nothing")

    create = put = delete_sources = complete_upload
