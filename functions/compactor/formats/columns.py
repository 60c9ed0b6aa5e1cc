"""CSV and TSV: records with as many fields as the first, under one header or none.

Header and dialect are declared, and each source is checked against that as it is read: a field left
open at its end would continue in the next source, and another number of fields shows a misfit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from compactor.errors import UnreadableSource
from compactor.formats.declaration import Declaration
from compactor.formats.framing import Framed, Framer, StreamFraming
from compactor.formats.headed import LONGEST_HEADER, HeadedFramer
from compactor.formats.lines import LineFramer
from compactor.formats.refusal import refused
from compactor.formats.spec import Detected, FormatSpec, Look, malformed
from compactor.model import Format, QuarantineReason, Signature

#: A source with a longer record is quarantined.
LONGEST_RECORD = 16 << 20
_SHORT_HEADER = 4 << 10
_SHOWN_BYTES = 40
# The manifest keeps the blank lines of a source without records, which has no place in the output.
_MOST_BLANK = 64
_BLANK_LINE = re.compile(rb"(?:\A|(?<=\n))\r?\n")
_SEPARATOR_LINE = re.compile(rb'"?sep=[^\r\n]{1,2}"?\r?\n', re.IGNORECASE)


class Dialect(NamedTuple):
    """How fields are delimited and quoted, as in a :class:`Declaration`."""

    delimiter: bytes = b","
    quotes: bool = True
    backslash: bool = False

    @classmethod
    def of(cls, declaration: Declaration) -> Dialect:
        """Return the declared dialect."""
        delimiter = declaration.delimiter.encode()
        return cls(delimiter, declaration.quotes, declaration.backslash)


class Begin(NamedTuple):
    """How a source begins.

    Attributes:
        header: its first record without the line end; empty if that is a row.
        columns: number of fields of each record.
    """

    header: bytes
    dialect: Dialect
    columns: int
    line_end: bytes

    @property
    def text(self) -> bytes:
        """All but the header as bytes; sources with equal bytes can share an output."""
        dialect = self.dialect
        marks = (b"quoted" * dialect.quotes, b"backslash" * dialect.backslash)
        ends = b"crlf" if self.line_end == b"\r\n" else b"lf"
        return b"%b%d %b %b %b" % (dialect.delimiter, self.columns, ends, *marks)

    @classmethod
    def of(cls, signature: Signature | Detected) -> Begin:
        """Parse the signature of sources; the usual dialect if it has none."""
        if not signature.dialect:
            return cls(signature.header, Dialect(), 0, b"\n")
        columns, ends, quoted, backslash = signature.dialect[1:].split(b" ")
        dialect = Dialect(signature.dialect[:1], bool(quoted), bool(backslash))
        line_end = b"\r\n" if ends == b"crlf" else b"\n"
        return cls(signature.header, dialect, int(columns), line_end)


class _Patterns(NamedTuple):
    """Patterns of one dialect. They are possessive and cannot backtrack.

    Attributes:
        first: a record of any number of fields, and its line end or the end of the source.
        field: a field at the start of a record, or a delimiter and the field after it.
        quoted: a quoted field, at the start of a field.
    """

    first: re.Pattern[bytes]
    field: re.Pattern[bytes]
    quoted: re.Pattern[bytes]


def _field(dialect: Dialect) -> bytes:
    delimiter = re.escape(dialect.delimiter)
    plain = rb"[^%b\r\n]*+" % delimiter
    if dialect.backslash:
        plain = rb"(?:[^%b\r\n\\]++|\\[^\r\n])*+" % delimiter
    if not dialect.quotes:
        return plain
    return rb"(?:%b|(?!\")%b)" % (_quoted(dialect), plain)


def _quoted(dialect: Dialect) -> bytes:
    if dialect.backslash:
        return rb'"(?:[^"\\]++|\\.|"")*+"'
    return rb'"[^"]*+(?:""[^"]*+)*+"'


@lru_cache(16)
def _patterns(dialect: Dialect) -> _Patterns:
    field, delimiter = _field(dialect), re.escape(dialect.delimiter)
    return _Patterns(
        re.compile(rb"(%b(?:%b%b)*+)(\r?\n|\Z)" % (field, delimiter, field), re.DOTALL),
        re.compile(rb"(?:\A|%b)%b" % (delimiter, field), re.DOTALL),
        re.compile(rb"(?<![^%b\n])%b" % (delimiter, _quoted(dialect)), re.DOTALL),
    )


@lru_cache(64)
def _whole_records(dialect: Dialect, columns: int, line_end: bytes) -> re.Pattern[bytes]:
    """Return a pattern for any number of records, each ended; group 1 is a last, open one."""
    field, delimiter = _field(dialect), re.escape(dialect.delimiter)
    record = rb"%b(?:%b%b){%d}" % (field, delimiter, field, columns - 1)
    end = re.escape(line_end)
    return re.compile(rb"(?:(?:%b)?+%b)*+(%b(?=\Z))?+" % (record, end, record), re.DOTALL)


@lru_cache(16)
def _all_but(kept: bytes) -> bytes:
    return bytes(byte for byte in range(256) if byte not in kept)


def fields_of(record: bytes, dialect: Dialect) -> list[bytes]:
    """Return the fields of one record as they are written, with their quotes.

    Raises:
        UnreadableSource: MALFORMED, a field goes on after its closing quote, or is not closed.
    """
    matched = _patterns(dialect).field.findall(record)
    if sum(map(len, matched)) != len(record):
        raise malformed("a field goes on after its closing quote, or is not closed")
    # Each but the first begins with a delimiter.
    return [matched[0], *(field[1:] for field in matched[1:])]


def unquoted(field: bytes, dialect: Dialect) -> str:
    """Return the text of one field, given as it is written.

    Raises:
        UnicodeDecodeError: it is not UTF-8.
    """
    if dialect.quotes and field.startswith(b'"'):
        field = field[1:-1].replace(b'""', b'"')
    if dialect.backslash:
        field = re.sub(rb"\\(.)", rb"\1", field, flags=re.DOTALL)
    return field.decode()


def begin_of(look: Look, declaration: Declaration) -> Begin | None:
    """Return how a source begins, as declared; None for a source without a record.

    Args:
        look: its first plain bytes.
        declaration: of format csv or tsv.

    Raises:
        UnreadableSource: MALFORMED or OPEN_QUOTE, the first record is not of this dialect, or does
            not end within the first bytes, or many blank lines are all there is.
    """
    dialect, head = Dialect.of(declaration), look.head
    start = len(head) - len(head.lstrip(b"\r\n"))
    if start == len(head) and look.complete and start <= _MOST_BLANK:
        return None
    if start == len(head):
        raise malformed("it begins with nothing but blank lines")
    if start and declaration.header:
        raise malformed("a blank line stands where its header should be")
    if declaration.header and _SEPARATOR_LINE.match(head):
        raise malformed("a sep= line, which only Excel reads, stands where its header should be")
    first = _patterns(dialect).first.match(head, start)
    if first is None or not (first[2] or look.complete):
        raise _bad_record(1, "does not end as a record of this dialect", head)
    if first.end(1) - start > LONGEST_HEADER:
        raise malformed(f"its first record is longer than {LONGEST_HEADER:,} bytes")
    columns = len(fields_of(first[1], dialect))
    header = first[1] if declaration.header else b""
    # A record without its line end may stand below a blank line.
    blank = b"\r\n" if head.startswith(b"\r\n") else b"\n"
    return Begin(header, dialect, columns, first[2] or blank)


class Records:
    """Checks and counts the records of one source, chunk by chunk.

    Args:
        begin: how the source begins; its header is not among the bytes that follow.
    """

    def __init__(self, begin: Begin) -> None:
        self.count = 0
        self._begin = begin
        self._pattern = _whole_records(begin.dialect, begin.columns, begin.line_end)
        self._held = b""

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes.

        Raises:
            UnreadableSource: MALFORMED, a record is too long, or repeats the header.
        """
        data = self._held + chunk if self._held else chunk
        end = self._end_of_plain(data) or self._end_of_records(data)
        self._count(data[:end] if end < len(data) else data)
        self._held = data[end:]
        if len(self._held) > LONGEST_RECORD:
            raise self._bad(self._held)

    def finish(self) -> int:
        """Check the last record, and return the number of all.

        Raises:
            UnreadableSource: MALFORMED, OPEN_QUOTE.
        """
        last = self._held
        if last:
            match = self._pattern.fullmatch(last)
            if match is None:
                raise self._bad(last)
            self._refuse_header(last == self._begin.header)
            self.count += 1
        return self.count

    def _end_of_plain(self, data: bytes) -> int:
        """Return the end of the last record if no field is quoted; 0 for any other data.

        Ten times as fast as the pattern.
        """
        begin, dialect = self._begin, self._begin.dialect
        if dialect.backslash or (dialect.quotes and b'"' in data):
            return 0
        end = data.rfind(b"\n") + 1
        plain = data[:end]
        crlf = begin.line_end == b"\r\n"
        if plain.count(b"\r") != (plain.count(b"\r\n") if crlf else 0):
            return 0
        shape = plain.translate(None, _all_but(dialect.delimiter + b"\n"))
        lines = shape.count(b"\n")
        if shape != (dialect.delimiter * (begin.columns - 1) + b"\n") * lines:
            return 0
        return end if not crlf or plain.count(b"\r") == lines else 0

    def _end_of_records(self, data: bytes) -> int:
        match = self._pattern.match(data)
        if match is None:
            return 0
        # The next chunk may continue a record without a line end.
        return match.end() if match[1] is None else match.start(1)

    def _count(self, data: bytes) -> None:
        header, end = self._begin.header, self._begin.line_end
        if header:
            line = header + end
            self._refuse_header(data.startswith(line) or b"\n" + line in data)
        bare = data
        if self._begin.dialect.quotes and b'"' in data:
            bare = _patterns(self._begin.dialect).quoted.sub(b"q", data)
        self.count += bare.count(b"\n") - _blank_lines(bare, end)

    def _refuse_header(self, is_repeated: bool) -> None:
        if is_repeated:
            raise repeated_header(self._begin)

    def _bad(self, data: bytes) -> UnreadableSource:
        first = _patterns(self._begin.dialect).first.match(data)
        number = self.count + 1
        if len(data) > LONGEST_RECORD:
            return _bad_record(number, f"exceeds {LONGEST_RECORD:,} bytes", data)
        if first is None:
            return _bad_record(number, "does not end as a record of this dialect", data)
        columns = len(fields_of(first[1], self._begin.dialect))
        if columns != self._begin.columns:
            seen = f"has {columns} fields, the first has {self._begin.columns}"
            return _bad_record(number, seen, data)
        return _bad_record(number, "has another line end than the first", data)


