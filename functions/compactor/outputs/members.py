"""Outputs made of their sources' own members of gzip or frames of zstd, and which these are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import zstandard
from isal import isal_zlib

from compactor.codecs.codecs import Limits, decompress_stream
from compactor.codecs.decoders import is_one_frame
from compactor.formats.framing import Framed
from compactor.log.entries import Output
from compactor.log.manifest import ManifestRow
from compactor.log.slices import SliceFacts
from compactor.model import Compression, Signature
from compactor.outputs.plain import PlainContent
from compactor.outputs.ranges import MOST_RANGES, stored_bytes
from compactor.outputs.slices import SliceReader, require_equal
from compactor.planning.packing import output_compression
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings
from compactor.sizes import MIB

# RFC 1952: CRC32 of the content and its size modulo 2**32, both little-endian.
_TRAILER_BYTES = 8
_SIZE_MODULO = 1 << 32
# RFC 8878 asks no more of readers, and some refuse what needs more.
_MOST_WINDOW = 8 * MIB


def writes_members(settings: Settings, signature: Signature) -> bool:
    """Whether the output of such sources is made of members of gzip, or of frames of zstd."""
    encoded = output_compression(settings, signature.compression)
    if encoded is Compression.GZIP:
        return settings.gzip_output == "members"
    return settings.zstd_output == "frames" and encoded is Compression.ZSTD


def takes_stored(settings: Settings, signature: Signature) -> bool:
    """Whether such sources may go into their output as they are stored."""
    same = output_compression(settings, signature.compression) is signature.compression
    return same and writes_members(settings, signature)


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
    if framed.separator or not content.complete:
        return False
    if facts.dropped_prefix or facts.dropped_suffix or facts.edits:
        return False
    if facts.newlines_stand_for is not None:
        return False
    if content.compression is Compression.ZSTD:
        return _is_frame(stored)
    return content.compression is Compression.GZIP and _is_member(content, stored)


def _is_member(content: PlainContent, stored: bytes) -> bool:
    crc32 = content.crc32.to_bytes(4, "little")
    size = (content.size % _SIZE_MODULO).to_bytes(4, "little")
    return stored[-_TRAILER_BYTES:] == crc32 + size


def _is_frame(stored: bytes) -> bool:
    """Whether what was decompressed is one frame that every reader takes.

    It may have no checksum. It needs none here: these very bytes were decompressed to what was
    counted, and the CRC32 of that is in the manifest.
    """
    if not is_one_frame(stored):
        return False
    return zstandard.get_frame_parameters(stored).window_size <= _MOST_WINDOW


def restored(
    output: Output, rows: Sequence[ManifestRow], store: ObjectStore
) -> Iterator[tuple[ManifestRow, Iterator[bytes]]]:
    """Those sources that are in an output as they were stored, so; each in one piece.

    They were read whole, and so are small enough for it. The piece of one must be consumed before
    the next is asked for.

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
    stored = b"".join(pieces)
    _check(output, row, stored)
    yield stored


def _check(output: Output, row: ManifestRow, stored: bytes) -> None:
    key, source = row.source.key, row.source
    require_equal(f"restored bytes of {key}", len(stored), source.size)
    crc32 = 0
    for piece in decompress_stream((stored,), output.compression, limits=Limits(None, None)):
        crc32 = isal_zlib.crc32(piece, crc32)
    require_equal(f"CRC32 of {key}", crc32, row.crc32)
