"""What the first record of CSV and TSV is: a row, the names of columns, or nobody can tell.

Two wrong guesses lose or add records: a row that is taken for a header is left out wherever it
stands first, and a header that is taken for a row is repeated among the rows. So there is none.

| First record | Records below | It is |
|---|---|---|
| has a value that names no column, such as a time or an address | values of the same kind in this column | a row: sources are joined whole |
| different names, none empty, none that reads as a value | as many fields each; in at least one column, values | a header, if the sources of the group confirm it (``compactor.outputs.headers``) |
| the same | none | a header, if others confirm it |
| anything else: ``sep=``, a comment, a blank line, text over text | any | ambiguous: left alone |

What is read is the first and the last records of a source, under each delimiter that its first
line has. With ``csv_header`` the first record is what the setting says, and only what no setting
can mean is left alone: a ``sep=`` line, a blank one, a carriage return alone as line end.
"""  # noqa: E501 - a table

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import islice
from types import MappingProxyType
from typing import NamedTuple

from compactor.errors import UnreadableSource
from compactor.formats.delimited import DELIMITERS, records_pattern
from compactor.formats.refusal import refused
from compactor.formats.usual_rows import (
    FIRST_BYTES,
    FIRST_ROWS,
    LAST_BYTES,
    LAST_ROWS,
    MOST_COLUMNS,
    MOST_EVIDENCE,
    usual_evidence,
)
from compactor.formats.values import (
    CERTAIN,
    EMPTY,
    are_of_kind,
    are_values,
    is_name,
    is_scale,
    kind_of,
)
from compactor.model import Format, QuarantineReason

# It is held for each output under way, and split to see whether it is one.
LONGEST_HEADER = 1 << 20
_USUAL = {Format.CSV: b",", Format.TSV: b"\t"}
_MOST_SAMPLED_BYTES = 1 << 20
# Sources of one kind begin with one line; what it says is kept.
_SHORT_LINE = 4 << 10
_SEPARATOR = re.compile(rb'"?sep=', re.IGNORECASE)
_COMMENT = re.compile(rb"#|//|--|%|;|'|\*")
# First fields of records that begin a transmission, not a table.
_TAGS = frozenset(("h", "hd", "hdr", "head", "header", "fh", "fhr", "fhd", "bof", "boh"))
_REMEDY = 'set csv_header to "present" or "absent"'
_TEXT_REMEDY = 'set format to "text" to join such sources line by line'


class FirstRecord(NamedTuple):
    """What the first record is.

    Attributes:
        header: the record without its line end; empty where it is a row.
        dialect: delimiter and number of fields, for rows without names: others do not mix. Below
            a header, the delimiter, unless it is the usual one of the format.
        evidence: bit mask of the columns whose values show that this is a header, 0 where there
            are no rows; None for what needs no confirmation.
    """

    header: bytes = b""
    dialect: bytes = b""
    evidence: int | None = None


def first_record(head: bytes, format: Format, csv_header: str, *, complete: bool) -> FirstRecord:
    """What the first record of a source is.

    Args:
        head: first plain bytes, without a BOM.
        format: CSV or TSV.
        csv_header: ``auto``, ``present`` or ``absent``, as the setting says.
        complete: ``head`` is the whole source.

    Raises:
        UnreadableSource: AMBIGUOUS_HEADER where it cannot be told, UNKNOWN_FORMAT for carriage
            returns alone as line ends, MALFORMED for a record that does not end within the head
            or is longer than 1 MiB.
    """
    line = head[: head.find(b"\n") + 1] or head
    if csv_header == "auto":
        records = None
        if len(line) <= _SHORT_LINE and (complete or line.endswith(b"\n")):
            records = _plain_records(line, format)
        if records is None:
            records = _records(head, line, format, complete=complete)
            if _COMMENT.match(line):
                raise ambiguous("it starts with a comment", head)
        found = _certain(head, records, complete=complete)
        if not found.header:
            return found
        return FirstRecord(found.header, _told(found.dialect, format), found.evidence)
    if csv_header == "absent":
        _refuse_separator(line, head)
        _refuse_lone_returns(line, head)
        return FirstRecord()
    records = _records(head, line, format, complete=complete)
    if len(set(records.values())) > 1:
        raise ambiguous("where its first record ends hangs on the delimiter", head)
    most = max(records, key=line.count)
    return FirstRecord(records[most], _told(most, format))


