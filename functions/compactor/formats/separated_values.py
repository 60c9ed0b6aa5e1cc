"""CSV and TSV: framed as lines, with or without a header, and checked to their ends.

A record left open at the end of a source would continue in the next one. A header that is repeated
among the records may be a record. Line ends are kept, and added ones match: readers refuse a header
that ends in LF above records that end in CRLF.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache, partial

from compactor.errors import UnreadableSource
from compactor.formats.delimited import QuoteScan, RecordCounter, ends_within_quotes
from compactor.formats.first_record import Begin, ambiguous, begin_of, delimiters_of
from compactor.formats.framing import Framed, Framer, StreamFraming
from compactor.formats.headed import HeadedFramer
from compactor.formats.lines import BOM, LineFramer
from compactor.formats.spec import Detected, FormatSpec, Look
from compactor.model import Format, QuarantineReason, Signature

_SHOWN_BYTES = 40
_SHORT_HEADER = 4 << 10
_ENCODINGS = (".gz", ".gzip", ".zst", ".zstd")


class ColumnsFramer:
    """Joins CSV or TSV sources of one signature."""

    def __init__(self, signature: Signature) -> None:
        self.begin = Begin.of(signature.header, signature.dialect)
        self._format = signature.format
        header = signature.header
        self._inner: Framer = HeadedFramer(header) if header else LineFramer()
        # The same for every source if there is a header, since all begin with it.
        self._delimiters = self.delimiters(header) if header else None

    def opening(self) -> bytes:
        """Return the header line; empty if there is no header."""
        return self.begin.header + self.begin.header_end if self.begin.header else b""

    def frame(self, content: bytes | memoryview) -> Framed:
        """Place one whole source.

        Raises:
            UnreadableSource: MALFORMED, it has another header; AMBIGUOUS_HEADER, the header is
                repeated among the records; OPEN_QUOTE, OPEN_END.
        """
        framed = self._inner.frame(content)
        whole = bytes(content)
        self._refuse_open(whole)
        start = len(framed.dropped_prefix)
        watch = self.watch()
        if watch is not None and start > len(self.begin.header):
            # The last dropped byte is the newline before the first row.
            watch.look(whole, start - 1, last=True)
            watch.refuse()
        counter = RecordCounter(self.begin.delimiter)
        counter.feed(memoryview(whole)[start:])
        counter.finish()
        return self.placed(framed, counter.records)

    def placed(self, framed: Framed, records: int) -> Framed:
        """Return framed lines with the number of records and the right added line end."""
        if framed.appended and self.begin.header_end == b"\r\n" and not self.begin.mixed:
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

    def delimiters(self, text: bytes) -> tuple[bytes, ...]:
        """Return the delimiters that a reader may use for a source that begins with this text."""
        end = text.find(b"\n")
        return delimiters_of(text if end < 0 else text[:end], self._format)

    def watch(self) -> HeaderWatch | None:
        """Return a search for the header among the records; None if a setting decided about it."""
        begin = self.begin
        return HeaderWatch(begin.header) if begin.header and begin.columns else None

    def _refuse_open(self, whole: bytes) -> None:
        if whole.endswith(b"\r"):
            raise _open_end(whole)
        if b'"' not in whole:
            return
        text = whole.removeprefix(BOM)
        for delimiter in self._delimiters or self.delimiters(text):
            if ends_within_quotes(text, delimiter):
                raise _open_quote(text)


class HeaderWatch:
    """Searches the records of a source for a line equal to the header."""

    def __init__(self, header: bytes) -> None:
        self.found = False
        self._header = header
        self._line = b"\n" + header
        self._held = b""

    def look(self, data: bytes, start: int = 0, *, last: bool = False) -> None:
        """Search a stretch of records that starts with the newline before them."""
        at = data.find(self._line, start)
        while at >= 0 and not self.found:
            after = data[at + len(self._line) : at + len(self._line) + 1]
            self.found = after in {b"\r", b"\n"} or (last and not after)
            at = data.find(self._line, at + 1)

    def feed(self, data: bytes) -> None:
        """Search the next bytes."""
        window = self._held + data
        self.look(window)
        # A match that begins here may be as long as the line and its line end.
        self._held = window[-len(self._line) :]

    def finish(self) -> None:
        """End the source.

        Raises:
            UnreadableSource: AMBIGUOUS_HEADER, the header was found.
        """
        self.look(self._held, last=True)
        self.refuse()

    def refuse(self) -> None:
        """Raise UnreadableSource (AMBIGUOUS_HEADER) if the header was found."""
        if self.found:
            raise ambiguous("its header occurs again among its records", self._header)


class ColumnsStream:
    """Frames one source chunk by chunk."""

    def __init__(self, framer: ColumnsFramer, inner: StreamFraming) -> None:
        self._framer = framer
        self._inner = inner
        self._scans: list[QuoteScan] | None = None
        self._watch = framer.watch()
        self._counter = RecordCounter(framer.begin.delimiter)
        self._head = b""
        self._rows = False
        self._end = b""

    def feed(self, chunk: bytes) -> Iterable[bytes | memoryview]:
        """Take the next plain bytes.

        Raises:
            UnreadableSource: MALFORMED, it has another header.
        """
        self._scan(chunk)
        pieces = tuple(self._inner.feed(chunk))
        self._look(pieces)
        return pieces

    def finish(self) -> Framed:
        """End the source.

        Raises:
            UnreadableSource: MALFORMED, it has another header, or its line ends change;
                AMBIGUOUS_HEADER, the header is repeated; OPEN_QUOTE, OPEN_END.
        """
        framed = self._inner.finish()
        self._look(framed.slice[:-1] if framed.appended else framed.slice)
        if self._scans is None:
            self._begin()
        if self._end == b"\r":
            raise _open_end(self._head)
        if any(scan.ends_inside() for scan in self._scans or ()):
            raise _open_quote(self._head)
        if self._watch is not None:
            self._watch.finish()
        self._counter.finish()
        self._refuse_other_ends()
        return self._framer.placed(framed, self._counter.records)

    def _look(self, pieces: Iterable[bytes | memoryview]) -> None:
        for piece in pieces:
            self._counter.feed(piece)
            if self._watch is not None:
                # The framer dropped the newline that ends the header.
                self._watch.feed(bytes(piece) if self._rows else b"\n" + bytes(piece))
                self._rows = True

    def _refuse_other_ends(self) -> None:
        begin, counter = self._framer.begin, self._counter
        other = counter.lf if begin.header_end == b"\r\n" else counter.crlf
        if other and not begin.mixed:
            seen = "its line ends change after its first bytes"
            raise _open(QuarantineReason.MALFORMED, seen, self._head)

    def _scan(self, chunk: bytes) -> None:
        self._end = chunk[-1:] or self._end
        if self._scans is not None:
            for scan in self._scans:
                scan.feed(chunk)
            return
        self._head += chunk
        if b"\n" in chunk:
            self._begin()

    def _begin(self) -> None:
        text = self._head.removeprefix(BOM)
        self._scans = [QuoteScan(one) for one in self._framer.delimiters(text)]
        for scan in self._scans:
            scan.feed(text)
        self._head = text[:_SHOWN_BYTES]


def _open_quote(text: bytes) -> UnreadableSource:
    return _open(QuarantineReason.OPEN_QUOTE, "it ends within a quoted field", text)


def _open_end(text: bytes) -> UnreadableSource:
    seen = "it ends with a carriage return alone"
    return _open(QuarantineReason.OPEN_END, seen, text.removeprefix(BOM))


def _open(reason: QuarantineReason, seen: str, text: bytes) -> UnreadableSource:
    shown = repr(text[:_SHOWN_BYTES])[1:] + ("..." if len(text) > _SHOWN_BYTES else "")
    return UnreadableSource(reason, f"{seen}; it starts with {shown}")


def _format_by_name(key: str) -> Format | None:
    """Return CSV or TSV by name: no bytes prove CSV, and its readers go by the name, too."""
    name = key.lower()
    if name.endswith(".csv"):
        return Format.CSV
    if ".csv" not in name and ".tsv" not in name:
        return None
    for encoding in _ENCODINGS:
        name = name.removesuffix(encoding)
    if name.endswith(".csv"):
        return Format.CSV
    return Format.TSV if name.endswith(".tsv") else None


def _recognise(look: Look) -> Detected | None:
    format = _format_by_name(look.key)
    if format is None:
        return None
    found = _declared(format, look)
    look.require_characters()
    return found


def _declared(format: Format, look: Look) -> Detected:
    begin = begin_of(
        look.head, look.key, format, look.csv_header, look.decide, complete=look.complete
    )
    make = _detected if len(begin.header) <= _SHORT_HEADER else Detected
    return make(format, begin.header, begin.dialect)


# Cached: sources of one kind begin alike.
_detected = lru_cache(64)(Detected)


CSV = FormatSpec(
    format=Format.CSV,
    extension="csv",
    media_type="text/csv",
    framer=lambda signature, _: ColumnsFramer(signature),
    # Recognises TSV as well.
    recognise=_recognise,
    declared=partial(_declared, Format.CSV),
    rows="csv",
    hint="csv",
    named=r"\.csv$",
)
TSV = FormatSpec(
    format=Format.TSV,
    extension="tsv",
    media_type="text/tab-separated-values",
    framer=lambda signature, _: ColumnsFramer(signature),
    declared=partial(_declared, Format.TSV),
    rows="tsv",
    hint="tsv",
    named=r"\.tsv$",
)
