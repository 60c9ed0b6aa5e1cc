"""Infers a table's columns, as Hive types, from a sample of its records. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, assert_never

from compactor.errors import InvalidInput
from compactor.formats import Detected
from compactor.formats.columns import Begin, fields_of, unquoted
from compactor.formats.log_fields import cloudfront_names, flow_names
from compactor.model import Format
from compactor.readers.formats import LINE, Reading, log_of, reading_of
from compactor.settings.settings import Settings

Column = Mapping[str, str]


def no_columns(why: str) -> InvalidInput:
    """Return the error for a table whose columns cannot be inferred."""
    message = (
        f"reader_table: its columns are not known, {why}; make it in the catalog with its columns"
    )
    return InvalidInput("reader_table", None, "a table that is there", message=message)


def _of_records(records: Iterable[str]) -> tuple[Column, ...]:
    """Return the columns of JSON records.

    Raises:
        InvalidInput: none of the records is an object with members.
    """
    from compactor.rows.hive_types import json_columns  # noqa: PLC0415 - only this needs Arrow

    found = json_columns(record.encode() for record in records)
    if not found:
        raise no_columns("no record with members is in the sample")
    return tuple({"name": name, "type": kind} for name, kind in found.items())


def _named(columns: Sequence[Column], reading: Reading) -> tuple[tuple[Column, ...], Reading]:
    """Return columns with names that engines accept, and a SerDe that maps them."""
    named: list[Column] = []
    parameters = dict(reading.parameters)
    for column, one in zip(columns, _strings(each["name"] for each in columns), strict=True):
        named.append({"name": one["name"], "type": column["type"]})
        if one["name"] != column["name"]:
            parameters[f"mapping.{one['name']}"] = column["name"]
    return tuple(named), replace(reading, parameters=parameters)


def found_in(
    found: Detected, samples: Sequence[bytes], settings: Settings, *, lines: bool
) -> tuple[tuple[Column, ...], Reading]:
    """Infer the columns, and how engines read them, from the first bytes of a few objects.

    Args:
        found: the detected format; not Parquet, whose columns are in its footers.
        samples: decompressed bytes; the last line of each may be incomplete.
        settings: of the runs.
        lines: records of documents are written one per line.

    Raises:
        InvalidInput: no columns were found, or no engine reads such objects as rows.
    """
    format = found.format
    sampled = [line for one in samples for line in _whole_lines(one)]
    if format in (Format.CSV, Format.TSV):
        return _delimited(sampled, found, settings)
    line = sampled[0] if sampled else ""
    log = log_of(sampled)
    reading = reading_of(format, settings, lines=lines, log=log)
    match format:
        case Format.VPC_FLOW:
            return _strings(flow_names(line)), reading
        case Format.CLOUDFRONT:
            return _strings(cloudfront_names(sampled)), reading
        case Format.TEXT:
            return _strings(log.names if log else (LINE,)), reading
        case Format.PARQUET:
            raise AssertionError("the columns of Parquet are in its footers")
        case (
            Format.JSON_LINES
            | Format.UNDELIMITED_JSON
            | Format.JSON_ARRAY
            | Format.CLOUDTRAIL
            | Format.JSON_LIST
        ):
            records = _documents(samples) if "CloudTrail" in reading.input_format else sampled
            return _named(_of_records(records), reading)
        case _:
            assert_never(format)


def _whole_lines(sample: bytes) -> list[str]:
    text = sample.decode("utf-8", "replace").removeprefix("\ufeff")
    lines = text.split("\n")
    kept = lines if len(lines) == 1 else lines[:-1]
    return [line.removesuffix("\r") for line in kept if line.strip()]


def _documents(samples: Sequence[bytes]) -> list[str]:
    """Return the complete records of CloudTrail documents in the samples."""
    decoder, found = json.JSONDecoder(), []
    for sample in samples:
        text = sample.decode("utf-8", "replace")
        at = text.find("[") + 1
        while at > 0 and (at := _next_brace(text, at)) > 0:
            try:
                _, end = decoder.raw_decode(text, at)
            except (ValueError, RecursionError):
                break
            found.append(text[at:end])
            at = end
    return found


def _next_brace(text: str, at: int) -> int:
    match = re.compile(r"[\s,]*(?=\{)").match(text, at)
    return match.end() if match else 0


def _delimited(
    lines: Sequence[str], found: Detected, settings: Settings
) -> tuple[tuple[Column, ...], Reading]:
    if not lines:
        raise no_columns("the sample is empty")
    begin = Begin.of(found)
    if begin.dialect.backslash or b"\n" in begin.header:
        raise no_columns("engines read neither a header over several lines nor backslashes")
    delimiter = begin.dialect.delimiter.decode()
    quoted = begin.dialect.quotes and any('"' in line for line in lines)
    header = bool(found.header)
    names = [f"column{number}" for number in range(1, begin.columns + 1)]
    if header:
        fields = fields_of(begin.header, begin.dialect)
        try:
            names = [unquoted(field, begin.dialect) for field in fields]
        except UnicodeDecodeError:
            raise no_columns("the header is not UTF-8") from None
    reading = reading_of(
        found.format, settings, delimiter=delimiter, header_lines=int(header), quoted=quoted
    )
    return _strings(names), reading


def _strings(names: Iterable[str]) -> tuple[Column, ...]:
    """Return string columns: with narrower types, engines silently turn misfits into null."""
    found: dict[str, Any] = {}
    for number, name in enumerate(names, 1):
        plain = re.sub(r"[^a-z0-9_]+", "_", name.strip().lower()).strip("_")
        unique = plain if plain and plain not in found else f"{plain or 'column'}{number}"
        found[unique] = {"name": unique, "type": "string"}
    if not found:
        raise no_columns("the sample has no line with their names")
    return tuple(found.values())
