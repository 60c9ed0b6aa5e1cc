"""How a source is stored: plain or compressed, in one piece or in several, damaged or not."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from dataclasses import dataclass

import zstandard


@dataclass(frozen=True)
class Encoding:
    """One way to store bytes.

    Attributes:
        ending: what it adds to a key.
        encode: does it; the bytes that a decompressor gives back are the plain ones.
        damaged: a decompressor complains about it.
    """

    ending: str
    encode: Callable[[bytes], bytes]
    damaged: bool = False


def _gzip(plain: bytes) -> bytes:
    return gzip.compress(plain, mtime=0)


def _zstd(plain: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(plain)


def _halves(plain: bytes) -> tuple[bytes, bytes]:
    return plain[: len(plain) // 2], plain[len(plain) // 2 :]


def _members(plain: bytes) -> bytes:
    return b"".join(_gzip(half) for half in _halves(plain))


def _frames(plain: bytes) -> bytes:
    return b"".join(_zstd(half) for half in _halves(plain))


def _named(plain: bytes) -> bytes:
    """As gzip writes it from a file: with the name and the time in the header."""
    raw = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    header = b"\x1f\x8b\x08\x08" + b"\x00\x00\x9a\x69" + b"\x00\x03" + b"a.log\0"
    ends = zlib.crc32(plain).to_bytes(4, "little") + (len(plain) & 0xFFFFFFFF).to_bytes(4, "little")
    return header + raw.compress(plain) + raw.flush() + ends


ENCODINGS = {
    "plain": Encoding("", bytes),
    "gzip": Encoding(".gz", _gzip),
    "gzip with a name": Encoding(".gz", _named),
    "gzip members": Encoding(".gz", _members),
    "gzip without its name": Encoding("", _gzip),
    "gzip and zeros": Encoding(".gz", lambda plain: _gzip(plain) + bytes(512)),
    "gzip and garbage": Encoding(".gz", lambda plain: _gzip(plain) + b"garbage", damaged=True),
    "gzip cut off": Encoding(".gz", lambda plain: _gzip(plain)[:-9], damaged=True),
    "zstd": Encoding(".zst", _zstd),
    "zstd frames": Encoding(".zst", _frames),
    "zstd and garbage": Encoding(".zst", lambda plain: _zstd(plain) + b"garbage", damaged=True),
    "zstd cut off": Encoding(".zst", lambda plain: _zstd(plain)[:-3], damaged=True),
}


def decoded(stored: bytes) -> bytes:
    """The plain bytes of an output.

    Raises:
        OSError, EOFError, zstandard.ZstdError: it is damaged.
    """
    if stored.startswith(b"\x1f\x8b"):
        return gzip.decompress(stored)
    if stored.startswith(b"\x28\xb5\x2f\xfd"):
        with zstandard.ZstdDecompressor().stream_reader(stored, read_across_frames=True) as reader:
            return reader.read()
    return stored
