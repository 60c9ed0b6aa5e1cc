"""Runs on the executors: splits sources into records, each checked to be one whole record.

The store reads the bytes with If-Match. They are decompressed, detected and split by the core's
code, so that Spark sees only single JSON objects and single CSV records.
"""

from __future__ import annotations

import csv
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from compactor.errors import CompactorError, SourceChanged, UnreadableSource
from compactor.formats import SPECS, Detected, spec_of
from compactor.formats.delimited import DELIMITERS, ends_within_quotes, fields_pattern
from compactor.formats.first_record import Begin, ambiguous, delimiters_of
from compactor.formats.lines import BOM
from compactor.model import Format, QuarantineReason, SourceObject
from compactor.outputs import plain_content as plain
from compactor.outputs.detection import Detector, detector
from compactor.planning.dialects import Dialects
from compactor.ports import ObjectStore, SourceBody
from compactor.settings.settings import Settings

if TYPE_CHECKING:
    from pyspark import Accumulator

# Most bytes of records passed to Spark in one row, to limit a task's memory.
BLOCK_BYTES = 4 * 1024 * 1024
JSON, CSV, TSV = "json", "csv", "tsv"
_KINDS = {spec.format: spec.rows for spec in SPECS if spec.rows in {JSON, CSV, TSV}}
# Matches a record whose quoted fields are all closed; a quote opens a field only at its start.
_CLOSED = {
    one: re.compile(
        rb'(?:"(?:[^"]++|"")*+"[^%b]*+|[^"%b][^%b]*+|)(?:%b(?:"(?:[^"]++|"")*+"[^%b]*+|[^"%b][^%b]*+|))*+'
        % ((re.escape(one),) * 7),
        re.DOTALL,
    )
    for one in DELIMITERS
}


class Block(NamedTuple):
    """One row for Spark: records of one source, or why there are none.

    Attributes:
        source: number of the source in its group.
        block: number of the block in its source.
        kind: ``json``, ``tsv`` or ``csv``, the last followed by the delimiter if it is not the
            usual one; empty for a source without content.
        header: names of the columns, for CSV and TSV.
        records: bytes of the records, without line ends.
        faults: why a record cannot become a row, by its index in ``records``.
        error: class name of the error that ended the source; empty on success.
        reason: why a source is quarantined, or what was found in place of a changed one.
        detail: the error's message.
        first: number of records of the source before this block.
    """

    source: int
    block: int
    kind: str = ""
    header: list[str] | None = None
    records: list[bytes] | None = None
    faults: dict[int, str] | None = None
    error: str = ""
    reason: str = ""
    detail: str = ""
    first: int = 0


#: Spark's types of :class:`Block`.
BLOCK_SCHEMA = (
    "source INT, block INT, kind STRING, header ARRAY<STRING>, records ARRAY<BINARY>,"
    " faults MAP<INT, STRING>, error STRING, reason STRING, detail STRING,"
    " first BIGINT"
)


class _Object(msgspec.Struct, gc=False):
    """Any JSON object; its content is checked and discarded."""


_objects = msgspec.json.Decoder(_Object)


@dataclass(frozen=True)
class RecordReader:
    """Reads numbered sources on an executor; pickled and sent there.

    Attributes:
        columns: the columns of ``parquet_schema``, in order; None if it is not set.
    """

    settings: Settings
    open_store: Callable[[], ObjectStore]
    requests: Accumulator[Counter[str]] | None = None
    columns: tuple[str, ...] | None = None

    def __call__(self, numbered: Iterable[tuple[int, SourceObject]]) -> Iterator[Block]:
        """Yield the blocks of all these sources, in order; errors are returned, not raised."""
        given = list(numbered)
        sources = [source for _, source in given]
        store = self.open_store()
        before = Counter(store.requests.snapshot())
        bodies = store.read_sources(sources)
        detect = detector(self.settings, Dialects(self.settings, store))
        for (number, _), body in zip(given, bodies, strict=True):
            yield from self._blocks_of(number, body, detect)
        if self.requests is not None:
            self.requests.add(Counter(store.requests.snapshot()) - before)

    def _blocks_of(self, number: int, body: SourceBody, detect: Detector) -> Iterator[Block]:
        block = 0
        try:
            if body.error is not None:
                raise body.error
            for found in blocks_of(number, body, self.settings, detect, self.columns):
                yield found
                block = found.block + 1
        except UnreadableSource as error:
            # Spark's unpickler does not accept enums, not even those of strings.
            reason = QuarantineReason(error.reason).value
            name = type(error).__name__
            yield Block(number, block, error=name, reason=reason, detail=error.detail)
        except SourceChanged as error:
            yield Block(number, block, error=type(error).__name__, reason=error.found)
        except CompactorError as error:
            yield Block(number, block, error=type(error).__name__, detail=str(error))


