"""Bounded decoding of gzip and zstd, one member or frame at a time.

Both decoders take an :class:`Input` and yield plain pieces of at most :data:`PIECE_BYTES`.
They parse the container themselves, because the libraries either stop after the first member,
copy the rest of the input at every member, return truncated sources as short ones, or return as
much plain content as one call happens to expand to.

Sources: RFC 1952 (gzip), RFC 8878 (zstd).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

import zstandard
from isal import isal_zlib

from compactor.errors import UnreadableSource
from compactor.model import QuarantineReason

GZIP_MAGIC = b"\x1f\x8b\x08"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
PIECE_BYTES = 1 << 20

# The stubs declare an instance, which `except` does not accept.
INFLATE_ERROR = cast("type[Exception]", isal_zlib.error)

GZIP_WBITS = 31  # zlib's: a 32 KiB window with gzip header and trailer, both checked
_FIRST_WINDOW = 16 << 10
_LAST_WINDOW = 256 << 10
_MAX_GZIP_HEADER = 256 << 10
_FEXTRA, _FNAME, _FCOMMENT, _FHCRC, _RESERVED = 4, 8, 16, 2, 0xE0

# RFC 8878 limits a block to 128 KiB of plain bytes, so eight of them fit into one piece.
_BLOCKS_PER_PIECE = 8
_RLE_BLOCK, _RESERVED_BLOCK = 1, 3
_SKIPPABLE_TAIL = b"\x2a\x4d\x18"
# The default limit of the zstd command; the decoder allocates as much.
_MAX_ZSTD_WINDOW = 1 << 27


def is_skippable(head: bytes | memoryview) -> bool:
    """Return whether a skippable zstd frame (magic 0x184D2A50 to 0x184D2A5F) starts here."""
    return len(head) >= 4 and head[0] >> 4 == 5 and bytes(head[1:4]) == _SKIPPABLE_TAIL


def corrupt(detail: str) -> UnreadableSource:
    """Return the error for content that contradicts its own encoding."""
    return UnreadableSource(QuarantineReason.CORRUPT, detail)


def truncated(detail: str) -> UnreadableSource:
    """Return the error for content that ends too early."""
    return UnreadableSource(QuarantineReason.TRUNCATED, detail)


class Input:
    """A buffer for encoded bytes that arrive in pieces of any size, with look-ahead.

    Attributes:
        received: bytes taken from the pieces so far.
    """

    __slots__ = ("_at", "_data", "_pieces", "received")

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._data = memoryview(b"")
        self._at = 0
        self.received = 0

    def peek(self, count: int) -> memoryview:
        """Return the next ``count`` bytes without consuming them; fewer only at the end."""
        if len(self._data) - self._at < count:
            self._receive(count)
        return self._data[self._at : self._at + count]

    def skip(self, count: int) -> None:
        """Consume bytes that were peeked at."""
        self._at += count

    def pieces(self) -> Iterator[bytes]:
        """Yield the pieces as they arrive, for content that needs no decoding."""
        for piece in self._pieces:
            self.received += len(piece)
            yield piece

    def _receive(self, count: int) -> None:
        held: list[bytes | memoryview] = [self._data[self._at :]]
        size = len(held[0])
        while size < count and (piece := next(self._pieces, None)) is not None:
            held.append(piece)
            size += len(piece)
            self.received += len(piece)
        filled = [piece for piece in held if len(piece)]
        self._data = memoryview(filled[0] if len(filled) == 1 else b"".join(filled))
        self._at = 0


def gunzip(source: Input) -> Iterator[bytes]:
    """Yield plain pieces of one or more gzip members.

    Zero bytes after the last member are padding, as for gzip(1) (tapes and block devices
    pad); any other bytes there are an error.

    Raises:
        UnreadableSource: CORRUPT or TRUNCATED.
    """
    while True:
        yield from _member(source)
        head = bytes(source.peek(len(GZIP_MAGIC)))
        if not head:
            return
        if head == GZIP_MAGIC:
            continue
        if GZIP_MAGIC.startswith(head):
            raise truncated("the source ends within the header of a gzip member")
        _require_padding(source)
        return


def _member(source: Input) -> Iterator[bytes]:
    # isal misreads a header with several optional fields that arrives in small pieces, so the
    # first window always contains the whole header.
    window = max(_FIRST_WINDOW, _gzip_header_bytes(source) + 1)
    member = isal_zlib.decompressobj(GZIP_WBITS)
    while not member.eof:
        data = source.peek(window)
        try:
            piece = member.decompress(data, PIECE_BYTES)
        except INFLATE_ERROR as error:
            raise corrupt(f"gzip: {error}") from error
        source.skip(len(data) - len(member.unconsumed_tail) - len(member.unused_data))
        if piece:
            yield piece
        elif not data and not member.eof:
            raise truncated("the source ends within a gzip member")
        # A small first window that doubles: what isal copies past the end of a member stays in
        # proportion to the member, so many members take linear time.
        window = min(window * 2, _LAST_WINDOW)


def _gzip_header_bytes(source: Input) -> int:
    want = 64
    while True:
        head = bytes(source.peek(want))
        if len(head) > 3 and (head[:3] != GZIP_MAGIC or head[3] & _RESERVED):
            raise corrupt("no gzip header where a member should start")
        size = _header_end(head)
        if size is not None:
            return size
        if len(head) < want:
            raise truncated("the source ends within the header of a gzip member")
        if want >= _MAX_GZIP_HEADER:
            raise corrupt(f"a gzip header of more than {_MAX_GZIP_HEADER} bytes")
        want *= 4


def _header_end(head: bytes) -> int | None:
    """Return the length of the gzip header; None if ``head`` does not hold all of it."""
    if len(head) < 10:
        return None
    flags, at = head[3], 10
    if flags & _FEXTRA:
        at += 2 + int.from_bytes(head[at : at + 2], "little")
    for flag in (_FNAME, _FCOMMENT):
        if flags & flag:
            end = head.find(b"\0", at)
            if end < 0:
                return None
            at = end + 1
    at += 2 if flags & _FHCRC else 0
    return at if at <= len(head) else None


def _require_padding(source: Input) -> None:
    while data := source.peek(_LAST_WINDOW):
        if bytes(data).strip(b"\0"):
            raise corrupt("bytes that are no gzip member follow the last one")
        source.skip(len(data))


def unzstd(source: Input) -> Iterator[bytes]:
    """Yield plain pieces of one or more zstd frames; skippable frames are skipped.

    Raises:
        UnreadableSource: CORRUPT, TRUNCATED, or BOMB for a window over 128 MiB.
    """
    context: zstandard.ZstdDecompressor | None = None
    while True:
        magic = bytes(source.peek(4))
        if magic == ZSTD_MAGIC:
            context = context or zstandard.ZstdDecompressor(max_window_size=_MAX_ZSTD_WINDOW)
            yield from _frame(source, context)
        elif is_skippable(magic):
            _skip_frame(source)
        elif len(magic) == 4:
            raise corrupt("no zstd frame where one should start")
        elif magic or source.received == 0:
            raise truncated("the source ends within the header of a zstd frame")
        else:
            return


def _skip_frame(source: Input) -> None:
    head = source.peek(8)
    left = 8 + int.from_bytes(head[4:8], "little")
    while left:
        size = len(source.peek(min(left, _LAST_WINDOW)))
        if len(head) < 8 or not size:
            raise truncated("the source ends within a skippable zstd frame")
        source.skip(size)
        left -= size


def _frame(source: Input, context: zstandard.ZstdDecompressor) -> Iterator[bytes]:
    frame = context.decompressobj()
    size, checksum = _zstd_header(source)
    last = False
    while not last:
        blocks = 0
        while not last and blocks < _BLOCKS_PER_PIECE:
            last, content = _block(source, size)
            size += 3 + content
            blocks += 1
        size += checksum if last else 0
        data = source.peek(size)
        if len(data) < size:
            raise truncated("the source ends within a zstd frame")
        piece = _decode(frame, data)
        source.skip(size)
        size = 0
        if piece:
            yield piece
    if not frame.eof:
        raise corrupt("zstd: the frame goes on after its last block")


def _decode(frame: zstandard.ZstdDecompressionObj, data: memoryview) -> bytes:
    try:
        return frame.decompress(data)
    except zstandard.ZstdError as error:
        if "too much memory" in str(error):
            detail = f"a zstd window of more than {_MAX_ZSTD_WINDOW} bytes"
            raise UnreadableSource(QuarantineReason.BOMB, detail) from error
        raise corrupt(f"zstd: {error}") from error


def _zstd_header(source: Input) -> tuple[int, int]:
    """Return the length of the frame header, and of the checksum after the last block."""
    head = source.peek(5)
    if len(head) < 5:
        raise truncated("the source ends within the header of a zstd frame")
    flags = head[4]
    single = flags >> 5 & 1
    window = 1 - single
    dictionary = (0, 1, 2, 4)[flags & 3]
    content_size = (single, 2, 4, 8)[flags >> 6]
    return 5 + window + dictionary + content_size, 4 * (flags >> 2 & 1)


def _block(source: Input, at: int) -> tuple[bool, int]:
    """Return whether the block ``at`` bytes ahead is the frame's last, and its encoded bytes."""
    head = source.peek(at + 3)[at:]
    if len(head) < 3:
        raise truncated("the source ends within a zstd frame")
    header = int.from_bytes(head, "little")
    kind = header >> 1 & 3
    if kind == _RESERVED_BLOCK:
        raise corrupt("zstd: a block of the reserved kind")
    return bool(header & 1), 1 if kind == _RLE_BLOCK else header >> 3
