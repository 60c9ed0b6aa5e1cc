"""The first record of CSV and TSV: a header, a row, or uncertain.

Both mistakes lose or add records: a row treated as a header is dropped from the start of every
source, and a header treated as a row is repeated among the rows. So a single source never decides,
but its data set (:mod:`compactor.formats.csv_evidence`), or ``csv_header``. Each source is then
checked against the decision, and left alone if it contradicts it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from compactor.errors import UnreadableSource
from compactor.formats.csv_evidence import CsvDialect, Decision, Undecided, fields_of, rows_of
from compactor.formats.delimited import (
    DELIMITERS,
    FirstRecord,
    RecordCounter,
    first_record_of,
)
from compactor.formats.refusal import refused
from compactor.formats.spec import Decide, malformed
from compactor.model import Format, QuarantineReason

# Every open output holds its header in memory.
LONGEST_HEADER = 1 << 20
_USUAL = {Format.CSV: b",", Format.TSV: b"\t"}
_SEPARATOR = re.compile(rb'"?sep=', re.IGNORECASE)
_COMMENT = re.compile(rb"#|//|--|%|;|'|\*")
_REMEDY = 'set csv_header to "present" or "absent"'
_TEXT_REMEDY = 'set format to "text" to join such sources line by line'


def undecided(key: str, delimiter: bytes, columns: int) -> Decision:
    """Return the decision for a source without a known data set."""
    return Undecided("no other source of its data set was looked at")


class Begin(NamedTuple):
    """How a source of CSV or TSV begins, and its line ends.

    Attributes:
        header: its first record without the line end; empty if that is a row.
        delimiter: one byte; the format's usual one if the caller declared that there is no header.
        columns: fields of a record; 0 if the caller declared what the first record is.
        header_end: the line end of the first record.
        mixed: whether other line ends follow.
    """

    header: bytes
    delimiter: bytes
    columns: int
    header_end: bytes
    mixed: bool = False

    @property
    def dialect(self) -> bytes:
        """All but the header as bytes; sources with equal bytes can share an output."""
        ends = {b"\r\n": b"crlf", b"\n": b"lf"}[self.header_end]
        return b"%b%d %b%b" % (self.delimiter, self.columns, ends, b" mixed" * self.mixed)

    @classmethod
    def of(cls, header: bytes, dialect: bytes) -> Begin:
        """Parse the bytes of :attr:`dialect`; empty bytes mean LF."""
        if not dialect:
            return cls(header, b",", 0, b"\n")
        columns, ends, *mixed = dialect[1:].split(b" ")
        end = b"\r\n" if ends == b"crlf" else b"\n"
        return cls(header, dialect[:1], int(columns), end, mixed=bool(mixed))


def begin_of(
    head: bytes, key: str, format: Format, csv_header: str, decide: Decide, *, complete: bool
) -> Begin:
    """Return how a source begins.

    Args:
        head: the first plain bytes, without a BOM.
        key: the source's key.
        format: CSV or TSV.
        csv_header: the setting: ``auto``, ``present`` or ``absent``.
        decide: called with ``auto``.
        complete: whether ``head`` is the whole source.

    Raises:
        UnreadableSource: AMBIGUOUS_HEADER if it is not certain, UNKNOWN_FORMAT if the line ends
            are carriage returns alone, MALFORMED for a record that does not end within the head
            or is longer than 1 MiB.
    """
    line = head[: head.find(b"\n") + 1] or head
    _refuse_unusual(line, head, declared=csv_header != "auto")
    if csv_header == "absent":
        _refuse_lone_returns(line.removesuffix(b"\n").removesuffix(b"\r"), head)
        usual = _USUAL[format]
        first = first_record_of(head, usual)
        line_end = first.line_end if first is not None else b""
        return _with_ends(Begin(b"", usual, 0, line_end or b"\n"), head, complete=complete)
    records = {one: _record(head, one, complete=complete) for one in delimiters_of(line, format)}
    if csv_header == "auto":
        delimiter, dialect = _decided(head, key, records, decide, complete=complete)
        columns, is_header = dialect.columns, bool(dialect.header)
        line_end = dialect.line_end
    else:
        if len({one.record for one in records.values()}) > 1:
            raise ambiguous("where its first record ends depends on the delimiter", head)
        delimiter = max(records, key=line.count)
        columns, is_header, line_end = 0, True, b"\n"
    first = records[delimiter]
    header = first.record if is_header else b""
    return _with_ends(
        Begin(header, delimiter, columns, first.line_end or line_end), head, complete=complete
    )


def _decided(
    head: bytes, key: str, records: dict[bytes, FirstRecord], decide: Decide, *, complete: bool
) -> tuple[bytes, CsvDialect]:
    """Return the delimiter and the data set's decision, after a check against this source."""
    found: dict[bytes, CsvDialect] = {}
    fault = ""
    for delimiter, first in records.items():
        fields = fields_of(first.record, delimiter)
        if len(fields) < 2:
            fault = fault or "its first record has one column"
            continue
        decision = decide(key, delimiter, len(fields))
        if isinstance(decision, Undecided):
            fault = decision.why
            continue
        contradiction = _contradiction(decision, first, fields, head, complete=complete)
        if contradiction:
            raise ambiguous(contradiction, head)
        found[delimiter] = decision
    if not found:
        raise ambiguous(fault, head)
    if len({bool(one.header) for one in found.values()}) > 1:
        raise ambiguous("its delimiters make a header and a row of its first record", head)
    delimiter = max(found, key=lambda one: found[one].columns)
    return delimiter, found[delimiter]


