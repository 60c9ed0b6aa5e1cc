"""The parts of a multipart upload: bytes that are sent, and ranges of sources that S3 copies."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from compactor.errors import CopyRefused, UnreadableSource
from compactor.limits import WorkerLimits
from compactor.model import SourceObject, StoredPart
from compactor.pieces import Body
from compactor.ports import ObjectStore

_PARTS_IN_FLIGHT = 3
# They hold no bytes here.
_COPIES_IN_FLIGHT = 16


class Parts:
    """The parts of one multipart upload, numbered in the order they are given.

    At most ``_PARTS_IN_FLIGHT`` bodies and ``_COPIES_IN_FLIGHT`` copies are under way at once; in
    which order they end does not matter.

    Args:
        store: takes them.
        bucket: of the upload.
        key: likewise.
        begin: creates the upload, with the first part; returns its id.

    Attributes:
        store: as given.
        count: parts so far.
        copied: whether the store copied any of one source among others.
    """

    def __init__(self, store: ObjectStore, bucket: str, key: str, begin: Callable[[], str]) -> None:
        self.store = store
        self.count = 0
        self.copied = False
        self._bucket = bucket
        self._key = key
        self._begin = begin
        self._upload_id = ""
        self._uploads: deque[Future[StoredPart]] = deque()
        self._copies: deque[Future[StoredPart]] = deque()
        self._stored: list[StoredPart] = []
        self._pool = ThreadPoolExecutor(
            _PARTS_IN_FLIGHT + _COPIES_IN_FLIGHT, thread_name_prefix="upload"
        )

    def upload(self, body: Body) -> None:
        """Store a part with these bytes, once there is room for it."""
        self._make_room(self._uploads, _PARTS_IN_FLIGHT)
        self._uploads.append(self._submit(self.store.upload_part, body))

    def copy(self, source: SourceObject, start: int, length: int) -> None:
        """Let the store copy a range of a source into a part of its own."""
        self._make_room(self._copies, _COPIES_IN_FLIGHT)
        self._copies.append(self._submit(self.store.copy_part, source, start, length))

    def copy_slice(self, source: SourceObject, start: int, length: int) -> None:
        """The same of one source among others: where that is refused, CopyRefused says so."""
        self.copied = True
        self._make_room(self._copies, _COPIES_IN_FLIGHT)
        self._copies.append(self._submit(self._copy_part, source, start, length))

    def _copy_part(
        self, bucket: str, key: str, upload_id: str, number: int, *which: Any
    ) -> StoredPart:
        try:
            return self.store.copy_part(bucket, key, upload_id, number, *which)
        except UnreadableSource as error:
            # Told when another source is at hand already.
            raise CopyRefused(str(error)) from error

    def finish(self) -> tuple[str, tuple[StoredPart, ...]]:
        """Wait for all of them; returns the upload's id, and the parts by number."""
        for under_way in (self._uploads, self._copies):
            self._make_room(under_way, 1)
        self._pool.shutdown()
        return self._upload_id, tuple(sorted(self._stored, key=lambda part: part.number))

    def abort(self) -> None:
        """Drop them, once none is under way that could still be stored."""
        self._pool.shutdown(cancel_futures=True)
        if self._upload_id:
            self.store.abort_upload(self._bucket, self._key, self._upload_id)

    def _make_room(self, under_way: deque[Future[StoredPart]], most: int) -> None:
        while len(under_way) >= most:
            self._stored.append(under_way.popleft().result())

    def _submit(
        self, store_part: Callable[..., StoredPart], *arguments: object
    ) -> Future[StoredPart]:
        if not self._upload_id:
            self._upload_id = self._begin()
        self.count += 1
        where = (self._bucket, self._key, self._upload_id, self.count)
        return self._pool.submit(store_part, *where, *arguments)


def copy_ranges(start: int, end: int, limits: WorkerLimits) -> Iterator[tuple[int, int]]:
    """(start, length) of the parts that copy these bytes: of equal size, at most 5 GiB each."""
    # An object of 50 TB, the largest there is, takes parts below 5 GiB; some parts stay for others.
    most = limits.most_parts * 99 // 100
    count = min(-(-(end - start) // limits.copy_part_bytes), most)
    for number in range(count):
        first = start + (end - start) * number // count
        yield first, start + (end - start) * (number + 1) // count - first