@lru_cache(256)
def _plain_records(line: bytes, format: Format) -> Mapping[bytes, bytes] | None:
    """The first record under each delimiter, from a whole line; None if more has to be seen."""
    record = line.removesuffix(b"\n").removesuffix(b"\r")
    if b'"' in record or b"\r" in record or _COMMENT.match(line) or _SEPARATOR.match(line):
        return None
    delimiters = delimiters_of(line, format)
    if not record.strip(b" \t" + b"".join(delimiters)):
        return None
    return MappingProxyType(dict.fromkeys(delimiters, record))


def _records(head: bytes, line: bytes, format: Format, *, complete: bool) -> Mapping[bytes, bytes]:
    _refuse_separator(line, head)
    delimiters = delimiters_of(line, format)
    if not line.strip(b' \t\r\n"' + b"".join(delimiters)):
        raise ambiguous("its first record is blank", head)
    return {one: _record(head, one, complete=complete) for one in delimiters}


def _refuse_separator(line: bytes, head: bytes) -> None:
    if _SEPARATOR.match(line):
        raise ambiguous("it starts with a sep= line", head, _TEXT_REMEDY)


def _told(delimiter: bytes, format: Format) -> bytes:
    return b"" if delimiter == _USUAL[format] else delimiter


def delimiters_of(line: bytes, format: Format) -> tuple[bytes, ...]:
    """Those that a first line has; a comma where it has none, a tab for TSV."""
    if format is Format.TSV:
        return (b"\t",)
    return tuple(one for one in DELIMITERS if one in line) or (b",",)


def ambiguous(seen: str, head: bytes, remedy: str = _REMEDY) -> UnreadableSource:
    """The error for a source of which nobody can tell whether it has a header."""
    return refused(QuarantineReason.AMBIGUOUS_HEADER, seen, head, remedy)


def _record(head: bytes, delimiter: bytes, *, complete: bool) -> bytes:
    found = records_pattern(delimiter).match(head)
    if found is None or not (found[2] or complete):
        raise _malformed("its first record does not end within the first bytes read")
    if found.end(1) > LONGEST_HEADER:
        raise _malformed(f"its first record is longer than {LONGEST_HEADER:,} bytes")
    record = found[1].removesuffix(b"\r")
    _refuse_lone_returns(record, head)
    return record


def _refuse_lone_returns(record: bytes, head: bytes) -> None:
    if b"\r" in record.removesuffix(b"\n").removesuffix(b"\r"):
        seen = "carriage returns alone seem to end its lines"
        raise refused(QuarantineReason.UNKNOWN_FORMAT, seen, head, _TEXT_REMEDY)


def _malformed(detail: str) -> UnreadableSource:
    return UnreadableSource(QuarantineReason.MALFORMED, detail)


class _First(NamedTuple):
    """What the first record alone tells, under one delimiter.

    Attributes:
        certain: columns with a value that names no column, and of what kind.
        doubt: why it is not certain to be a row even so, if no record follows; empty if it is.
        scale: numbers that may name columns.
        fault: why it is no header; empty where it may be one.
    """

    fields: tuple[str, ...]
    certain: tuple[tuple[int, str], ...]
    scale: bool
    doubt: bool
    fault: str


def _certain(head: bytes, records: Mapping[bytes, bytes], *, complete: bool) -> FirstRecord:
    found: list[FirstRecord] = []
    fault = ""
    for delimiter, record in records.items():
        first = _first(record, delimiter)
        if first.fault and not first.certain:
            fault = fault or first.fault
            continue
        evidence = _usual(first, head, len(record), delimiter, complete=complete)
        if evidence:
            found.append(FirstRecord(record, delimiter, evidence))
            continue
        rows = _rows(head, len(record), delimiter, complete=complete)
        if _is_row(first, rows):
            return FirstRecord(dialect=b"%b%d" % (delimiter, len(first.fields)))
        fault = first.fault or _fault_below(first, rows)
        if fault:
            continue
        last = _last_rows(head, len(record), delimiter) if complete else []
        evidence = _evidence(first, rows, last)
        if evidence or not rows:
            found.append(FirstRecord(record, delimiter, evidence))
        else:
            fault = "it has no column whose values tell rows from names"
    if len(found) != 1:
        seen = "more than one delimiter makes columns of it" if found else fault
        raise ambiguous(seen, head)
    return found[0]


def _usual(first: _First, head: bytes, start: int, delimiter: bytes, *, complete: bool) -> int:
    """The evidence below what may be a header, where it is seen at once; else 0."""
    if first.certain or first.fault:
        return 0
    return usual_evidence(head, start, delimiter, len(first.fields), complete=complete)