def repeated_header(begin: Begin) -> UnreadableSource:
    """Return the error for a source whose header occurs again among its records."""
    seen = "its header occurs again among its records"
    return refused(QuarantineReason.MALFORMED, seen, begin.header, "")


def _blank_lines(lines: bytes, end: bytes) -> int:
    if not lines.startswith(end) and b"\n" + end not in lines:
        return 0
    return len(_BLANK_LINE.findall(lines))


def _bad_record(number: int, seen: str, data: bytes) -> UnreadableSource:
    line = data[: data.find(b"\n")] if b"\n" in data else data
    shown = f"record {number:,} {seen}: {repr(line[:_SHOWN_BYTES])[1:]}"
    is_open = "dialect" in seen and data.count(b'"') % 2 == 1
    reason = QuarantineReason.OPEN_QUOTE if is_open else QuarantineReason.MALFORMED
    if seen.startswith("exceeds"):
        reason = QuarantineReason.TOO_LARGE
    return UnreadableSource(reason, shown)


class ColumnsFramer:
    """Joins CSV or TSV sources of one signature."""

    def __init__(self, signature: Signature) -> None:
        self.begin = Begin.of(signature)
        self._inner: Framer = HeadedFramer(signature.header) if signature.header else LineFramer()

    def opening(self) -> bytes:
        """Return the header line; empty if there is no header."""
        return self.begin.header + self.begin.line_end if self.begin.header else b""

    def frame(self, content: bytes | memoryview) -> Framed:
        """Place one whole source.

        Raises:
            UnreadableSource: MALFORMED, OPEN_QUOTE: it is not as declared.
        """
        framed = self._inner.frame(content)
        records = Records(self.begin)
        records.feed(bytes(content)[len(framed.dropped_prefix) :])
        return self.placed(framed, records.finish())

    def placed(self, framed: Framed, records: int) -> Framed:
        """Return framed lines with the number of records and the right added line end."""
        if framed.appended and self.begin.line_end == b"\r\n":
            pieces = (*framed.slice[:-1], b"\r\n")
            return framed._replace(records=records, slice=pieces, appended=2)
        return framed._replace(records=records)

    def stream(self) -> ColumnsStream:
        """Start a source of any size."""
        inner = self._inner.stream()
        if inner is None:
            raise AssertionError("lines are streamed")
        return ColumnsStream(self, inner)

    def closing(self) -> bytes:
        """Return nothing: these formats have no closing."""
        return b""


