"""What encodings outputs go in: none, gzip, zstd.

Encoding is reproducible: the same plain bytes with the same points give the same encoded bytes
however they are cut into writes.

The encoders were chosen by measure, CPU milliseconds per MB of plain bytes and size out/in:

| encoder       | JSON events | CloudTrail  | CSV          | VPC flow     |
|---------------|-------------|-------------|--------------|--------------|
| isal level 2  | 1.7 / 0.192 | 0.9 / 0.117 | 2.1 / 0.283  | 2.0 / 0.240  |
| isal level 3  | 4.0 / 0.187 | 2.7 / 0.122 | 4.1 / 0.277  | 3.6 / 0.232  |
| zlib-ng -4    | 6.0 / 0.165 | 2.7 / 0.102 | 8.0 / 0.260  | 7.8 / 0.215  |
| zlib-ng -6    | 8.2 / 0.158 | 5.1 / 0.092 | 12.3 / 0.255 | 13.9 / 0.207 |
| stdlib -6     | 12.5 / 0.161| 7.9 / 0.096 | 20.6 / 0.258 | 28.1 / 0.204 |
| zstd level 3  | 2.4 / 0.129 | 1.6 / 0.079 | 3.1 / 0.174  | 3.7 / 0.202  |

zlib-ng -6 costs 7 vCPU seconds a GB more than isal -2 (USD 0.0002 on Lambda) and saves 34 MB of
it, which S3 Standard charges USD 0.0008 a month: it pays for itself in a week. And with isal the
outputs can be larger than the sources they replace, which were mostly written at level 6.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import zstandard
from zlib_ng import zlib_ng

from compactor.model import Compression

GZIP_LEVEL = 6
ZSTD_LEVEL = 3
BLOCK_BYTES = 256 << 10

_GZIP_CONTAINER = 31  # zlib's wbits: a 32 KiB window with gzip header and trailer


class Encoder(Protocol):
    """Encodes one output; not reusable after :meth:`finish`.

    Attributes:
        has_points: whether decoding can begin anywhere but at the start; False, too, where every
            byte is such a place.
    """

    has_points: bool

    def write(self, data: bytes | memoryview) -> bytes:
        """Take plain bytes; return the encoded bytes that are ready, often none."""
        ...

    def point(self) -> bytes:
        """Encode all that was written; decoding can begin behind the bytes that are returned."""
        ...

    def finish(self) -> bytes:
        """The last encoded bytes."""
        ...


def encoder(compression: Compression, *, members: bool = False) -> Encoder:
    """A new encoder: one gzip member (no name, no time) or one zstd frame with checksum.

    With ``members``, outputs have one more member or frame from each point on.

    The bytes depend on the plain bytes, the points in them and the version of the library, on
    nothing else. A point of gzip is a full flush (RFC 1951 calls what it leaves an empty stored
    block): the member goes on, at a byte's begin, without a look back. zstd has none within a
    frame: only outputs of several frames have points.
    """
    if compression is Compression.GZIP:
        return _Members(_member) if members else _Gzip()
    if compression is Compression.ZSTD:
        context = zstandard.ZstdCompressor(level=ZSTD_LEVEL, write_checksum=True)
        return _Members(context.compressobj) if members else _Blocks(context.compressobj())
    return _Identity()


class _Identity:
    has_points = False

    def write(self, data: bytes | memoryview) -> bytes:
        return bytes(data)

    def point(self) -> bytes:
        return b""

    def finish(self) -> bytes:
        return b""


class _Compressor(Protocol):
    def compress(self, data: bytes | bytearray | memoryview, /) -> bytes: ...

    def flush(self) -> bytes: ...


class _Deflate(_Compressor, Protocol):
    def flush(self, mode: int = ..., /) -> bytes: ...


class _Blocks:
    """Hands the compressor blocks of one size, whatever the writes were.

    An encoder's bytes may depend on where its input is cut (isal's do); and one call for
    256 KiB, which runs without the interpreter lock, costs less than many for a few KiB each.
    """

    has_points = False

    def __init__(self, compressor: _Compressor) -> None:
        self._compressor = compressor
        self._held = bytearray()

    def write(self, data: bytes | memoryview) -> bytes:
        if len(self._held) + len(data) < BLOCK_BYTES:
            self._held += data
            return b""
        view = memoryview(data)
        at = BLOCK_BYTES - len(self._held)
        self._held += view[:at]
        encoded = [self._compressor.compress(self._held)]
        while len(view) - at >= BLOCK_BYTES:
            encoded.append(self._compressor.compress(view[at : at + BLOCK_BYTES]))
            at += BLOCK_BYTES
        self._held = bytearray(view[at:])
        return b"".join(encoded)

    def point(self) -> bytes:
        return b""

    def finish(self) -> bytes:
        return self._rest() + self._compressor.flush()

    def _rest(self) -> bytes:
        held, self._held = self._held, bytearray()
        return self._compressor.compress(held) if held else b""


class _Gzip(_Blocks):
    has_points = True

    def __init__(self) -> None:
        self._member = _member()
        super().__init__(self._member)

    def point(self) -> bytes:
        return self._rest() + self._member.flush(zlib_ng.Z_FULL_FLUSH)


class _Members:
    """Members or frames behind each other, a new one after each point; others may be between.

    Args:
        begin: makes the compressor of the next one, once the one before it is whole.

    Attributes:
        is_open: whether anything was written since the last point: it ends with the next one.
    """

    has_points = True

    def __init__(self, begin: Callable[[], _Compressor]) -> None:
        self.is_open = False
        self._is_empty = True
        self._begin = begin
        self._blocks = _Blocks(begin())

    def write(self, data: bytes | memoryview) -> bytes:
        self.is_open = self.is_open or len(data) > 0
        return self._blocks.write(data)

    def point(self) -> bytes:
        self._is_empty = False
        if not self.is_open:
            return b""
        ended = self._blocks.finish()
        self._blocks = _Blocks(self._begin())
        self.is_open = False
        return ended

    def finish(self) -> bytes:
        # No bytes at all would be neither gzip nor zstd.
        return self._blocks.finish() if self.is_open or self._is_empty else b""


def _member() -> _Deflate:
    return zlib_ng.compressobj(GZIP_LEVEL, zlib_ng.DEFLATED, _GZIP_CONTAINER)