@lru_cache(256)
def _first(record: bytes, delimiter: bytes) -> _First:
    # Sources of one kind start with the same record, or with different ones of a few dozen bytes.
    (fields,) = _parsed(_text(record), delimiter.decode(), 1) or ([],)
    kinds = [kind_of(field) for field in fields]
    same = len({kind for kind in kinds[1:] if kind != EMPTY}) == 1
    labelled = kinds[:1] in ([None], [EMPTY]) and len(fields) > 2 and same
    return _First(
        fields=tuple(fields),
        certain=tuple((n, kind) for n, kind in enumerate(kinds) if kind and kind in CERTAIN),
        scale=len(fields) > 2 and is_scale(fields),
        doubt=labelled and kinds[1] in CERTAIN,
        fault=_no_header(fields, kinds),
    )


def _no_header(fields: Sequence[str], kinds: Sequence[str | None]) -> str:
    if fields and fields[0].strip().lower() in _TAGS and len(fields) > 1:
        return "its first field may mark a header record of another kind"
    for field, kind in zip(fields, kinds, strict=True):
        if kind == EMPTY:
            return "its first record has an empty field"
        if kind is not None:
            return f"its first record has a field that reads as a {kind}"
        if not is_name(field):
            return "its first record has a field that is hardly a name"
    if len({field.strip().lower() for field in fields}) < len(fields):
        return "its first record has two equal fields"
    return ""


def _is_row(first: _First, rows: Sequence[Sequence[str]]) -> bool:
    """Whether a value that names no column stands over others of its kind."""
    if not rows:
        return bool(first.certain) and not first.doubt and not first.scale
    if first.scale and all(kind == "number" for _, kind in first.certain):
        return False
    for column, kind in first.certain:
        below = _column(rows, column)
        # A record without this column is of another kind.
        if len(below) == len(rows) and are_of_kind(kind, below):
            return not _has_names_over_values(first, rows)
    return False


def _has_names_over_values(first: _First, rows: Sequence[Sequence[str]]) -> bool:
    """Whether other columns speak for a header."""
    return any(
        is_name(field) and are_values(_column(rows, column) or [""])
        for column, field in enumerate(first.fields)
    )


def _column(rows: Sequence[Sequence[str]], column: int) -> list[str]:
    return [row[column] for row in rows if len(row) > column]


def _fault_below(first: _First, rows: Sequence[Sequence[str]]) -> str:
    if rows and set(map(len, rows)) != {len(first.fields)}:
        return "its first records have different numbers of fields"
    return ""


def _evidence(first: _First, rows: Sequence[Sequence[str]], last: Sequence[Sequence[str]]) -> int:
    """Columns that hold nothing but values, as a bit mask.

    A row that is equal to the first record is no value and no evidence; others find it.
    """
    width, names = len(first.fields), list(first.fields)
    every = [row for row in (*rows, *last) if row != names and len(row) == width]
    mask = found = 0
    for column, fields in zip(range(MOST_COLUMNS), zip(*every, strict=True), strict=False):
        if are_values(fields):
            mask |= 1 << column
            found += 1
            if found == MOST_EVIDENCE:
                break
    return mask


def _rows(head: bytes, start: int, delimiter: bytes, *, complete: bool) -> list[list[str]]:
    """The first records behind the first one, those that are whole."""
    size = FIRST_BYTES
    while True:
        window = head[start : start + size]
        whole = complete and start + size >= len(head)
        # The first of them is what the line end of the first record leaves.
        rows = _parsed(window.decode("latin-1"), delimiter.decode(), FIRST_ROWS + 1)
        if len(rows) <= FIRST_ROWS and not whole:
            del rows[-1:]
        rows = list(filter(None, rows))
        if rows or whole or size >= min(_MOST_SAMPLED_BYTES, len(head)):
            return rows
        size *= 16


def _last_rows(head: bytes, start: int, delimiter: bytes) -> list[list[str]]:
    """The last records, where no quote hides where they begin."""
    window = head[max(start, len(head) - LAST_BYTES) :]
    if b'"' in window:
        return []
    lines = window.rstrip(b"\r\n").rsplit(b"\n", LAST_ROWS)[1:]
    by = delimiter.decode()
    return [line.decode("latin-1").rstrip("\r").split(by) for line in lines if line]


def _parsed(text: str, by: str, most: int) -> list[list[str]]:
    """As many records as Python's reader finds before what it cannot take."""
    if '"' not in text and "\r" not in text:
        # What the reader would do, in a third of its time.
        lines = text.split("\n", most)[:most]
        if not lines[-1]:
            lines.pop()
        return [line.split(by) if line else [] for line in lines]
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=by)
    try:
        return list(islice(reader, most))
    except csv.Error:
        return []


def _text(record: bytes) -> str:
    try:
        return record.decode()
    except UnicodeDecodeError:
        return record.decode("latin-1")
