"""The formats of sources and how they are joined: pure functions of bytes, no store, no settings.

``detect`` finds the format, ``framer_for`` returns what joins sources of one signature, and
``compactor.log.manifest`` reverses it. ``framing`` defines the contract between the two. Each
format has a ``FormatSpec`` in its own file; ``known_formats`` lists them.
"""

from __future__ import annotations

from compactor.formats.declaration import Declaration
from compactor.formats.detect import Detected, detect
from compactor.formats.framing import Framed, Framer, StreamFraming
from compactor.formats.known_formats import SPECS, spec_of
from compactor.formats.passing import PassingCheck
from compactor.formats.spec import FormatSpec
from compactor.model import Compression, Format, Signature

__all__ = [
    "SPECS",
    "Declaration",
    "Detected",
    "FormatSpec",
    "Framed",
    "Framer",
    "PassingCheck",
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
    """Return a framer for one output.

    Args:
        signature: the signature of all sources of the output.
        lines: whether to write the records of JSON documents one per line (``FormatSpec.lines``).

    Raises:
        InvalidInput: sources of this format cannot be joined.
    """
    return spec_of(signature.format).framer(signature, lines)


def extension_for(format: Format, compression: Compression) -> str:
    """Return the extension of an output without its leading dot, such as ``json.gz``."""
    return spec_of(format).extension + _SUFFIXES[compression]


def content_type(format: Format, compression: Compression) -> str:
    """Return the media type of a stored output."""
    return _ENCODED_TYPES.get(compression, spec_of(format).media_type)