class ColumnsStream:
    """Frames one source chunk by chunk."""

    def __init__(self, framer: ColumnsFramer, inner: StreamFraming) -> None:
        self._framer = framer
        self._inner = inner
        self._records = Records(framer.begin)

    def feed(self, chunk: bytes) -> Iterable[bytes | memoryview]:
        """Take the next plain bytes.

        Raises:
            UnreadableSource: MALFORMED, it is not as declared.
        """
        pieces = tuple(self._inner.feed(chunk))
        for piece in pieces:
            self._records.feed(bytes(piece))
        return pieces

    def finish(self) -> Framed:
        """End the source.

        Raises:
            UnreadableSource: MALFORMED, OPEN_QUOTE: it is not as declared.
        """
        framed = self._inner.finish()
        for piece in framed.slice[:-1] if framed.appended else framed.slice:
            self._records.feed(bytes(piece))
        return self._framer.placed(framed, self._records.finish())


def records_of(
    chunks: Iterable[bytes], dialect: Dialect, longest: int = LONGEST_RECORD
) -> Iterator[bytes]:
    """Yield the records of one source, of any number of fields, without their line ends.

    Blank lines are no records.

    Args:
        chunks: of plain bytes without a BOM.
        dialect: of the source.
        longest: bytes of the longest record.

    Raises:
        UnreadableSource: MALFORMED, OPEN_QUOTE: a record does not end.
    """
    pattern = _patterns(dialect).first
    held, number = b"", 0
    for chunk in chunks:
        held += chunk
        at = 0
        # The end of the chunk is not the end of the source.
        while (match := pattern.match(held, at)) is not None and match[2]:
            if match[1]:
                number += 1
                yield match[1]
            at = match.end()
        held = held[at:]
        if len(held) > longest:
            raise _bad_record(number + 1, f"exceeds {longest:,} bytes", held)
    if held:
        match = pattern.fullmatch(held)
        if match is None:
            raise _bad_record(number + 1, "does not end as a record of this dialect", held)
        yield match[1]


def _declared(look: Look) -> Detected | None:
    declaration = look.declaration
    if declaration is None:
        raise AssertionError("columns are declared")
    look.require_text(single_byte=declaration.single_byte)
    begin = begin_of(look, declaration)
    if begin is None:
        return None
    make = _detected if len(begin.header) <= _SHORT_HEADER else Detected
    return make(declaration.format, begin.header, begin.text)


_detected = lru_cache(64)(Detected)

CSV = FormatSpec(
    format=Format.CSV,
    extension="csv",
    media_type="text/csv",
    framer=lambda signature, _: ColumnsFramer(signature),
    declared=_declared,
    rows="csv",
    hint="csv",
    named=r"\.csv$",
)
TSV = FormatSpec(
    format=Format.TSV,
    extension="tsv",
    media_type="text/tab-separated-values",
    framer=lambda signature, _: ColumnsFramer(signature),
    declared=_declared,
    rows="tsv",
    hint="tsv",
    named=r"\.tsv$",
)
