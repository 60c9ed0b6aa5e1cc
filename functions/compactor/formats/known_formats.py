"""All formats, in the order in which they are tried: a new one is a file and a line here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from compactor.formats import (
    cloudfront,
    cloudtrail,
    json_arrays,
    json_lines,
    listed,
    parquet,
    separated_values,
    text,
    undelimited,
    vpc_flow,
)
from compactor.formats.spec import FormatSpec, Recognise
from compactor.model import Format

SPECS: tuple[FormatSpec, ...] = (
    # Before CloudTrail, whose documents begin alike and have one field.
    listed.SPEC,
    cloudtrail.SPEC,
    json_lines.SPEC,
    undelimited.SPEC,
    cloudfront.SPEC,
    vpc_flow.SPEC,
    separated_values.CSV,
    separated_values.TSV,
    json_arrays.SPEC,
    # Last of those that are asked: what nothing else is may be lines.
    text.SPEC,
    parquet.SPEC,
)
_OF: Mapping[Format, FormatSpec] = MappingProxyType({spec.format: spec for spec in SPECS})


def spec_of(format: Format) -> FormatSpec:
    """What is known of a format."""
    return _OF[format]


def _asked(first: bytes) -> tuple[Recognise, ...]:
    # What begins with a brace is JSON or nothing.
    begins = (first,) if first == b"{" else (b"", first)
    return tuple(one.recognise for one in SPECS if one.recognise and one.begins in begins)


#: What is asked of a source, in order, by its first byte that is no blank.
BY_FIRST_BYTE = tuple(_asked(bytes([byte])) for byte in range(256))
