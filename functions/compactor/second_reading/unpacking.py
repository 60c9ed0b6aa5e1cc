"""Decompresses stored bytes with the standard decompressors."""

from __future__ import annotations

import bz2
import gzip
import io
import zlib
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import IO, cast

import zstandard

_PIECE_BYTES = 1 << 20
_MAGIC_BYTES = 4
_ERRORS = (OSError, EOFError, zlib.error, zstandard.ZstdError)
_ZSTD = b"\x28\xb5\x2f\xfd"
_SKIPPABLE_ZSTD = b"\x2a\x4d\x18"


class NotReadable(Exception):
    """The stored bytes cannot be decompressed."""


class Stream(io.RawIOBase):
    """A raw file over bytes that arrive in pieces."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._held = memoryview(b"")

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # the stub is wider
        """Read the next bytes; return 0 at the end."""
        while not self._held:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._held = memoryview(piece)
        size = min(len(buffer), len(self._held))
        buffer[:size] = self._held[:size]
        self._held = self._held[size:]
        return size


def plain_pieces(stored: Iterable[bytes]) -> Iterator[bytes]:
    """Yield plain bytes in pieces of at most 1 MiB; data without gzip, bzip2 or zstd magic as is.

    Raises:
        NotReadable: while iterating, if the stored bytes cannot be decompressed.
    """
    waiting, magic = iter(stored), b""
    while len(magic) < _MAGIC_BYTES and (piece := next(waiting, None)) is not None:
        magic += piece
    source = io.BufferedReader(Stream(chain((magic,), waiting)), _PIECE_BYTES)
    opened = _opened(source, magic[:_MAGIC_BYTES])
    while True:
        try:
            piece = opened.read(_PIECE_BYTES)
        except _ERRORS as error:
            raise NotReadable(f"{type(error).__name__}: {error}") from error
        if not piece:
            return
        yield piece


def plain(stored: bytes) -> bytes:
    """Return all plain bytes in one piece.

    Raises:
        NotReadable: the stored bytes cannot be decompressed.
    """
    return b"".join(plain_pieces((stored,)))


def _opened(source: io.BufferedReader[Stream], magic: bytes) -> IO[bytes]:
    if magic.startswith(b"\x1f\x8b"):
        return cast(IO[bytes], gzip.GzipFile(fileobj=source))
    if magic.startswith(b"BZh"):
        return cast(IO[bytes], bz2.BZ2File(source))
    if magic == _ZSTD or (magic[1:] == _SKIPPABLE_ZSTD and magic[0] >> 4 == 5):
        context = zstandard.ZstdDecompressor(max_window_size=1 << 27)
        return cast(IO[bytes], context.stream_reader(source, read_across_frames=True))
    return cast(IO[bytes], source)
