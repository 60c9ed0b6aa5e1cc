"""The readers: each takes plain bytes in pieces and returns the records it saw."""

from __future__ import annotations

import csv
import io
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice

from compactor.second_reading.json_values import (
    NotJson,
    elements,
    is_value,
    looks_open,
    members,
    squeezed,
    values,
)
from compactor.second_reading.judging import BOM, separator_line
from compactor.second_reading.kinds import Kind, Reading, Seen, Tally, tally
from compactor.second_reading.unpacking import Stream

_BATCH = 4096
# Appended after the last row of a table; an open quote would absorb it.
_MARK = "\0second reading\0"
_LONGEST_SEPARATOR_LINE = 16
# A field may be as long as its source; the csv module's default limit is 128 KiB.
_FIELD_LIMIT = (1 << 31) - 1


def read(reading: Reading, pieces: Iterable[bytes]) -> Seen:
    """Read plain bytes to their end.

    Memory: one line, row or JSON value at a time; everything for formats read as a whole.
    """
    ends = _Ends()
    watched = ends.watched(pieces)
    seen = _READERS[reading.kind](reading, _without_bom(watched))
    # A reader that found a fault leaves the rest unread.
    for _ in watched:
        continue
    seen.open_end = seen.open_end or ends.open(reading)
    return seen


def _without_bom(pieces: Iterable[bytes]) -> Iterator[bytes]:
    waiting, head = iter(pieces), b""
    for piece in waiting:
        head += piece
        if len(head) >= len(BOM):
            break
    yield head.removeprefix(BOM)
    yield from waiting