def blocks_of(
    number: int,
    body: SourceBody,
    settings: Settings,
    detect: Detector,
    columns: tuple[str, ...] | None = None,
) -> Iterator[Block]:
    """Yield the records of one source in blocks, at least one, so that each source is counted.

    Args:
        number: of the source in its group.
        body: its content.
        settings: of the run.
        detect: detects its format.
        columns: the columns of ``parquet_schema``, in order.

    Raises:
        UnreadableSource: the content is damaged, or of a format that has no named fields.
            Some blocks may have been yielded before.
    """
    content = plain.read(body, settings)
    found = detect(content.head, body.source.key, content.complete)
    if found is None:
        yield Block(number, 0)
        return
    kind = _KINDS.get(found.format)
    if kind is None:
        detail = f"{found.format} has no named fields that could become columns"
        raise UnreadableSource(QuarantineReason.UNKNOWN_FORMAT, detail)
    records = _records(content, found, settings)
    if kind == JSON:
        yield from _blocks(Block(number, 0, kind), b"", records)
        return
    delimiter = _delimiter(content, found)
    shape = Block(number, 0, kind if delimiter == delimiter_of(kind) else kind + delimiter.decode())
    if found.header:
        header = _names(found.header, delimiter)
        next(records, None)
    else:
        records, header = _named_by_place(records, delimiter, settings, columns)
    yield from _blocks(shape._replace(header=header), found.header, records)


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
    columns: tuple[str, ...] | None,
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


def _blocks(shape: Block, header: bytes, records: Iterator[bytes]) -> Iterator[Block]:
    """Yield records in blocks of a shape.

    Raises:
        UnreadableSource: the header occurs again among the records.
    """
    held: list[bytes] = []
    faults: dict[int, str] = {}
    block = size = first = 0
    for record in records:
        if fault := fault_of(shape.kind, record):
            faults[len(held)] = fault
        if record == header and header:
            raise ambiguous("its header occurs again among its records", header)
        held.append(record)
        size += len(record)
        if size >= BLOCK_BYTES:
            done = shape._replace(block=block, records=held, faults=faults)
            yield done._replace(first=first)
            first += len(held)
            held, faults, size = [], {}, 0
            block += 1
    if held or not block:
        done = shape._replace(block=block, records=held, faults=faults)
        yield done._replace(first=first)


def _records(content: plain.PlainContent, found: Detected, settings: Settings) -> Iterator[bytes]:
    longest = settings.limits.max_document_bytes
    framed = spec_of(found.format).records
    if framed is not None:
        pieces = framed().frame(content.whole(longest)).slice
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
    closed = _CLOSED[delimiter]
    held: list[bytes] = []
    size = 0
    for line in lines:
        if not held and (not line or line.isspace()):
            continue
        held.append(line)
        size += len(line) + 1
        # Only a line that contains a quote can close an open field.
        if b'"' in line or len(held) == 1:
            record = b"\n".join(held)
            if b'"' not in record or closed.fullmatch(record):
                yield record.removesuffix(b"\r")
                held, size = [], 0
        if size > longest:
            break
    if held:
        raise UnreadableSource(QuarantineReason.OPEN_QUOTE, "it ends within a quoted field")


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


def fault_of(kind: str, record: bytes) -> str:
    """Return why a record cannot be a row of any schema; empty if it may be one."""
    return _json_fault(record) if kind == JSON else _text_fault(record)


def _json_fault(record: bytes) -> str:
    try:
        _objects.decode(record)
    except (msgspec.MsgspecError, RecursionError) as error:
        return f"not one JSON object: {error}"
    return _text_fault(record)


def _text_fault(record: bytes) -> str:
    try:
        record.decode()
    except UnicodeDecodeError as error:
        return f"not UTF-8 at byte {error.start}"
    return ""
