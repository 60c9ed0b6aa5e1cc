"""Encodes the pieces of an output: in one stream, or segment by segment in several threads.

Segments are encoded independently, so the bytes do not depend on which thread encodes a segment, or
when. Only the sources and ``WorkerLimits`` determine where a segment ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple, Protocol, cast

from isal import isal_zlib

from compactor.encoding.encoders import Encoder, SegmentEncoder, Segments
from compactor.formats.lines import count_newlines
from compactor.limits import WorkerLimits
from compactor.process.processors import processors

# How many blocks of a stream may wait for its one thread.
_BLOCKS_AHEAD = 4
# Segments in addition to one per thread: one whose result is taken, and one for a free thread.
_SEGMENTS_AHEAD = 2


class Begin(NamedTuple):
    """Marks the beginning of a source, after ``at`` plain bytes of the output."""

    at: int


Plain = bytes | memoryview
Piece = Plain | Begin


class Encoded:
    """The encoded bytes of some pieces of an output, or of its opening or closing.

    Attributes:
        data: the encoded bytes, in order.
        size, crc32: size and CRC32 of the encoded bytes.
        plain_bytes, plain_crc32: size and CRC32 of a segment's plain bytes; not computed for a
            stream.
        newlines: number of newlines in the plain bytes.
        points: for each point, the number of these encoded bytes before it, and of plain bytes of
            the whole output.
    """

    def __init__(self) -> None:
        self.data: list[bytes] = []
        self.size = self.crc32 = 0
        self.plain_bytes = self.plain_crc32 = self.newlines = 0
        self.points: list[tuple[int, int]] = []

    def add(self, data: bytes) -> Encoded:
        """Append encoded bytes."""
        if data:
            self.data.append(data)
            self.size += len(data)
            self.crc32 = isal_zlib.crc32(data, self.crc32)
        return self


class Encoding(Protocol):
    """Encodes the pieces of one output, in their order.

    Attributes:
        segments: True if each call of :meth:`start` encodes an independent segment, with points.
        ahead: how many calls of :meth:`start` may be waiting or in progress.
    """

    segments: bool
    ahead: int

    def begin(self) -> Encoded:
        """Return the bytes before the first pieces."""
        ...

    def start(self, pieces: list[Piece], at: int, end: int) -> Callable[[], Encoded]:
        """Start to encode pieces.

        Args:
            pieces: what to encode.
            at: number of plain bytes of the output before the pieces.
            end: number of plain bytes up to their end.

        Returns:
            A function that waits for the result; to be called once, in the order of the pieces.
        """
        ...

    def end(self, plain_crc32: int, plain_bytes: int) -> Encoded:
        """Return the bytes after the last pieces."""
        ...

    def stop(self) -> None:
        """Drop work that has not begun, and wait for work in progress."""
        ...


def encoding(encoder: Encoder, limits: WorkerLimits) -> Encoding:
    """Return an encoding with this encoder, in several threads if it supports segments."""
    if encoder.segments is None:
        return _Stream(encoder)
    return _SideBySide(encoder.segments, limits)


def threads(limits: WorkerLimits) -> int:
    """Return the number of threads that encode one output: one per processor, within limits."""
    return min(processors(), limits.encoding_threads)


class _Stream:
    """One encoder, which runs in the thread that waits for the result."""

    segments = False
    ahead = _BLOCKS_AHEAD

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder

    def begin(self) -> Encoded:
        return Encoded()

    def start(self, pieces: list[Piece], at: int, end: int) -> Callable[[], Encoded]:
        # The writer passes no Begin to a stream.
        return partial(self._encode, cast("list[Plain]", pieces))

    def end(self, plain_crc32: int, plain_bytes: int) -> Encoded:
        return Encoded().add(self._encoder.finish())

    def stop(self) -> None:
        """Do nothing, because it has no thread of its own."""

    def _encode(self, pieces: Sequence[Plain]) -> Encoded:
        block = b"".join(pieces)
        encoded = Encoded().add(self._encoder.write(block))
        encoded.newlines = count_newlines(block)
        return encoded


class _SideBySide:
    """Segments encoded in several threads, each with an encoder of its own."""

    segments = True

    def __init__(self, segments: Segments, limits: WorkerLimits) -> None:
        self._segments = segments
        self._limits = limits
        count = threads(limits)
        self.ahead = count + _SEGMENTS_AHEAD
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="segment")

    def begin(self) -> Encoded:
        return Encoded().add(self._segments.begin())

    def start(self, pieces: list[Piece], at: int, end: int) -> Callable[[], Encoded]:
        return self._threads.submit(self._encode, pieces, at, end).result

    def end(self, plain_crc32: int, plain_bytes: int) -> Encoded:
        return Encoded().add(self._segments.end(plain_crc32, plain_bytes))

    def stop(self) -> None:
        self._threads.shutdown(cancel_futures=True)

    def _encode(self, pieces: list[Piece], at: int, end: int) -> Encoded:
        segment = _Segment(self._segments.encoder(), at, end, self._limits.point_bytes)
        return segment.encode(pieces)


class _Segment:
    """A segment being encoded."""

    def __init__(self, encoder: SegmentEncoder, at: int, end: int, point_bytes: int) -> None:
        self._encoder = encoder
        self._at = at
        self._end = end
        self._point_bytes = point_bytes
        self._encoded = Encoded()

    def encode(self, pieces: list[Piece]) -> Encoded:
        if self._at:
            self._encoded.points.append((0, self._at))
        plain: list[Plain] = []
        for piece in pieces:
            if not isinstance(piece, Begin):
                plain.append(piece)
                continue
            self._encode_plain(plain)
            plain = []
            self._begin(piece)
        self._encode_plain(plain)
        return self._encoded.add(self._encoder.finish())

    def _encode_plain(self, pieces: list[Plain]) -> None:
        if pieces:
            stretch = b"".join(pieces)
            self._count(stretch)
            self._encoded.add(self._encoder.write(stretch))

    def _begin(self, source: Begin) -> None:
        """Make a point where a source begins, if there are enough encoded bytes around it."""
        encoded = self._encoded
        last = encoded.points[-1][0] if encoded.points else 0
        far = encoded.size - last >= self._point_bytes and self._rest() >= self._point_bytes
        if far:
            encoded.add(self._encoder.point())
            encoded.points.append((encoded.size, source.at))

    def _rest(self) -> float:
        """Estimate the encoded bytes still to come, from the compression ratio so far."""
        encoded = self._encoded
        left = self._end - self._at - encoded.plain_bytes
        return left * encoded.size / (encoded.plain_bytes or 1)

    def _count(self, plain: bytes) -> None:
        encoded = self._encoded
        encoded.newlines += count_newlines(plain)
        encoded.plain_bytes += len(plain)
        encoded.plain_crc32 = isal_zlib.crc32(plain, encoded.plain_crc32)