def _contradiction(
    dialect: CsvDialect, first: FirstRecord, fields: list[str], head: bytes, *, complete: bool
) -> str:
    if dialect.header:
        if first.record == dialect.header:
            return ""
        return "it does not begin with the header of its data set"
    below = (
        ()
        if any(dialect.types)
        else rows_of(head[first.end :], dialect.delimiter, complete=complete)
    )
    fault = dialect.row_fault(fields, below)
    return f"the sources of its data set have no header, and {fault}" if fault else ""


def _with_ends(begin: Begin, head: bytes, *, complete: bool) -> Begin:
    counter = RecordCounter(begin.delimiter)
    counter.feed(head)
    if complete:
        counter.finish()
    return begin._replace(mixed=bool(counter.lf and counter.crlf))


def _refuse_unusual(line: bytes, head: bytes, *, declared: bool) -> None:
    """Refuse first lines that readers skip, or on which they disagree."""
    if _SEPARATOR.match(line):
        raise ambiguous("it starts with a sep= line", head, _TEXT_REMEDY)
    if declared:
        return
    if _COMMENT.match(line):
        raise ambiguous("it starts with a comment", head)
    if not line.strip(b' \t\r\n"' + b"".join(DELIMITERS)):
        raise ambiguous("its first record is blank", head)


def delimiters_of(line: bytes, format: Format) -> tuple[bytes, ...]:
    """Return the delimiters in a first line; a comma if it has none, a tab for TSV."""
    if format is Format.TSV:
        return (b"\t",)
    return tuple(one for one in DELIMITERS if one in line) or (b",",)


def ambiguous(seen: str, head: bytes, remedy: str = _REMEDY) -> UnreadableSource:
    """Return the error for a source whose first record may or may not be a header."""
    return refused(QuarantineReason.AMBIGUOUS_HEADER, seen, head, remedy)


def _record(head: bytes, delimiter: bytes, *, complete: bool) -> FirstRecord:
    found = first_record_of(head, delimiter)
    if found is None or not (found.ended or complete):
        raise malformed("its first record does not end within the first bytes read")
    if len(found.record) > LONGEST_HEADER:
        raise malformed(f"its first record is longer than {LONGEST_HEADER:,} bytes")
    _refuse_lone_returns(found.record, head)
    return found


def _refuse_lone_returns(record: bytes, head: bytes) -> None:
    if b"\r" in record:
        seen = "carriage returns alone seem to end its lines"
        raise refused(QuarantineReason.UNKNOWN_FORMAT, seen, head, _TEXT_REMEDY)
