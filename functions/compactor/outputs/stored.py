"""Compressed sources as they are stored: what passed of one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from isal import isal_zlib

from compactor.codecs.decoders import Input

# A frame header of zstd takes up to 18 bytes, and a trailer of gzip 8.
_HEAD_BYTES = 18
_TAIL_BYTES = 8


class StoredBytes:
    """A compressed source as it is stored, looked at on its way to be decompressed.

    Args:
        pieces: its bytes.
        keep: hold what has passed.

    Attributes:
        input: the same bytes, to be decompressed.
        head: the first of those that passed, up to 18.
        tail: the last of these, up to 8.
        size, crc32: of these.
        kept: these, where they are held; else None.
    """

    def __init__(self, pieces: Iterable[bytes], *, keep: bool) -> None:
        self.head = self.tail = b""
        self.size = self.crc32 = 0
        self.kept: list[bytes] | None = [] if keep else None
        self._pieces = iter(pieces)
        self.input = Input(self._passing(), strictly=True)

    @classmethod
    def held(cls, content: bytes, decoded: Input, *, keep: bool) -> StoredBytes:
        """The same of a source that is held whole, some of which is decompressed already."""
        found = cls((), keep=keep)
        found.input = decoded
        found._see(content)
        return found

    @property
    def units(self) -> int:
        """Members or frames that were begun, skippable frames and padding among them."""
        return self.input.units

    def from_begin(self) -> Iterator[bytes] | None:
        """All of its bytes, those that have not passed among them; None where they are not held."""
        return None if self.kept is None else chain(tuple(self.kept), self._pieces)

    def _passing(self) -> Iterator[bytes]:
        for piece in self._pieces:
            self._see(piece)
            yield piece

    def _see(self, piece: bytes) -> None:
        self.size += len(piece)
        self.crc32 = isal_zlib.crc32(piece, self.crc32)
        if len(self.head) < _HEAD_BYTES:
            self.head += piece[: _HEAD_BYTES - len(self.head)]
        self.tail = (self.tail + piece[-_TAIL_BYTES:])[-_TAIL_BYTES:]
        if self.kept is not None:
            self.kept.append(piece)
