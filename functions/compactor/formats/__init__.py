"""What sources hold and how they are joined: pure functions of bytes, no store, no settings.

``detect`` tells the format, ``framer_for`` gives what joins sources of one signature, and
``compactor.log.slices`` undoes it. The contract between them is in ``framing``.
"""

from __future__ import annotations

from compactor.errors import InvalidInput
from compactor.formats.characters import Reading
from compactor.formats.cloudtrail import CloudTrailFramer
from compactor.formats.columns import ColumnsFramer
from compactor.formats.detect import Detected, detect
from compactor.formats.framing import Framed, Framer, StreamFraming
from compactor.formats.headed import HeadedFramer
from compactor.formats.lines import LineFramer
from compactor.formats.passing import PassingCheck
from compactor.formats.undelimited import UndelimitedFramer
from compactor.model import Compression, Format, Signature

__all__ = [
    "Detected",
    "Framed",
    "Framer",
    "PassingCheck",
    "Reading",
    "StreamFraming",
    "content_type",
    "detect",
    "extension_for",
    "framer_for",
]

_EXTENSIONS = {
    Format.JSON_LINES: "json",
    Format.TEXT: "log",
    Format.CSV: "csv",
    Format.TSV: "tsv",
    Format.VPC_FLOW: "log",
    Format.CLOUDFRONT: "log",
    Format.CLOUDTRAIL: "json",
    Format.UNDELIMITED_JSON: "json",
    Format.PARQUET: "parquet",
}
_SUFFIXES = {Compression.NONE: "", Compression.GZIP: ".gz", Compression.ZSTD: ".zst"}
_TYPES = {
    Format.JSON_LINES: "application/x-ndjson",
    Format.TEXT: "text/plain",
    Format.CSV: "text/csv",
    Format.TSV: "text/tab-separated-values",
    Format.VPC_FLOW: "text/plain",
    Format.CLOUDFRONT: "text/plain",
    Format.CLOUDTRAIL: "application/json",
    Format.UNDELIMITED_JSON: "application/x-ndjson",
    Format.PARQUET: "application/vnd.apache.parquet",
}
_ENCODED_TYPES = {Compression.GZIP: "application/gzip", Compression.ZSTD: "application/zstd"}


def framer_for(
    signature: Signature,
    *,
    cloudtrail_output: str = "document",
    undelimited_output: str = "lines",
) -> Framer:
    """A framer for one output.

    Args:
        signature: of every source of the output.
        cloudtrail_output: ``document`` (one ``{"Records":[…]}``) or ``lines`` (one record a
            line).
        undelimited_output: ``lines`` (one object a line) or ``as_is`` (bytes untouched).

    Raises:
        InvalidInput: an option has another value.
    """
    trail_lines = _choice("cloudtrail_output", cloudtrail_output, "document", "lines")
    undelimited_as_is = _choice("undelimited_output", undelimited_output, "lines", "as_is")
    match signature.format:
        case Format.CLOUDTRAIL:
            return CloudTrailFramer(lines=trail_lines)
        case Format.UNDELIMITED_JSON:
            return UndelimitedFramer(lines=not undelimited_as_is)
        case Format.CSV | Format.TSV:
            return ColumnsFramer(signature.format, signature.header)
        case Format.VPC_FLOW | Format.CLOUDFRONT:
            return HeadedFramer(signature.header)
        case Format.JSON_LINES | Format.TEXT:
            return LineFramer()
        case Format.PARQUET:
            raise InvalidInput("format", "parquet", "the Spark step for it: its bytes do not join")


def extension_for(format: Format, compression: Compression) -> str:
    """The end of an output's name without its leading dot, such as ``json.gz``."""
    return _EXTENSIONS[format] + _SUFFIXES[compression]


def content_type(format: Format, compression: Compression) -> str:
    """The media type of an output as it is stored."""
    return _ENCODED_TYPES.get(compression, _TYPES[format])


def _choice(field: str, value: str, usual: str, other: str) -> bool:
    """Whether the value is the other one of two."""
    if value not in (usual, other):
        raise InvalidInput(field, value, f"{usual!r} or {other!r}")
    return value == other
