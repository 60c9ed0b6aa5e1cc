"""Writes an output as a multipart upload: encoded bytes, a few parts in flight at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

from isal import isal_zlib

from compactor.encoding.encoders import Encoder
from compactor.limits import USUAL, WorkerLimits
from compactor.model import (
    SourceObject,
    StoredPart,
)
from compactor.outputs.segments import Begin, Encoded, Piece, encoding
from compactor.pieces import Body, Pieces
from compactor.ports import ObjectStore

_PARTS_IN_FLIGHT = 3


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


# A source begins a piece of its own, in which a point is considered, only after this many times
# ``point_bytes`` of plain content.
_PLAIN_TO_POINT = 2
# A segment ends within a source when it has this many times ``segment_bytes``.
_LONGEST_SEGMENT = 2


class OutputWriter:
    """Streams encoded bytes into a multipart upload, with a few parts in flight.

    Other threads encode (``outputs/segments.py``) while the caller frames and the reader threads
    read. One thread joins the results in order and cuts them into parts. How much waits for them is
    limited, and at most four parts are held in memory. ``newlines``, ``size``, ``crc32`` and
    ``points`` are complete after :meth:`finish`. ``metadata`` is called when the upload is created.
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
        self.plain_bytes = 0
        self.newlines = 0
        self.size = 0
        self.crc32 = 0
        self.points: list[tuple[int, int]] = []
        self._limits = limits
        self._encoding = encoding(encoder, limits)
        self._most_waiting = limits.block_bytes
        if self._encoding.segments:
            self._most_waiting = _LONGEST_SEGMENT * limits.segment_bytes

        def begin() -> str:
            return store.create_upload(bucket, key, content_type=content_type, metadata=metadata())

        self._parts = Parts(store, bucket, key, begin)
        self._plain: list[Piece] = []
        self._plain_waiting = 0
        self._plain_crc32 = 0
        self._source_at = 0
        self._encoded: list[bytes] = []
        self._encoded_waiting = 0
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="encode")
        self._blocks: deque[Future[None]] = deque()
        self._passed_on = 0
        self._take(self._encoding.begin())

    def write(self, data: bytes | memoryview) -> None:
        """Write plain bytes; their memory may be reused only after :meth:`finish`."""
        if not data:
            return
        self.plain_bytes += len(data)
        if self._plain_waiting + len(data) > self._most_waiting:
            data = self._write_most(memoryview(data))
        if isinstance(data, memoryview) and 2 * len(data) < memoryview(data.obj).nbytes:
            # A waiting view would keep the rest of its source in memory.
            data = bytes(data)
        self._hold(data, len(data))

    def begin_source(self) -> None:
        """Note that another source begins, so that decoding may be able to begin here.

        A point is made only if enough was encoded since the last one: compression cannot refer to
        data before a point, which costs about 1 KiB each.
        """
        if not self._encoding.segments:
            return
        apart = self.plain_bytes - self._source_at
        if self._end_segment():
            self._source_at = self.plain_bytes
        elif apart >= _PLAIN_TO_POINT * self._limits.point_bytes:
            self._source_at = self.plain_bytes
            self._plain.append(Begin(self._source_at))

    def finish(self) -> tuple[str, tuple[StoredPart, ...]]:
        """Store what is left; return the upload id and its parts in order."""
        self._drain()
        self._take(self._encoding.end(self._plain_crc32, self.plain_bytes))
        if self._encoded_waiting or not self._parts.count:
            self._send_part(self._encoded_waiting)
        self._stop()
        return self._parts.finish()

    def abort(self) -> None:
        """Drop everything stored so far."""
        self._stop()
        self._parts.abort()

    def _stop(self) -> None:
        self._encoding.stop()
        self._thread.shutdown(cancel_futures=True)

    def _write_most(self, data: memoryview) -> memoryview:
        """Pass on as much as exceeds the limit of waiting bytes; return the rest."""
        while (room := self._most_waiting - self._plain_waiting) < len(data):
            if room > 0:
                self._plain.append(data[:room])
                self._plain_waiting += room
            data = data[max(room, 0) :]
            self._pass_on()
        return data

    def _hold(self, piece: Piece, plain_bytes: int) -> None:
        """Add a piece to those waiting, and pass them on when there are enough."""
        self._plain.append(piece)
        self._plain_waiting += plain_bytes
        if self._plain_waiting >= self._most_waiting:
            self._pass_on()

    def _end_segment(self) -> bool:
        """End the segment if it is long enough; return True if a new one begins here."""
        if self._plain_waiting >= self._limits.segment_bytes:
            self._pass_on()
        return not self._plain

    def _pass_on(self) -> None:
        """Hand the waiting pieces to the encoding threads."""
        at, end = self._passed_on, self._passed_on + self._plain_waiting
        pieces, self._plain = self._plain, []
        self._passed_on, self._plain_waiting = end, 0
        while len(self._blocks) >= self._encoding.ahead:
            self._blocks.popleft().result()
        encoded = self._encoding.start(pieces, at, end)
        self._blocks.append(self._thread.submit(self._join, encoded))

    def _drain(self) -> None:
        """Wait until everything written so far is encoded."""
        if self._plain:
            self._pass_on()
        while self._blocks:
            self._blocks.popleft().result()

    def _join(self, encode: Callable[[], Encoded]) -> None:
        self._take(encode())

    def _take(self, one: Encoded) -> None:
        """Append the next encoded bytes, and send the parts that are full."""
        self.points += [(self.size + at, plain) for at, plain in one.points]
        self.newlines += one.newlines
        self._plain_crc32 = isal_zlib.crc32_combine(
            self._plain_crc32, one.plain_crc32, one.plain_bytes
        )
        self.crc32 = isal_zlib.crc32_combine(self.crc32, one.crc32, one.size)
        self.size += one.size
        for data in one.data:
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
