"""Delimited text (CSV, TSV): records, their line ends, and quoted fields that stay open.

A source that ends within a quoted field would pull the next source's rows into its last field.
Readers differ in how they interpret quotes, so every plausible reading is tried: quotes within a
field doubled (RFC 4180) or escaped by a backslash, and fields that may open after blanks as well as
directly after the delimiter. A quote in the middle of an unquoted field is an ordinary character
to all readers.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

DELIMITERS = (b",", b";", b"\t", b"|")

_QUOTE, _BACKSLASH = b'"', b"\\"
# Searches for quotes first: four times as fast as a search that begins with the border.
_AT_BORDER = re.compile(rb'"(?<=[,;\t|\n]")')
_LOOKED_AT = 64 << 10
_LOOKED_AT_RECORDS = 20
_BLANK_LINE = re.compile(rb"(?<=\n)\r?\n")
_INSIDE = re.compile(rb'(?:[^"]++|"")*+("?)')
# The meaning of these at the end of a chunk depends on the next chunk.
_HELD_BACK = b' "\\,;\t|\r\n'
_MOST_HELD_BACK = 1 << 20


class _Reading(NamedTuple):
    """How one kind of reader interprets quotes: patterns for starting outside or inside a field.

    Each matches as far as all fields are closed, so it stops short of the end if one stays open.
    They are possessive and cannot backtrack.
    """

    outside: re.Pattern[bytes]
    inside: re.Pattern[bytes]

    def opened_at(self, data: bytes, *, inside: bool = False) -> int | None:
        """Return where the field begins that is open at the end; None if no field is.

        Args:
            data: one stretch of a source.
            inside: whether a field is open before it. If that never closes, returns 0.
        """
        found = (self.inside if inside else self.outside).match(data)
        if found is None:
            return 0
        return found.end() if found.end() < len(data) else None


class _Readings(NamedTuple):
    """All readings of one delimiter, and a pattern for content that all of them read alike."""

    all: tuple[_Reading, ...]
    plain: re.Pattern[bytes]


@lru_cache(len(DELIMITERS))
def _readings(delimiter: bytes) -> _Readings:
    border = b"%b\\r\\n" % re.escape(delimiter)
    found = []
    for blanks in (b"(?<![^%b])" % border, _after_blanks(border)):
        for quoted in (rb'(?:[^"]++|"")*+"', rb'(?:[^"\\]++|\\.|"")*+"'):
            more = rb'(?:[^"]*+(?:%b"%b|(?!%b)"))*+[^"]*+' % (blanks, quoted, blanks)
            found.append(
                _Reading(re.compile(more, re.DOTALL), re.compile(quoted + more, re.DOTALL))
            )
    # Each quote is at a border of its field, or next to another one.
    plain = rb'(?:[^"]*+(?<![^"%b])"[^"]*+"(?![^"%b]))*+[^"]*+' % (border, border)
    return _Readings(tuple(found), re.compile(plain))


def _after_blanks(border: bytes) -> bytes:
    return rb"(?:(?<![^%b])|(?<=[%b] )|(?<=[%b]  ))" % (border, border, border)


def ends_within_quotes(content: bytes, delimiter: bytes | None) -> bool:
    """Return whether any plausible reader is within a quoted field at the end of a source.

    Args:
        content: the whole source, without a BOM.
        delimiter: one byte. None for text that may or may not have columns: then each delimiter
            counts under which the records before the open quote have the same number of fields,
            at least two.
    """
    if _QUOTE not in content:
        return False
    if delimiter is not None:
        return _is_open(content, delimiter)
    if not content.startswith(_QUOTE) and not _AT_BORDER.search(content):
        return False
    return any(_is_open_column(content, one) for one in DELIMITERS)


def _is_open(content: bytes, delimiter: bytes) -> bool:
    readings = _readings(delimiter)
    # A single search for both would stop at every quote.
    escapes = _BACKSLASH in content and _BACKSLASH + _QUOTE in content
    if not escapes and readings.plain.fullmatch(content):
        return False
    return any(one.opened_at(content) is not None for one in readings.all)


def _is_open_column(content: bytes, delimiter: bytes) -> bool:
    """Return whether a quote stays open in text that has columns up to that quote."""
    # Prose has quotes after blanks, so readings that allow them do not count.
    for reading in _readings(delimiter).all[:2]:
        at = reading.opened_at(content)
        if at is not None:
            widths = _widths(content[: min(at, _LOOKED_AT)], delimiter)
            columns = not at or delimiter in content[:at]
            if columns if not widths else len(widths) == 1 and widths != {1}:
                return True
    return False


def _widths(content: bytes, delimiter: bytes) -> set[int]:
    """Return the different numbers of fields of the first records that end with a newline."""
    fields = fields_pattern(delimiter)
    records = islice(records_pattern(delimiter).finditer(content), _LOOKED_AT_RECORDS)
    return {len(fields.findall(one[1])) for one in records if one[2] and one[1].strip()}


@lru_cache(len(DELIMITERS))
def records_pattern(delimiter: bytes) -> re.Pattern[bytes]:
    """Return a pattern for a record up to a newline outside quotes (group 1) and the newline.

    The newline is group 2, empty at the end. A quote that is not closed is an ordinary character.
    """
    field = _field(delimiter)
    return re.compile(rb"(%b(?:%b%b)*+)(\n|\Z)" % (field, re.escape(delimiter), field))


class FirstRecord(NamedTuple):
    """The first record of a text.

    Attributes:
        record: the record without its line end.
        line_end: LF, CRLF, or empty at the end of the text.
        end: where the next record begins.
    """

    record: bytes
    line_end: bytes
    end: int

    @property
    def ended(self) -> bool:
        """Whether its line end was seen."""
        return bool(self.line_end)


def first_record_of(text: bytes, delimiter: bytes) -> FirstRecord | None:
    """Return the first record of a text; None if it has none."""
    found = records_pattern(delimiter).match(text)
    if found is None:
        return None
    record: bytes = found[1]
    line_end: bytes = found[2]
    if line_end and record.endswith(b"\r"):
        record, line_end = record[:-1], b"\r\n"
    return FirstRecord(record, line_end, found.end())


class RecordCounter:
    """Counts records, and line ends between them, chunk by chunk; those in quotes do not count.

    Quotes are read according to RFC 4180. A blank line is not a record.

    Args:
        delimiter: one byte.

    Attributes:
        records: records so far; final after :meth:`finish`.
        lf, crlf: line ends of each kind.
    """

    def __init__(self, delimiter: bytes) -> None:
        self.records = self.lf = self.crlf = 0
        self._field_start = delimiter + _QUOTE
        self._closed, self._opening = _quoted_fields(delimiter)
        # The end of the counted bytes: context for the next ones.
        self._before = b"\n"

    def feed(self, chunk: bytes | memoryview) -> None:
        """Take the next bytes. The first ones must have no BOM."""
        before, text = self._before, self._before + bytes(chunk)
        opened = None
        if _QUOTE in text:
            text = self._closed.sub(b"x", text)
            opened = self._opening.search(text)
        if opened is None:
            self._before = text[-2:].replace(_QUOTE, b"x")
        else:
            inside = _INSIDE.match(text, opened.end())
            # A quote at the end either closes the field or is the first of a doubled one.
            self._before = self._field_start + (inside[1] if inside else b"")
            text = text[: opened.start()]
        lines = text.count(b"\n") - before.count(b"\n")
        crlf = text.count(b"\r\n") - before.count(b"\r\n") if b"\r" in text else 0
        self.crlf += crlf
        self.lf += lines - crlf
        self.records += lines - len(_BLANK_LINE.findall(text)) + (before == b"\n\n")

    def finish(self) -> None:
        """End the source: a last record without a line end counts, too."""
        self.records += bool(self._before.rpartition(b"\n")[2].strip(b"\r"))
        self._before = b"\n"


@lru_cache(len(DELIMITERS))
def _quoted_fields(delimiter: bytes) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    """Return patterns for fields closed before the end of a text, and for an opening quote."""
    opening = rb'"(?<![^%b\r\n]")' % re.escape(delimiter)
    return re.compile(rb'%b(?:[^"]++|"")*+"(?!\Z)' % opening), re.compile(opening)


@lru_cache(len(DELIMITERS))
def fields_pattern(delimiter: bytes) -> re.Pattern[bytes]:
    """Return a pattern for a field at the start of a record or after a delimiter."""
    return re.compile(rb"(?:\A|%b)%b" % (re.escape(delimiter), _field(delimiter)))


def _field(delimiter: bytes) -> bytes:
    rest = rb"[^%b\n]*+" % re.escape(delimiter)
    return rb'(?:"(?:[^"]++|"")*+"%b|%b)' % (rest, rest)


class QuoteScan:
    """Finds out whether a source ends within a quoted field, chunk by chunk.

    Args:
        delimiter: one byte.
    """

    def __init__(self, delimiter: bytes) -> None:
        self._readings = _readings(delimiter).all
        self._inside = [False] * len(self._readings)
        self._held = b""
        self._started = False
        self._lost = False

    def feed(self, chunk: bytes | memoryview) -> None:
        """Take the next bytes. The first ones must have no BOM."""
        data = self._held + bytes(chunk)
        if _QUOTE not in data:
            self._held = data[len(data.rstrip(_HELD_BACK)) :]
            self._started = self._started or len(self._held) < len(data)
            self._held = self._held[-_MOST_HELD_BACK:]
            return
        settled = data.rstrip(_HELD_BACK)
        self._held = data[len(settled) :]
        # No writer puts so many quotes and delimiters in a row.
        self._lost = self._lost or len(self._held) > _MOST_HELD_BACK
        if not self._lost:
            self._pass(settled)

    def ends_inside(self) -> bool:
        """Return whether any reader is within a quoted field, once all bytes were fed."""
        self._pass(self._held)
        self._held = b""
        return self._lost or any(self._inside)

    def _pass(self, data: bytes) -> None:
        if not data:
            return
        if self._started:
            # Stands for the preceding byte, which is not one that is held back.
            data = b"x" + data
        self._started = True
        self._inside = [
            reading.opened_at(data, inside=inside) is not None
            for reading, inside in zip(self._readings, self._inside, strict=True)
        ]
