"""On the executors: sources into records, each checked to be one whole record.

The bytes come through the store with If-Match, and are decompressed, recognised and cut as the
core does it, so that Spark sees nothing but single JSON objects and single CSV records.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from compactor import plain
from compactor.detection import detect_source
from compactor.errors import CompactorError, SourceChanged, UnreadableSource
from compactor.formats import Detected, framer_for
from compactor.formats.lines import BOM
from compactor.model import Format, QuarantineReason, SourceObject
from compactor.ports import ObjectStore, SourceBody
from compactor.settings import Settings

if TYPE_CHECKING:
    from pyspark import Accumulator

# Records handed to Spark in one row: few enough for a task's memory.
BLOCK_BYTES = 4 * 1024 * 1024
JSON, CSV, TSV = "json", "csv", "tsv"
_KINDS = {
    Format.JSON_LINES: JSON,
    Format.CLOUDTRAIL: JSON,
    Format.UNDELIMITED_JSON: JSON,
    Format.CSV: CSV,
    Format.TSV: TSV,
}
# A record whose quoted fields are all closed; a quote opens a field only at its start.
_CLOSED = re.compile(
    rb'(?:"(?:[^"]++|"")*+"[^,]*+|[^",][^,]*+|)(?:,(?:"(?:[^"]++|"")*+"[^,]*+|[^",][^,]*+|))*+',
    re.DOTALL,
)


class Block(NamedTuple):
    """One row for Spark: records of one source, or why there are none.

    Attributes:
        source: number of the source in its group.
        block: number of the block in its source.
        kind: ``json``, ``csv`` or ``tsv``; empty for a source without content.
        header: names of the columns, for CSV and TSV.
        records: bytes of the records, without line ends.
        faults: why a record can be no row, by its place in ``records``.
        error: class name of what ended the source; empty when nothing did.
        reason: why a source was left alone, or what was found in its place.
        detail: what the error says.
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


#: Spark's types of :class:`Block`.
BLOCK_SCHEMA = (
    "source INT, block INT, kind STRING, header ARRAY<STRING>, records ARRAY<BINARY>,"
    " faults MAP<INT, STRING>, error STRING, reason STRING, detail STRING"
)


class _Object(msgspec.Struct, gc=False):
    """Any JSON object, checked and not kept."""


_objects = msgspec.json.Decoder(_Object)


@dataclass(frozen=True)
class RecordReader:
    """What the executors call with numbered sources; it travels there pickled."""

    settings: Settings
    open_store: Callable[[], ObjectStore]
    requests: Accumulator[Counter[str]] | None = None

    def __call__(self, numbered: Iterable[tuple[int, SourceObject]]) -> Iterator[Block]:
        """Blocks of all these sources, in order; errors are told, not raised."""
        given = list(numbered)
        sources = [source for _, source in given]
        store = self.open_store()
        before = Counter(store.requests.snapshot())
        bodies = store.read_sources(sources)
        for (number, _), body in zip(given, bodies, strict=True):
            yield from _told(number, body, self.settings)
        if self.requests is not None:
            self.requests.add(Counter(store.requests.snapshot()) - before)


def _told(number: int, body: SourceBody, settings: Settings) -> Iterator[Block]:
    block = 0
    try:
        if body.error is not None:
            raise body.error
        for found in blocks_of(number, body, settings):
            yield found
            block = found.block + 1
    except UnreadableSource as error:
        # Spark's unpickler takes no enumerations, not even those of strings.
        reason = QuarantineReason(error.reason).value
        name = type(error).__name__
        yield Block(number, block, error=name, reason=reason, detail=error.detail)
    except SourceChanged as error:
        yield Block(number, block, error=type(error).__name__, reason=error.found)
    except CompactorError as error:
        yield Block(number, block, error=type(error).__name__, detail=str(error))


