"""All formats, in the order in which they are tried. A new format is a file and a line here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from compactor.formats import (
    cloudfront,
    cloudtrail,
    columns,
    json_arrays,
    json_lines,
    listed,
    parquet,
    text,
    undelimited,
    vpc_flow,
)
from compactor.formats.spec import FormatSpec, Recognise
from compactor.model import Format

SPECS: tuple[FormatSpec, ...] = (
    # Before CloudTrail, whose documents begin alike but have one field.
    listed.SPEC,
    cloudtrail.SPEC,
    json_lines.SPEC,
    undelimited.SPEC,
    cloudfront.SPEC,
    vpc_flow.SPEC,
    columns.CSV,
    columns.TSV,
    json_arrays.SPEC,
    parquet.SPEC,
    # Tried last: what no other format accepts may be lines.
    text.SPEC,
)
_OF: Mapping[Format, FormatSpec] = MappingProxyType({spec.format: spec for spec in SPECS})


def spec_of(format: Format) -> FormatSpec:
    """Return the description of a format."""
    return _OF[format]


def _asked(first: bytes) -> tuple[Recognise, ...]:
    # Sources that begin with a brace are only tried as JSON.
    begins = (first,) if first == b"{" else (b"", first)
    return tuple(one.recognise for one in SPECS if one.recognise and one.begins in begins)


#: The formats to try, in order, by the first byte of a source that is not blank.
BY_FIRST_BYTE = tuple(_asked(bytes([byte])) for byte in range(256))
