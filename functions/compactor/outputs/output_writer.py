"""Writes an output as a multipart upload: encoded bytes, a few parts in flight at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

from isal import isal_zlib

from compactor.encoding.encoders import Encoder
from compactor.formats.lines import count_newlines
from compactor.limits import USUAL, WorkerLimits
from compactor.model import (
    SourceObject,
    StoredPart,
)
from compactor.pieces import Body, Pieces
from compactor.ports import ObjectStore

_PARTS_IN_FLIGHT = 3
# How many blocks may wait for the thread that encodes.
_BLOCKS_AHEAD = 4


class Parts:
    """The parts of one multipart upload, numbered in the order they are given.

    They may end in any order.

    Args:
        store: stores the parts.
        bucket: the upload's bucket.
        key: the upload's key.
        begin: creates the upload and returns its id; called for the first part.
        in_flight: how many parts may be in flight.

    Attributes:
        count: parts so far.
    """

    def __init__(
        self,
        store: ObjectStore,
        bucket: str,
        key: str,
        begin: Callable[[], str],
        *,
        in_flight: int = _PARTS_IN_FLIGHT,
    ) -> None:
        self.count = 0
        self._store = store
        self._bucket = bucket
        self._key = key
        self._begin = begin
        self._in_flight = in_flight
        self._upload_id = ""
        self._unfinished: deque[Future[StoredPart]] = deque()
        self._stored: list[StoredPart] = []
        self._pool = ThreadPoolExecutor(in_flight, thread_name_prefix="upload")

    def upload(self, body: Body) -> None:
        """Store a part with these bytes, after waiting for room if needed."""
        self._submit(self._store.upload_part, body)

    def copy(self, source: SourceObject, start: int, length: int) -> None:
        """Let the store copy a range of a source into a part of its own."""
        self._submit(self._store.copy_part, source, start, length)

    def finish(self) -> tuple[str, tuple[StoredPart, ...]]:
        """Wait for all parts; return the upload's id, and the parts by number."""
        self._make_room(1)
        self._pool.shutdown()
        return self._upload_id, tuple(self._stored)

    def abort(self) -> None:
        """Abort the upload, after waiting for parts in flight that could still be stored."""
        self._pool.shutdown(cancel_futures=True)
        if self._upload_id:
            self._store.abort_upload(self._bucket, self._key, self._upload_id)

    def _make_room(self, most: int) -> None:
        while len(self._unfinished) >= most:
            self._stored.append(self._unfinished.popleft().result())

    def _submit(self, store_part: Callable[..., StoredPart], *arguments: object) -> None:
        self._make_room(self._in_flight)
        if not self._upload_id:
            self._upload_id = self._begin()
        self.count += 1
        target = (self._bucket, self._key, self._upload_id, self.count)
        self._unfinished.append(self._pool.submit(store_part, *target, *arguments))


class OutputWriter:
    """Streams encoded bytes into a multipart upload, with a few parts in flight.

    Another thread encodes, block by block, while the caller frames and the reader threads read. A
    few blocks wait for it, and at most four parts are held in memory. ``newlines``, ``size`` and
    ``crc32`` are complete after :meth:`finish`. ``metadata`` is called when the upload is created.
    """

    def __init__(
        self,
        store: ObjectStore,
        bucket: str,
        key: str,
        encoder: Encoder,
        *,
        content_type: str = "",
        metadata: Callable[[], Mapping[str, str]] = dict,
        limits: WorkerLimits = USUAL,
    ) -> None:
        self.bucket = bucket
        self.key = key
        self.plain_bytes = self.newlines = self.size = self.crc32 = 0
        self._encoder = encoder
        self._limits = limits

        def begin() -> str:
            return store.create_upload(bucket, key, content_type=content_type, metadata=metadata())

        self._parts = Parts(store, bucket, key, begin)
        self._plain: list[bytes | memoryview] = []
        self._plain_waiting = 0
        self._encoded: list[bytes] = []
        self._encoded_waiting = 0
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="encode")
        self._blocks: deque[Future[None]] = deque()

    def write(self, data: bytes | memoryview) -> None:
        """Write plain bytes; their memory may be reused only after :meth:`finish`."""
        block_bytes = self._limits.block_bytes
        self.plain_bytes += len(data)
        if len(data) <= block_bytes:
            self._hold(data)
            return
        view = memoryview(data)
        for at in range(0, len(view), block_bytes):
            self._hold(view[at : at + block_bytes])

    def finish(self) -> tuple[str, tuple[StoredPart, ...]]:
        """Store what is left; return the upload id and its parts in order."""
        if self._plain:
            self._pass_on()
        while self._blocks:
            self._blocks.popleft().result()
        self._thread.shutdown()
        self._take(self._encoder.finish())
        if self._encoded_waiting or not self._parts.count:
            self._send_part(self._encoded_waiting)
        return self._parts.finish()

    def abort(self) -> None:
        """Drop everything stored so far."""
        self._thread.shutdown(cancel_futures=True)
        self._parts.abort()

    def _hold(self, data: bytes | memoryview) -> None:
        """Add bytes to those waiting, and pass them on when there are enough."""
        if isinstance(data, memoryview) and 2 * len(data) < memoryview(data.obj).nbytes:
            # A waiting view would keep the rest of its source in memory.
            data = bytes(data)
        self._plain.append(data)
        self._plain_waiting += len(data)
        if self._plain_waiting >= self._limits.block_bytes:
            self._pass_on()

    def _pass_on(self) -> None:
        """Hand the waiting bytes to the encoding thread."""
        block, self._plain, self._plain_waiting = self._plain, [], 0
        while len(self._blocks) >= _BLOCKS_AHEAD:
            self._blocks.popleft().result()
        self._blocks.append(self._thread.submit(self._encode, block))

    def _encode(self, pieces: list[bytes | memoryview]) -> None:
        block = b"".join(pieces)
        self.newlines += count_newlines(block)
        self._take(self._encoder.write(block))

    def _take(self, data: bytes) -> None:
        """Append encoded bytes, and send the parts that are full."""
        if not data:
            return
        self.crc32 = isal_zlib.crc32(data, self.crc32)
        self.size += len(data)
        self._encoded.append(data)
        self._encoded_waiting += len(data)
        while self._encoded_waiting >= self._limits.part_bytes:
            self._send_part(self._limits.part_bytes)

    def _send_part(self, size: int) -> None:
        last = memoryview(self._encoded.pop() if self._encoded else b"")
        cut = len(last) - (self._encoded_waiting - size)
        # Only the last piece can reach beyond the part, as parts are sent as soon as they are full.
        part = Pieces([*self._encoded, last[:cut]])
        self._encoded = [bytes(last[cut:])] if cut < len(last) else []
        self._encoded_waiting -= size
        self._parts.upload(part)
