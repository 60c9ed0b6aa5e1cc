"""The encodings of sources: none, gzip, zstd.

Decoding relies on the bytes, never on the name. It is bounded in memory, whatever the source
claims, and never returns short content: a source that ends too early is an error.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterable, Iterator

import msgspec
import zstandard
from isal import isal_zlib

from compactor.encoding.decoders import (
    GZIP_MAGIC,
    GZIP_WBITS,
    INFLATE_ERROR,
    PIECE_BYTES,
    ZSTD_MAGIC,
    Input,
    gunzip,
    is_skippable,
    unzstd,
)
from compactor.errors import UnreadableSource
from compactor.model import Compression, QuarantineReason

UNQUESTIONED_BYTES = 16 << 20

# RFC 1952: a member ends with the size of its content, modulo 2**32.
_GZIP_SIZE_BYTES = 4
# Every magic begins with one of these, and hardly any text does.
_MAGIC_STARTS = frozenset({GZIP_MAGIC[0], ZSTD_MAGIC[0], *range(0x50, 0x60)})
# Making a zstd context costs more than using it for a small source. Threads cannot share one.
_thread = threading.local()


class Limits(msgspec.Struct, frozen=True):
    """How much a source may expand.

    Attributes:
        max_expansion: plain bytes per encoded byte, or None for no limit; checked only beyond
            16 MiB of plain bytes.
        max_bytes: plain bytes of one source, or None for no limit.
    """

    max_expansion: int | None = 200
    max_bytes: int | None = None

    def check(self, plain_bytes: int, encoded_bytes: int) -> None:
        """Raise UnreadableSource (TOO_LARGE or BOMB) if a limit is exceeded."""
        if self.max_bytes is not None and plain_bytes > self.max_bytes:
            detail = f"more than {self.max_bytes} plain bytes"
            raise UnreadableSource(QuarantineReason.TOO_LARGE, detail)
        if plain_bytes <= UNQUESTIONED_BYTES or self.max_expansion is None:
            return
        if plain_bytes > self.max_expansion * encoded_bytes:
            detail = f"expands more than {self.max_expansion} times"
            raise UnreadableSource(QuarantineReason.BOMB, detail)


_ANY_SIZE = Limits(max_expansion=None, max_bytes=None)


def detect_compression(head: bytes) -> Compression:
    """Return the compression of a source by its first bytes (4 or more, unless it has fewer)."""
    if not head or head[0] not in _MAGIC_STARTS:
        return Compression.NONE
    if head.startswith(GZIP_MAGIC):
        return Compression.GZIP
    if head.startswith(ZSTD_MAGIC) or is_skippable(head):
        return Compression.ZSTD
    return Compression.NONE


def decompress(content: bytes, compression: Compression, *, limits: Limits) -> bytes:
    """Return the plain bytes of one whole source, from all its members or frames.

    Memory stays within the limits plus a few MiB: a source that exceeds them is rejected as
    soon as it does.

    Args:
        content: the source.
        compression: the compression that its first bytes show.
        limits: of its expansion.

    Raises:
        UnreadableSource: CORRUPT, TRUNCATED, BOMB, or TOO_LARGE (``limits.max_bytes``).
    """
    if compression is Compression.NONE:
        limits.check(len(content), len(content))
        return content
    whole = decompress_whole(content, compression, limits=limits, most_bytes=UNQUESTIONED_BYTES)
    if whole is not None:
        return whole
    source = Input((content,))
    # BytesIO grows in place and returns its buffer without a copy; joining would hold two.
    plain = io.BytesIO()
    for piece in decompress_stream(source, compression, limits=limits):
        plain.write(piece)
    return plain.getvalue()


def decompress_whole(
    content: bytes,
    compression: Compression,
    *,
    limits: Limits,
    most_bytes: int,
) -> bytes | None:
    """Return the plain bytes in the common case: one valid member or frame that states its size.

    One call takes a sixth less CPU than decoding in pieces, and releases the interpreter lock once.
    It never inflates more than the stated size.

    Args:
        content: one whole source.
        compression: the compression that its first bytes show.
        limits: of its expansion.
        most_bytes: the most plain bytes to return in one piece.

    Returns:
        None for all other sources. Decoding them in pieces finds out what is wrong with them.

    Raises:
        UnreadableSource: BOMB, or TOO_LARGE (``limits.max_bytes``).
    """
    if compression is Compression.ZSTD:
        plain = _unzstd(content, most_bytes)
    else:
        plain = _gunzip(content, most_bytes)
    if plain is not None:
        limits.check(len(plain), len(content))
    return plain


def _unzstd(content: bytes, most_bytes: int) -> bytes | None:
    try:
        if not 0 < zstandard.frame_content_size(content) <= min(PIECE_BYTES, most_bytes):
            return None
        context = getattr(_thread, "context", None)
        if context is None:
            context = _thread.context = zstandard.ZstdDecompressor()
        return bytes(context.decompress(content, allow_extra_data=False))
    except zstandard.ZstdError:
        return None


def _gunzip(content: bytes, most_bytes: int) -> bytes | None:
    size = int.from_bytes(content[-_GZIP_SIZE_BYTES:], "little")
    # Optional header fields are left to gunzip, which checks them.
    if content[3:4] != b"\0" or size > most_bytes:
        return None
    member = isal_zlib.decompressobj(GZIP_WBITS)
    try:
        # 0 would mean no limit.
        plain = member.decompress(content, size + 1)
    except INFLATE_ERROR:
        return None
    return plain if member.eof and not member.unused_data else None


def decompress_stream(
    chunks: Iterable[bytes] | Input, compression: Compression, *, limits: Limits
) -> Iterator[bytes]:
    """Yield plain pieces of at most 1 MiB as the encoded bytes arrive.

    ``limits.max_expansion`` is checked against the encoded bytes received so far. A caller that
    passes an :class:`Input` can read from it how much was received.

    Raises:
        UnreadableSource: see :func:`decompress`; good pieces may have been yielded before.
    """
    source = chunks if isinstance(chunks, Input) else Input(chunks)
    plain_bytes = 0
    for piece in _DECODERS[compression](source):
        plain_bytes += len(piece)
        limits.check(plain_bytes, source.received)
        yield piece


def beginning(stored: bytes, *, complete: bool, most_bytes: int = 4 << 20) -> tuple[bytes, bool]:
    """Decompress the first bytes of a source; also return whether that is all of it.

    Args:
        stored: the first bytes, or all of them if ``complete``.
        complete: whether the source ends there.
        most_bytes: stop once there are this many plain bytes.

    Raises:
        UnreadableSource: the given bytes are damaged.
    """
    compression = detect_compression(stored)
    if compression is Compression.NONE:
        return stored, complete
    plain = bytearray()
    try:
        for piece in decompress_stream((stored,), compression, limits=_ANY_SIZE):
            plain += piece
            if len(plain) >= most_bytes:
                return bytes(plain), False
    except UnreadableSource as error:
        # An incomplete source is expected to be truncated.
        if complete or error.reason != QuarantineReason.TRUNCATED:
            raise
    return bytes(plain), complete


def _pass_through(source: Input) -> Iterator[bytes]:
    for chunk in source.pieces():
        if len(chunk) <= PIECE_BYTES:
            yield chunk
            continue
        view = memoryview(chunk)
        for at in range(0, len(chunk), PIECE_BYTES):
            yield bytes(view[at : at + PIECE_BYTES])


_DECODERS: dict[Compression, Callable[[Input], Iterator[bytes]]] = {
    Compression.NONE: _pass_through,
    Compression.GZIP: gunzip,
    Compression.ZSTD: unzstd,
}