def blocks_of(number: int, body: SourceBody, settings: Settings) -> Iterator[Block]:
    """The records of one source; at least one block, so that every source is accounted for.

    Raises:
        UnreadableSource: the content is damaged, or of a format that has no named fields;
            perhaps after some blocks.
    """
    content = plain.read(body, settings)
    found = detect_source(content.head, body.source.key, settings, complete=content.complete)
    if found is None:
        yield Block(number, 0)
        return
    kind = _KINDS.get(found.format)
    if kind is None:
        detail = f"{found.format} has no named fields that could become columns"
        raise UnreadableSource(QuarantineReason.UNKNOWN_FORMAT, detail)
    records = _records(content, found, settings)
    header = None
    if kind != JSON:
        header = _names(found.header, kind)
        next(records, None)
    yield from _blocks(number, kind, header, records)


def _blocks(
    number: int, kind: str, header: list[str] | None, records: Iterator[bytes]
) -> Iterator[Block]:
    check = _json_fault if kind == JSON else _text_fault
    held: list[bytes] = []
    faults: dict[int, str] = {}
    block = size = 0
    for record in records:
        if fault := check(record):
            faults[len(held)] = fault
        held.append(record)
        size += len(record)
        if size >= BLOCK_BYTES:
            yield Block(number, block, kind, header, held, faults)
            held, faults, size = [], {}, 0
            block += 1
    if held or not block:
        yield Block(number, block, kind, header, held, faults)


def _records(content: plain.PlainContent, found: Detected, settings: Settings) -> Iterator[bytes]:
    longest = settings.max_document_bytes
    if found.format in {Format.CLOUDTRAIL, Format.UNDELIMITED_JSON}:
        framer = framer_for(found.signature(content.compression), cloudtrail_output="lines")
        pieces = framer.frame(content.whole(longest)).slice
        return _single(_lines(pieces, longest))
    lines = _lines(content.chunks(), longest)
    return _quoted(lines, longest) if found.format is Format.CSV else _single(lines)


def _lines(chunks: Iterable[bytes | memoryview], longest: int) -> Iterator[bytes]:
    """Lines without their newline, and without a BOM before the first."""
    held: bytes | None = None
    for chunk in chunks:
        joined = bytes(chunk).removeprefix(BOM) if held is None else held + chunk
        *lines, held = joined.split(b"\n")
        yield from lines
        if len(held) > longest:
            detail = f"a line exceeds max_document_bytes ({longest})"
            raise UnreadableSource(QuarantineReason.TOO_LARGE, detail)
    if held:
        yield held


def _single(lines: Iterator[bytes]) -> Iterator[bytes]:
    """Each line that is not blank is a record."""
    for line in lines:
        if line and not line.isspace():
            yield line.removesuffix(b"\r")


def _quoted(lines: Iterator[bytes], longest: int) -> Iterator[bytes]:
    """Records whose quoted fields may hold line breaks."""
    held: list[bytes] = []
    size = 0
    for line in lines:
        if not held and (not line or line.isspace()):
            continue
        held.append(line)
        size += len(line) + 1
        # Only a line with a quote in it can close a field that is open.
        if b'"' in line or len(held) == 1:
            record = b"\n".join(held)
            if b'"' not in record or _CLOSED.fullmatch(record):
                yield record.removesuffix(b"\r")
                held, size = [], 0
        if size > longest:
            break
    if held:
        raise UnreadableSource(QuarantineReason.MALFORMED, "it ends within a quoted field")


def _names(header: bytes, kind: str) -> list[str]:
    try:
        text = header.decode()
    except UnicodeDecodeError:
        detail = "its header is not UTF-8"
        raise UnreadableSource(QuarantineReason.MALFORMED, detail) from None
    fields = text.split("\t") if kind == TSV else next(csv.reader([text]))
    names = [name.strip() for name in fields]
    seen: set[str] = set()
    for name in names:
        if not name or name.lower() in seen:
            detail = f"its header names the column {name!r} twice" if name else "a nameless column"
            raise UnreadableSource(QuarantineReason.MALFORMED, detail)
        seen.add(name.lower())
    return names


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
