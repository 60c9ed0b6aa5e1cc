"""Splits sources into records, each known to be one whole record, in blocks of some megabytes.

The bytes are decompressed, detected and split by the code that joins bytes, so a source is refused
as rows for the same reasons as it is refused as bytes.
"""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from compactor.errors import UnreadableSource
from compactor.formats import SPECS, Detected, spec_of
from compactor.formats.delimited import DELIMITERS, ends_within_quotes, fields_pattern
from compactor.formats.first_record import Begin, ambiguous, delimiters_of
from compactor.formats.lines import BOM
from compactor.model import Format, QuarantineReason
from compactor.outputs import plain_content as plain
from compactor.outputs.detection import Detector
from compactor.settings.settings import Settings
from compactor.sizes import MIB

#: Records of about this many bytes are converted together.
BLOCK_BYTES = 4 * MIB
#: A source with a longer record is quarantined. As values of Python a record takes up to 50 times
#: its length.
LONGEST_RECORD_BYTES = 8 * MIB
JSON, CSV, TSV = "json", "csv", "tsv"
_KINDS = {spec.format: spec.rows for spec in SPECS if spec.rows in {JSON, CSV, TSV}}
# A quote opens a field only at its start.
_FIELD = rb'(?:"(?:[^"]++|"")*+"[^"%b]*+|[^"%b][^%b]*+|)'
# Matches a line whose quoted fields are all closed.
_CLOSED = {
    one: re.compile((_FIELD + rb"(?:%b" + _FIELD + rb")*+") % ((re.escape(one),) * 7), re.DOTALL)
    for one in DELIMITERS
}
# Matches a line whose last field is quoted and goes on.
_OPEN = {
    one: re.compile(
        (rb"(?:" + _FIELD + rb'%b)*+"(?:[^"]++|"")*+') % ((re.escape(one),) * 4), re.DOTALL
    )
    for one in DELIMITERS
}


