"""Infers a table's columns, as Hive types, from a sample of its records. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from compactor.errors import InvalidInput
from compactor.formats import Detected
from compactor.formats.columns import Begin, fields_of, unquoted
from compactor.model import Format
from compactor.readers.formats import LINE, Reading, log_of, reading_of
from compactor.settings.settings import Settings

Column = Mapping[str, str]
_BIGINT, _DOUBLE, _BOOLEAN, _STRING = "bigint", "double", "boolean", "string"
_LARGEST = 1 << 63
# Glue limits a type to 131,072 characters; anything nested deeper than this becomes a string.
_DEEPEST = 8
_PLAIN = re.compile(r"[a-z0-9_]+")


class _Kind:
    """The types seen for one value, and those of its members or items."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.members: dict[str, _Kind] = {}
        self.items: _Kind | None = None

    def see(self, value: object, depth: int = 0) -> None:
        if value is None:
            return
        if isinstance(value, dict | list) and depth >= _DEEPEST:
            self.names.add(_STRING)
        elif isinstance(value, dict):
            self.names.add("struct")
            for name, one in value.items():
                self.members.setdefault(name.lower(), _Kind()).see(one, depth + 1)
        elif isinstance(value, list):
            self.names.add("array")
            self.items = self.items or _Kind()
            for one in value:
                self.items.see(one, depth + 1)
        else:
            self.names.add(_scalar(value))

    @property
    def text(self) -> str:
        """The Hive type; string if several types, or only nulls, were seen."""
        if self.names == {"struct"} and self._has_names:
            members = (f"{name}:{kind.text}" for name, kind in sorted(self.members.items()))
            return f"struct<{','.join(members)}>"
        if self.names == {"array"} and self.items is not None:
            return f"array<{self.items.text}>"
        if self.names == {_BIGINT, _DOUBLE}:
            return _DOUBLE
        only = next(iter(self.names)) if len(self.names) == 1 else _STRING
        return _STRING if only in ("struct", "array") else only

    @property
    def _has_names(self) -> bool:
        return bool(self.members) and all(map(_PLAIN.fullmatch, self.members))


def _scalar(value: object) -> str:
    if isinstance(value, bool):
        return _BOOLEAN
    if isinstance(value, int):
        return _BIGINT if -_LARGEST <= value < _LARGEST else _DOUBLE
    return _DOUBLE if isinstance(value, float) else _STRING


def no_columns(why: str) -> InvalidInput:
    """Return the error for a table whose columns cannot be inferred."""
    message = (
        f"reader_table: its columns are not known, {why}; make it in the catalog with its columns"
    )
    return InvalidInput("reader_table", None, "a table that is there", message=message)


def of_records(records: Iterable[object]) -> tuple[Column, ...]:
    """Return the columns of JSON records, in order of first appearance.

    Raises:
        InvalidInput: none of the records is an object with members.
    """
    found = _Kind()
    for record in records:
        if isinstance(record, dict):
            found.see(record)
    if not found.members:
        raise no_columns("no record with members is in the sample")
    return tuple({"name": name, "type": kind.text} for name, kind in found.members.items())


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
    if format is Format.VPC_FLOW:
        return _strings(one.replace("-", "_") for one in line.split()), reading
    if format is Format.CLOUDFRONT:
        return _strings(_cloudfront_names(sampled)), reading
    if format is Format.TEXT:
        return _strings(log.names if log else (LINE,)), reading
    if "CloudTrail" in reading.input_format:
        records = _documents(samples)
    else:
        records = [value for one in sampled if (value := _json(one)) is not None]
    return _named(of_records(records), reading)


def _whole_lines(sample: bytes) -> list[str]:
    text = sample.decode("utf-8", "replace").removeprefix("\ufeff")
    lines = text.split("\n")
    kept = lines if len(lines) == 1 else lines[:-1]
    return [line.removesuffix("\r") for line in kept if line.strip()]


def _json(line: str) -> object | None:
    try:
        found: object = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found


def _documents(samples: Sequence[bytes]) -> list[object]:
    """Return the complete records of CloudTrail documents in the samples."""
    decoder, found = json.JSONDecoder(), []
    for sample in samples:
        text = sample.decode("utf-8", "replace")
        at = text.find("[") + 1
        while at > 0 and (at := _next_brace(text, at)) > 0:
            try:
                record, at = decoder.raw_decode(text, at)
            except (ValueError, RecursionError):
                break
            found.append(record)
    return found


def _next_brace(text: str, at: int) -> int:
    match = re.compile(r"[\s,]*(?=\{)").match(text, at)
    return match.end() if match else 0


def _cloudfront_names(lines: Sequence[str]) -> Iterable[str]:
    fields = next((line for line in lines if line.startswith("#Fields:")), "#Fields:")
    return (re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") for name in fields.split()[1:])


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
        found[unique] = {"name": unique, "type": _STRING}
    if not found:
        raise no_columns("the sample has no line with their names")
    return tuple(found.values())
