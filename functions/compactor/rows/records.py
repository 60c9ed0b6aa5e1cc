"""Splits sources into records, each known to be one whole record, in blocks of some megabytes.

The bytes are decompressed, detected and split by the code that joins bytes. What makes only one
record unfit, such as another number of fields, makes it a dead letter here, not its source.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from compactor.errors import UnreadableSource
from compactor.formats import SPECS, Detected, spec_of
from compactor.formats.columns import (
    Begin,
    Dialect,
    fields_of,
    records_of,
    repeated_header,
    unquoted,
)
from compactor.formats.lines import BOM
from compactor.formats.spec import malformed
from compactor.model import Format, QuarantineReason
from compactor.outputs import plain_content as plain
from compactor.outputs.detection import Detector
from compactor.rows.log_records import log_records
from compactor.settings.settings import Settings
from compactor.sizes import MIB

#: Records of about this many bytes are converted together.
BLOCK_BYTES = 4 * MIB
#: A source with a longer record is quarantined. As values of Python a record takes up to 50 times
#: its length.
LONGEST_RECORD_BYTES = 8 * MIB
JSON = "json"
_KINDS = {spec.format: spec.rows for spec in SPECS if spec.rows not in {"", "parquet"}}


class Kind(NamedTuple):
    """Records of one shape: JSON objects, or records of the same columns.

    Attributes:
        kind: ``json``, ``tsv``, ``csv``, ``vpc_flow``, ``cloudfront``, or the name of the form of
            an access log.
        header: names of the columns, but for JSON.
        dialect: of CSV and TSV.
    """

    kind: str
    header: tuple[str, ...] = ()
    dialect: Dialect = Dialect()


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
    found = _format_of(content, key, settings, detect)
    if found is None:
        return
    kind = _KINDS.get(found.format)
    if kind is None:
        detail = f"{found.format} has no named fields that could become columns"
        raise UnreadableSource(QuarantineReason.UNKNOWN_FORMAT, detail)
    longest = min(settings.limits.max_document_bytes, LONGEST_RECORD_BYTES)
    if kind == JSON:
        yield from _blocks(Kind(JSON), _json_records(content, found, settings, longest))
        return
    if kind not in {"csv", "tsv"}:
        name, columns, records = log_records(found, _single(_lines(content.chunks(), longest)))
        yield from _blocks(Kind(name, columns), records)
        return
    begin = Begin.of(found)
    records = _column_records(content, begin, longest)
    if found.header:
        names = tuple(_names(found.header, begin.dialect))
    else:
        names = tuple(_names_by_place(begin, columns))
    yield from _blocks(Kind(kind, names, begin.dialect), records)


def _format_of(
    content: plain.PlainContent, key: str, settings: Settings, detect: Detector
) -> Detected | None:
    declaration = settings.declared(key)
    if declaration is not None and declaration.format is Format.JSON_LINES:
        # Lines that are no objects become dead-letter records.
        if b"\0" in content.head:
            raise malformed("it has NUL bytes, and is no JSON, as formats declares")
        return Detected(Format.JSON_LINES)
    return detect(content.head, key, content.complete)


def _blocks(kind: Kind, records: Iterator[bytes]) -> Iterator[Block]:
    """Yield records in blocks.

    Raises:
        UnreadableSource: a record is too long.
    """
    held: list[bytes] = []
    size = first = 0
    for record in records:
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


def _column_records(content: plain.PlainContent, begin: Begin, longest: int) -> Iterator[bytes]:
    """Yield the records below the header.

    Raises:
        UnreadableSource: the header occurs again among them, or a record does not end.
    """
    pieces = _without_bom(content.chunks())
    records = records_of(pieces, begin.dialect, longest)
    if begin.header:
        next(records, None)
    for record in records:
        if record == begin.header:
            raise repeated_header(begin)
        yield record


def _without_bom(chunks: Iterable[bytes]) -> Iterator[bytes]:
    first = True
    for chunk in chunks:
        yield chunk.removeprefix(BOM) if first else chunk
        first = False


def _names_by_place(begin: Begin, columns: Sequence[str] | None) -> list[str]:
    """Name the columns of records without a header: by ``parquet_schema``, or as Spark does."""
    if columns is None:
        return [f"_c{number}" for number in range(begin.columns)]
    if begin.columns != len(columns):
        seen = f"its first record has {begin.columns} fields"
        detail = f"{seen}, parquet_schema has {len(columns)} columns"
        raise UnreadableSource(QuarantineReason.MALFORMED, detail)
    return list(columns)


def _json_records(
    content: plain.PlainContent, found: Detected, settings: Settings, longest: int
) -> Iterator[bytes]:
    framed = spec_of(found.format).records
    if framed is not None:
        pieces = framed().frame(content.whole(settings.limits.max_document_bytes)).slice
        return _single(_lines(pieces, longest))
    return _single(_lines(content.chunks(), longest))


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


def _names(header: bytes, dialect: Dialect) -> list[str]:
    try:
        names = [unquoted(field, dialect).strip() for field in fields_of(header, dialect)]
    except UnicodeDecodeError:
        detail = "its header is not UTF-8"
        raise UnreadableSource(QuarantineReason.MALFORMED, detail) from None
    seen: set[str] = set()
    for name in names:
        if not name or name.lower() in seen:
            detail = (
                f"its header names the column {name!r} twice"
                if name
                else "a column of its header has no name"
            )
            raise UnreadableSource(QuarantineReason.MALFORMED, detail)
        seen.add(name.lower())
    return names
