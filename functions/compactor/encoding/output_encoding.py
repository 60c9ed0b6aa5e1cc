"""How outputs are compressed, and how large they are meant to be."""

from __future__ import annotations

from compactor.model import Compression
from compactor.settings.settings import Settings
from compactor.sizes import MIB

COMPRESSED_TARGET_BYTES = 128 * MIB
# Readers split plain lines wherever they like, so that larger outputs are read in parallel, too.
PLAIN_TARGET_BYTES = 1024 * MIB
# Log data shrinks to between a third and a tenth under gzip and zstd; a fixed factor keeps
# the packing, and so the group id, independent of what was measured elsewhere.
ASSUMED_RATIO = 5


def output_compression(settings: Settings, source: Compression) -> Compression:
    """How an output is encoded, given how its sources are.

    Parquet is not encoded as a whole; of what it holds the sizes are those of encoded bytes.
    """
    if settings.columnar:
        return Compression.ZSTD
    return source if settings.compression == "same" else Compression(settings.compression)


def target_bytes(settings: Settings, output: Compression) -> int:
    """Wanted size of an output in its encoded form, bytes."""
    if settings.target_bytes is not None:
        return settings.target_bytes
    return PLAIN_TARGET_BYTES if output is Compression.NONE else COMPRESSED_TARGET_BYTES


def stored_bytes(size: int, source: Compression, output: Compression) -> float:
    """What so many stored bytes of sources are expected to be in an output, in its encoded form."""
    if source is Compression.NONE and output is not Compression.NONE:
        return size / ASSUMED_RATIO
    if source is not Compression.NONE and output is Compression.NONE:
        return size * ASSUMED_RATIO
    return size
