"""Outputs made of their sources' own members of gzip or frames of zstd, and which these are."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

import zstandard
from isal import isal_zlib

from compactor.codecs.codecs import Limits, decompress_stream
from compactor.codecs.decoders import is_one_frame
from compactor.formats.framing import Framed
from compactor.log.entries import Output
from compactor.log.manifest import ManifestRow
from compactor.log.slices import SliceFacts, facts_of
from compactor.model import Compression
from compactor.outputs.plain import PlainContent
from compactor.outputs.ranges import MOST_RANGES, stored_bytes
from compactor.outputs.slices import SliceReader, require_equal
from compactor.ports import ObjectStore
from compactor.sizes import MIB

# RFC 1952: CRC32 of the content and its size modulo 2**32, both little-endian.
_TRAILER_BYTES = 8
_SIZE_MODULO = 1 << 32
# RFC 8878 asks no more of readers, and some refuse what needs more.
_MOST_WINDOW = 8 * MIB


def is_member_of(framed: Framed, facts: SliceFacts, content: PlainContent, stored: bytes) -> bool:
    """Whether a source, as it is stored, is one member or frame, and what the output needs of it.

    One of several, with padding or skippable frames around it, is not: readers differ in what they
    make of these.

    Args:
        framed: its slice of the output, and what is to be before that.
        facts: what was done to its content.
        content: its plain bytes.
        stored: the bytes that were decompressed to these, as they are stored.
    """
    if framed.separator or not content.complete or not _is_unchanged(facts):
        return False
    if content.compression is Compression.ZSTD:
        return is_one_frame(stored) and has_usual_window(stored, content.compression)
    return content.compression is Compression.GZIP and ends_like_a_member(content, stored)


def is_unchanged(framed: Framed) -> bool:
    """Whether nothing of a source was left out or edited, and nothing put before it."""
    return not framed.separator and _is_unchanged(facts_of(framed))


def _is_unchanged(facts: SliceFacts) -> bool:
    if facts.dropped_prefix or facts.dropped_suffix or facts.edits:
        return False
    return facts.newlines_stand_for is None


def ends_like_a_member(content: PlainContent, stored: bytes) -> bool:
    """Whether a source ends with CRC32 and size of its content, as one gzip member does.

    A zstd frame may have no checksum. It needs none here: these very bytes were decompressed to
    what was counted, and the CRC32 of that is in the manifest.

    Args:
        content: all of which was counted.
        stored: its last bytes as stored, 8 at least.
    """
    if content.compression is not Compression.GZIP:
        return True
    crc32 = content.crc32.to_bytes(4, "little")
    size = (content.size % _SIZE_MODULO).to_bytes(4, "little")
    return stored[-_TRAILER_BYTES:] == crc32 + size


def has_usual_window(stored: bytes, compression: Compression) -> bool:
    """Whether a source that begins with a frame asks readers for no more memory than they have.

    Args:
        stored: its bytes as stored, the first 18 at least.
        compression: of these.
    """
    if compression is not Compression.ZSTD:
        return True
    return zstandard.get_frame_parameters(stored).window_size <= _MOST_WINDOW


def restored(
    output: Output, rows: Sequence[ManifestRow], store: ObjectStore
) -> Iterator[tuple[ManifestRow, Iterator[bytes]]]:
    """Those sources that are in an output as they were stored, so; each in pieces.

    The pieces of one must be consumed before the next is asked for; the last of them comes once
    all are found to be what was read.

    Args:
        output: that holds them.
        rows: of its manifest, in order; others are passed over.
        store: where it is.

    Raises:
        IntegrityError: while a piece is taken, when the output is gone, or it is not what was read.
    """
    own = [(row, row.stored_at) for row in rows if row.stored_at is not None]
    whole = (
        SliceReader(store.open(output.bucket, output.key), 0) if len(own) > MOST_RANGES else None
    )
    for row, at in own:
        yield row, _one(output, row, at, whole, store)


def _one(
    output: Output, row: ManifestRow, at: int, whole: SliceReader | None, store: ObjectStore
) -> Iterator[bytes]:
    size = row.source.size
    pieces = stored_bytes(output, at, at + size, store) if whole is None else whole.slice(at, size)
    return _checked(output, row, pieces)


def _checked(output: Output, row: ManifestRow, pieces: Iterator[bytes]) -> Iterator[bytes]:
    passed: deque[bytes] = deque()
    size = crc32 = 0

    def passing() -> Iterator[bytes]:
        nonlocal size
        for piece in pieces:
            size += len(piece)
            passed.append(piece)
            yield piece

    for plain in decompress_stream(passing(), output.compression, limits=Limits(None, None)):
        crc32 = isal_zlib.crc32(plain, crc32)
        while len(passed) > 1:
            yield passed.popleft()
    key, source = row.source.key, row.source
    require_equal(f"restored bytes of {key}", size, source.size)
    require_equal(f"CRC32 of {key}", crc32, row.crc32)
    yield from passed
