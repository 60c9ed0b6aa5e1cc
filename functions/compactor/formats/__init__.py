"""What sources hold and how they are joined: pure functions of bytes, no store, no settings.

``detect`` finds the format, ``framer_for`` gives what joins sources of one signature, and
``compactor.log.slice_facts`` undoes it. The contract between them is in ``framing``. What the
project knows of each format is its ``FormatSpec``, in a file of its own; ``known_formats`` lists
them.
"""

from __future__ import annotations

from compactor.formats.characters import Reading
from compactor.formats.detect import Detected, detect
from compactor.formats.framing import Framed, Framer, StreamFraming
from compactor.formats.known_formats import SPECS, spec_of
from compactor.formats.passing import PassingCheck
from compactor.formats.spec import Decide, FormatSpec
from compactor.model import Compression, Format, Signature

__all__ = [
    "SPECS",
    "Decide",
    "Detected",
    "FormatSpec",
    "Framed",
    "Framer",
    "PassingCheck",
    "Reading",
    "StreamFraming",
    "content_type",
    "detect",
    "extension_for",
    "framer_for",
    "spec_of",
]

_SUFFIXES = {Compression.NONE: "", Compression.GZIP: ".gz", Compression.ZSTD: ".zst"}
_ENCODED_TYPES = {Compression.GZIP: "application/gzip", Compression.ZSTD: "application/zstd"}


def framer_for(signature: Signature, *, lines: bool = False) -> Framer:
    """A framer for one output.

    Args:
        signature: of every source of the output.
        lines: write the records of JSON documents one per line (``FormatSpec.lines``).

    Raises:
        InvalidInput: nothing joins the bytes of this format.
    """
    return spec_of(signature.format).framer(signature, lines)


def extension_for(format: Format, compression: Compression) -> str:
    """The end of an output's name without its leading dot, such as ``json.gz``."""
    return spec_of(format).extension + _SUFFIXES[compression]


def content_type(format: Format, compression: Compression) -> str:
    """The media type of an output as it is stored."""
    return _ENCODED_TYPES.get(compression, spec_of(format).media_type)