class Kind(NamedTuple):
    """Records of one shape: JSON objects, or CSV and TSV records under one header.

    Attributes:
        kind: ``json``, ``tsv`` or ``csv``, the last followed by the delimiter if it is not the
            usual one.
        header: names of the columns, for CSV and TSV.
    """

    kind: str
    header: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive records of one source.

    Attributes:
        kind: of the records.
        first: number of records of the source before this block.
        records: their bytes, without line ends.
    """

    kind: Kind
    first: int
    records: Sequence[bytes]


def blocks_of(
    content: plain.PlainContent,
    key: str,
    settings: Settings,
    detect: Detector,
    columns: Sequence[str] | None = None,
) -> Iterator[Block]:
    """Yield the records of one source in blocks; none for a source without records.

    Args:
        content: of the source.
        key: of the source.
        settings: of the run.
        detect: detects its format.
        columns: the columns of ``parquet_schema``, in order; None if it is not set.

    Raises:
        UnreadableSource: the content is damaged, or of a format that has no named fields.
            Some blocks may have been yielded before.
    """
    found = detect(content.head, key, content.complete)
    if found is None:
        return
    kind = _KINDS.get(found.format)
    if kind is None:
        detail = f"{found.format} has no named fields that could become columns"
        raise UnreadableSource(QuarantineReason.UNKNOWN_FORMAT, detail)
    records = _records(content, found, settings)
    if kind == JSON:
        yield from _blocks(Kind(JSON), b"", records)
        return
    delimiter = _delimiter(content, found)
    if found.header:
        header = _names(found.header, delimiter)
        next(records, None)
    else:
        records, header = _named_by_place(records, delimiter, settings, columns)
    name = kind if delimiter == delimiter_of(kind) else kind + delimiter.decode()
    yield from _blocks(Kind(name, tuple(header)), found.header, records)


def _blocks(kind: Kind, header: bytes, records: Iterator[bytes]) -> Iterator[Block]:
    """Yield records in blocks.

    Raises:
        UnreadableSource: the header occurs again among the records, or one of these is too long.
    """
    held: list[bytes] = []
    size = first = 0
    for record in records:
        if record == header and header:
            raise ambiguous("its header occurs again among its records", header)
        if len(record) > LONGEST_RECORD_BYTES:
            detail = f"a record exceeds {LONGEST_RECORD_BYTES:,} bytes"
            raise UnreadableSource(QuarantineReason.TOO_LARGE, detail)
        held.append(record)
        size += len(record)
        if size >= BLOCK_BYTES:
            yield Block(kind, first, held)
            first += len(held)
            held, size = [], 0
    if held:
        yield Block(kind, first, held)


def delimiter_of(kind: str) -> bytes:
    """Return the field delimiter of records of a kind."""
    return kind[len(CSV) :].encode() or (b"\t" if kind == TSV else b",")


def _delimiter(content: plain.PlainContent, found: Detected) -> bytes:
    """Return the detected delimiter.

    If ``csv_header`` declares the first record a row, nothing was detected: then it is the
    delimiter that is most frequent in the first line.
    """
    begin = Begin.of(found.header, found.dialect)
    if begin.header or begin.columns:
        return begin.delimiter
    line = content.head[: content.head.find(b"\n")]
    return max(delimiters_of(line, found.format), key=line.count)


def _named_by_place(
    records: Iterator[bytes],
    delimiter: bytes,
    settings: Settings,
    columns: Sequence[str] | None,
) -> tuple[Iterator[bytes], list[str]]:
    """Name the columns of records without a header: by ``parquet_schema``, or as Spark does."""
    first = next(records, b"")
    width = len(fields_pattern(delimiter).findall(first))
    everything = itertools.chain([first] if first else [], records)
    if columns is not None:
        if width != len(columns):
            seen = f"its first record has {width} fields, parquet_schema has {len(columns)} columns"
            raise ambiguous(seen, first)
        return everything, list(columns)
    if settings.csv_header != "absent":
        remedy = 'set parquet_schema, or csv_header to "absent" for columns named _c0, _c1, ...'
        raise ambiguous("its columns have no names", first, remedy)
    return everything, [f"_c{number}" for number in range(width)]


def _records(content: plain.PlainContent, found: Detected, settings: Settings) -> Iterator[bytes]:
    most = settings.limits.max_document_bytes
    longest = min(most, LONGEST_RECORD_BYTES)
    framed = spec_of(found.format).records
    if framed is not None:
        pieces = framed().frame(content.whole(most)).slice
        return _single(_lines(pieces, longest))
    lines = _lines(content.chunks(), longest)
    if found.format is Format.JSON_LINES:
        return _single(lines)
    if found.format is Format.TSV:
        return _unquoted(_single(lines))
    return _quoted(lines, _delimiter(content, found), longest)


def _lines(chunks: Iterable[bytes | memoryview], longest: int) -> Iterator[bytes]:
    """Yield lines without newlines, and without a BOM before the first."""
    held: bytes | None = None
    for chunk in chunks:
        joined = bytes(chunk).removeprefix(BOM) if held is None else held + chunk
        *lines, held = joined.split(b"\n")
        yield from lines
        if len(held) > longest:
            detail = f"a line exceeds {longest:,} bytes"
            raise UnreadableSource(QuarantineReason.TOO_LARGE, detail)
    if held:
        yield held


def _single(lines: Iterator[bytes]) -> Iterator[bytes]:
    """Yield each line that is not blank as a record."""
    for line in lines:
        if line and not line.isspace():
            yield line.removesuffix(b"\r")


def _unquoted(lines: Iterator[bytes]) -> Iterator[bytes]:
    """Yield TSV records, where a quote is an ordinary character, though not to every reader."""
    for line in lines:
        if b'"' in line and ends_within_quotes(line, b"\t"):
            detail = f"a quoted field would go on after the line {line[:40]!r}"
            raise UnreadableSource(QuarantineReason.OPEN_QUOTE, detail)
        yield line


def _quoted(lines: Iterator[bytes], delimiter: bytes, longest: int) -> Iterator[bytes]:
    """Yield records whose quoted fields may contain line breaks."""
    held: list[bytes] = []
    size = 0
    for line in lines:
        if not held and (not line or line.isspace()):
            continue
        # A line that an open field goes on in is read as if it were the field's first one.
        is_whole = _is_whole(b'"' + line if held else line, delimiter)
        held.append(line)
        size += len(line) + 1
        if is_whole:
            yield b"\n".join(held).removesuffix(b"\r")
            held, size = [], 0
        elif is_whole is None:
            break
        elif size > longest:
            detail = f"a record exceeds {longest:,} bytes, or a quote in it is never closed"
            raise UnreadableSource(QuarantineReason.TOO_LARGE, detail)
    if held:
        raise UnreadableSource(QuarantineReason.OPEN_QUOTE, "it ends within a quoted field")


def _is_whole(line: bytes, delimiter: bytes) -> bool | None:
    """Return whether no quoted field of a line goes on in the next; None for other quotes."""
    if b'"' not in line or _CLOSED[delimiter].fullmatch(line):
        return True
    return False if _OPEN[delimiter].fullmatch(line) else None


def _names(header: bytes, delimiter: bytes) -> list[str]:
    try:
        text = header.decode()
    except UnicodeDecodeError:
        detail = "its header is not UTF-8"
        raise UnreadableSource(QuarantineReason.MALFORMED, detail) from None
    fields = next(csv.reader([text], delimiter=delimiter.decode()))
    names = [name.strip() for name in fields]
    seen: set[str] = set()
    for name in names:
        if not name or name.lower() in seen:
            detail = f"its header names the column {name!r} twice" if name else "a nameless column"
            raise UnreadableSource(QuarantineReason.MALFORMED, detail)
        seen.add(name.lower())
    return names
