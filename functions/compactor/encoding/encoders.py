"""The encodings of outputs: none, gzip, zstd.

Encoding is reproducible: the same plain bytes give the same encoded bytes however they are split
into writes.

The encoders were chosen by measurement: CPU milliseconds per MB of plain bytes, and size out/in,
over pieces of 4 MiB:

| encoder       | JSON events  | CloudTrail  | CSV          | log          | S3 access   |
|---------------|--------------|-------------|--------------|--------------|-------------|
| isal -2       |  1.4 / 0.190 | 0.8 / 0.114 |  1.9 / 0.284 |  1.6 / 0.251 | 1.1 / 0.163 |
| isal -3       |  2.8 / 0.186 | 2.0 / 0.119 |  3.5 / 0.278 |  3.0 / 0.248 | 2.3 / 0.164 |
| zlib-ng -1    |  2.6 / 0.261 | 1.5 / 0.152 |  3.9 / 0.400 |  3.2 / 0.351 | 2.2 / 0.241 |
| zlib-ng -3    |  4.5 / 0.177 | 2.4 / 0.105 |  7.0 / 0.271 |  5.7 / 0.240 | 3.7 / 0.157 |
| zlib-ng -4    |  5.4 / 0.163 | 2.8 / 0.100 |  8.4 / 0.263 |  6.8 / 0.236 | 4.1 / 0.154 |
| zlib-ng -5    |  5.9 / 0.158 | 3.3 / 0.092 |  9.6 / 0.260 |  7.7 / 0.233 | 5.0 / 0.149 |
| zlib-ng -6    |  7.6 / 0.155 | 4.3 / 0.090 | 13.0 / 0.258 | 10.7 / 0.231 | 5.7 / 0.149 |
| zlib-ng -7    |  9.0 / 0.151 | 4.7 / 0.090 | 17.7 / 0.245 | 16.4 / 0.220 | 7.6 / 0.148 |
| zlib-ng -8    | 13.7 / 0.147 | 6.3 / 0.088 | 28.4 / 0.244 | 39.4 / 0.219 | 8.9 / 0.148 |
| zlib-ng -9    | 14.7 / 0.158 | 8.7 / 0.094 | 22.9 / 0.262 | 18.8 / 0.236 | 12.7 / 0.165 |
| stdlib -6     | 11.9 / 0.159 | 7.5 / 0.094 | 20.4 / 0.263 | 16.3 / 0.235 | 11.6 / 0.157 |
| libdeflate -5 |  5.1 / 0.157 | 3.2 / 0.097 |  7.5 / 0.240 |  5.9 / 0.218 | 4.2 / 0.146 |
| libdeflate -6 |  6.4 / 0.149 | 3.5 / 0.092 |  9.3 / 0.237 |  8.5 / 0.216 | 4.9 / 0.144 |
| zstd -3       |  2.0 / 0.121 | 1.3 / 0.079 |  2.4 / 0.161 |  3.0 / 0.219 | 2.0 / 0.133 |

zlib-ng -6 costs 6 vCPU seconds a GB of JSON more than isal -2 (USD 0.00014 on Lambda) and saves
35 MB of it, which S3 Standard charges USD 0.0008 a month: it pays for itself in a week. And with
isal the outputs can be larger than the sources they replace, which were mostly written at level 6.
Level 7 would pay for itself, too, in two weeks to two months, but a worker would take up to half
longer. libdeflate compresses better with less CPU, but takes the whole content of a member at once.
"""

from __future__ import annotations

from typing import Protocol

import zstandard
from zlib_ng import zlib_ng

from compactor.model import Compression

GZIP_LEVEL = 6
ZSTD_LEVEL = 3
BLOCK_BYTES = 256 << 10

_GZIP_CONTAINER = 31  # zlib's wbits: a 32 KiB window with gzip header and trailer


class Encoder(Protocol):
    """Encodes one output as a stream. Not reusable after :meth:`finish`."""

    def write(self, data: bytes | memoryview) -> bytes:
        """Take plain bytes; return the encoded bytes that are ready, often none."""
        ...

    def finish(self) -> bytes:
        """Return the last encoded bytes."""
        ...


def encoder(compression: Compression) -> Encoder:
    """Return a new encoder of one gzip member (no name, no time) or one zstd frame with checksum.

    The encoded bytes depend only on the plain bytes and the version of the library.
    """
    if compression is Compression.GZIP:
        return _Blocks(zlib_ng.compressobj(GZIP_LEVEL, zlib_ng.DEFLATED, _GZIP_CONTAINER))
    if compression is Compression.ZSTD:
        # A zstandard context serves one thread at a time.
        context = zstandard.ZstdCompressor(level=ZSTD_LEVEL, write_checksum=True)
        return _Blocks(context.compressobj())
    return _Identity()


class _Identity:
    def write(self, data: bytes | memoryview) -> bytes:
        return bytes(data)

    def finish(self) -> bytes:
        return b""


class _Compressor(Protocol):
    def compress(self, data: bytes | bytearray | memoryview, /) -> bytes: ...

    def flush(self) -> bytes: ...


class _Blocks:
    """Passes blocks of a fixed size to the compressor, whatever the sizes of the writes.

    An encoder's bytes may depend on where its input is split (isal's do). And one call for
    256 KiB, which runs without the interpreter lock, costs less than many for a few KiB each.
    """

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

    def finish(self) -> bytes:
        held, self._held = self._held, bytearray()
        return (self._compressor.compress(held) if held else b"") + self._compressor.flush()
