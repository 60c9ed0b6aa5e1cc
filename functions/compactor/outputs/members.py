"""Outputs made of their sources' own gzip members: which sources fit in as they are stored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from isal import isal_zlib

from compactor.codecs.codecs import Limits, decompress_stream
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

# RFC 1952: CRC32 of the content and its size modulo 2**32, both little-endian.
_TRAILER_BYTES = 8
_SIZE_MODULO = 1 << 32


def writes_members(settings: Settings, signature: Signature) -> bool:
    """Whether the output of such sources is made of members."""
    encoded = output_compression(settings, signature.compression)
    return settings.gzip_output == "members" and encoded is Compression.GZIP


def is_member_of(framed: Framed, facts: SliceFacts, content: PlainContent, stored: bytes) -> bool:
    """Whether a source, as it is stored, is one gzip member, and what the output needs of it.

    One of several members, or with padding behind it, is not: readers differ in what they make of
    these.

    Args:
        framed: its slice of the output, and what is to be before that.
        facts: what was done to its content.
        content: its plain bytes.
        stored: its bytes as stored.
    """
    if content.compression is not Compression.GZIP or framed.separator:
        return False
    if not content.complete:
        return False
    if facts.dropped_prefix or facts.dropped_suffix or facts.edits:
        return False
    if facts.newlines_stand_for is not None:
        return False
    crc32 = content.crc32.to_bytes(4, "little")
    size = (content.size % _SIZE_MODULO).to_bytes(4, "little")
    return stored[-_TRAILER_BYTES:] == crc32 + size


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
    _check(row, stored)
    yield stored


def _check(row: ManifestRow, stored: bytes) -> None:
    key, source = row.source.key, row.source
    require_equal(f"restored bytes of {key}", len(stored), source.size)
    crc32 = 0
    for piece in decompress_stream((stored,), Compression.GZIP, limits=Limits(None, None)):
        crc32 = isal_zlib.crc32(piece, crc32)
    require_equal(f"CRC32 of {key}", crc32, row.crc32)