class _Ends:
    """Detects what the last bytes leave open, whatever they are read as."""

    def __init__(self) -> None:
        self._last = b""
        self._crlf = False
        self._utf8: Callable[[bytes, bool], str] | None = getincrementaldecoder("utf-8")().decode

    def watched(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            if not piece:
                continue
            joint = self._last + piece[:1]
            self._crlf = self._crlf or b"\r\n" in piece or joint == b"\r\n"
            self._last = piece[-1:]
            self._decode(piece, last=False)
            yield piece

    def open(self, reading: Reading) -> str:
        if reading.kind is Kind.BINARY:
            return ""
        if self._last == b"\r" and self._crlf:
            return "between CR and LF"
        valid = self._utf8 is not None
        self._decode(b"", last=True)
        return "within a character" if valid and self._utf8 is None else ""

    def _decode(self, piece: bytes, *, last: bool) -> None:
        if self._utf8 is None:
            return
        try:
            self._utf8(piece, last)
        except UnicodeDecodeError:
            self._utf8 = None


def _lines(pieces: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yield lines without line feeds, in blocks; the last block has the unterminated rest."""
    held: list[bytes] = []
    for piece in pieces:
        lines = piece.split(b"\n")
        if len(lines) > 1:
            lines[0] = b"".join([*held, lines[0]])
            held = []
        held.append(lines.pop())
        if lines:
            yield lines
    rest = b"".join(held)
    yield [rest] if rest else []


def _text(_: Reading, pieces: Iterable[bytes]) -> Seen:
    total = Tally()
    for lines in _lines(pieces):
        total = total.plus(tally(lines))
    return Seen(total)


def _cr_text(_: Reading, pieces: Iterable[bytes]) -> Seen:
    return _text(_, (b"".join(pieces).replace(b"\n", b"\0").replace(b"\r", b"\n"),))


def _w3c(_: Reading, pieces: Iterable[bytes]) -> Seen:
    """Tally each line together with its field names."""
    total, fields = Tally(), b""
    for lines in _lines(pieces):
        records = []
        for line in lines:
            if line[:8].lower() == b"#fields:":
                fields = b" ".join(line[8:].split())
            elif line[:1] != b"#" and line.strip():
                records.append((fields, line.rstrip(b"\r")))
        total = total.plus(tally(records))
    return Seen(total)


def _flow(_: Reading, pieces: Iterable[bytes]) -> Seen:
    seen = Seen()
    for lines in _lines(pieces):
        records = [line.rstrip(b"\r") for line in lines]
        if seen.first is None and records:
            seen.first = tuple(records.pop(0).decode("utf-8", "surrogateescape").split())
        seen.records = seen.records.plus(tally(records))
    return seen


def _json_lines(reading: Reading, pieces: Iterable[bytes]) -> Seen:
    seen = Seen()
    last: list[bytes] = []
    strict = reading.kind is Kind.STRICT_JSON_LINES
    squeeze = reading.kind in {Kind.TRAIL_LINES, Kind.ARRAY_LINES}
    for last in _lines(pieces):
        records: list[object] = []
        for line in last:
            record = line.strip(b" \t\r\n")
            if not record:
                continue
            if is_value(record):
                records.append(squeezed(record) if squeeze else record)
            else:
                found = _of_odd_line(record)
                if len(found) > 1 and (strict or squeeze):
                    # A reader that requires one value per line would take the first, or none.
                    seen.glued += 1
                    found = [("more than one value on a line", line)]
                records += found
        seen.records = seen.records.plus(tally(records))
    if last and last[0].lstrip()[:1] in (b"{", b"[") and not is_value(last[0]):
        seen.open_end = "within a JSON value" if looks_open(last[0]) else ""
    return seen


def _of_odd_line(line: bytes) -> list[object]:
    """Return the content of a line that is not one JSON value: several values, or no JSON."""
    if line[:1] not in (b"{", b"["):
        return [line]
    try:
        return list(values((line,)))
    except NotJson:
        return [line]


def _json_stream(_: Reading, pieces: Iterable[bytes]) -> Seen:
    return _counted(values(pieces))


def _begun(pieces: Iterable[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """Return the first non-blank byte, or nothing if there is none, and all pieces."""
    waiting = iter(pieces)
    head = b""
    while not head.strip() and (piece := next(waiting, None)) is not None:
        head += piece
    return head.lstrip()[:1], chain((head,), waiting)


def _json_document(_: Reading, pieces: Iterable[bytes]) -> Seen:
    head, whole = _begun(pieces)
    if head == b"[":
        return _counted(elements(whole, records=False))
    seen = _counted(values(whole))
    if seen.records.records > 1:
        seen.fault = seen.fault or "something follows the document"
    return seen


def _trail(_: Reading, pieces: Iterable[bytes]) -> Seen:
    head, whole = _begun(pieces)
    if not head:
        return Seen()
    return _counted(map(squeezed, elements(whole, records=True)))


def _array(_: Reading, pieces: Iterable[bytes]) -> Seen:
    head, whole = _begun(pieces)
    if not head:
        return Seen()
    return _counted(map(squeezed, elements(whole, records=False)))


def _list(_: Reading, pieces: Iterable[bytes]) -> Seen:
    """Tally the list's elements; the other members are ``first``, which the output has once."""
    head, whole = _begun(pieces)
    if not head:
        return Seen()
    fields: list[str] = []

    def records() -> Iterator[bytes]:
        for name, value in members(whole):
            if name:
                fields.append((name + b":" + squeezed(value)).decode("utf-8", "surrogateescape"))
            else:
                yield squeezed(value)

    seen = _counted(records())
    seen.first = tuple(sorted(fields))
    return seen


def _counted(records: Iterator[bytes]) -> Seen:
    seen = Seen()
    batch: list[bytes] = []
    try:
        for record in records:
            batch.append(record)
            if len(batch) == _BATCH:
                seen.records = seen.records.plus(tally(batch))
                batch.clear()
    except NotJson as error:
        seen.fault = str(error)
    seen.records = seen.records.plus(tally(batch))
    return seen


def _table(reading: Reading, pieces: Iterable[bytes]) -> Seen:
    seen = Seen()
    csv.field_size_limit(_FIELD_LIMIT)
    wrapped = io.TextIOWrapper(
        io.BufferedReader(Stream(_without_separator_line(pieces))),
        encoding="utf-8",
        errors="surrogateescape",
        newline="",
    )
    rows = map(tuple, csv.reader(chain(wrapped, (_MARK,)), delimiter=reading.delimiter))
    last: tuple[str, ...] = ()
    while batch := list(islice(rows, _BATCH)):
        # The last row is held back until more rows follow, because it may be the mark.
        found = [row for row in (last, *batch[:-1]) if row]
        last = batch[-1]
        _take_rows(seen, found)
    if last != (_MARK,):
        # The mark was absorbed into a field.
        seen.open_end = "within a quoted field"
        _take_rows(seen, [last])
    return seen


def _take_rows(seen: Seen, rows: list[tuple[str, ...]]) -> None:
    if seen.first is None and rows:
        seen.first = rows.pop(0)
    seen.records = seen.records.plus(tally(rows))


def _without_separator_line(pieces: Iterable[bytes]) -> Iterator[bytes]:
    waiting, head = iter(pieces), b""
    for piece in waiting:
        head += piece
        if len(head) >= _LONGEST_SEPARATOR_LINE:
            break
    yield head[separator_line(head) :]
    yield from waiting


def _whole(reading: Reading, pieces: Iterable[bytes]) -> Seen:
    """Tally the content as one record, if any; whitespace around a text is ignored."""
    content = b"".join(pieces)
    if reading.kind is Kind.DOCUMENT:
        content = content.strip()
    return Seen(tally([content] if content else []))


_READERS: Mapping[Kind, Callable[[Reading, Iterable[bytes]], Seen]] = {
    Kind.TEXT: _text,
    Kind.CR_TEXT: _cr_text,
    Kind.JSON_LINES: _json_lines,
    Kind.STRICT_JSON_LINES: _json_lines,
    Kind.TRAIL_LINES: _json_lines,
    Kind.JSON_STREAM: _json_stream,
    Kind.JSON_DOCUMENT: _json_document,
    Kind.TRAIL: _trail,
    Kind.LIST: _list,
    Kind.ARRAY: _array,
    Kind.ARRAY_LINES: _json_lines,
    Kind.TABLE: _table,
    Kind.FLOW: _flow,
    Kind.W3C: _w3c,
    Kind.DOCUMENT: _whole,
    Kind.BINARY: _whole,
}
