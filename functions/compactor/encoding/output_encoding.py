"""How outputs are written, and how large they are meant to be."""

from __future__ import annotations

from functools import cache

from compactor.model import Compression, OutputForm
from compactor.settings.settings import Settings
from compactor.sizes import MIB

COMPRESSED_TARGET_BYTES = 128 * MIB
# Readers split plain lines wherever they like, so that larger outputs are read in parallel, too.
PLAIN_TARGET_BYTES = 1024 * MIB
# Log data shrinks to between a third and a tenth under gzip and zstd; a fixed factor keeps
# the packing, and so the group id, independent of what was measured elsewhere.
ASSUMED_RATIO = 5


def output_form(settings: Settings) -> OutputForm:
    """How the outputs of a run are written.

    Parquet is not encoded as a whole; of what it holds the sizes are those of encoded bytes.
    """
    compression = "zstd" if settings.columnar else settings.compression
    return _output_form(compression, lines=settings.documents == "lines")


@cache
def _output_form(compression: str, *, lines: bool) -> OutputForm:
    return OutputForm(None if compression == "same" else Compression(compression), lines)


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
