"""Which columns hold nothing but usual values, told without splitting the records of a table.

What :mod:`compactor.formats.first_record` finds field by field, one search finds in most tables:
with numbers, points in time, digests, addresses or paths in two columns, and no quotes up to there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from compactor.formats.values import USUAL_VALUE, WORD, kind_of

#: Records that are looked at: behind the first one, and at the end; and bytes for them.
FIRST_ROWS = 8
FIRST_BYTES = 2 << 10
LAST_ROWS = 2
LAST_BYTES = 2 << 10
#: Columns that are looked at, and of evidence that are enough: a wide table has hundreds.
MOST_COLUMNS = 62
MOST_EVIDENCE = 2
_SHORT_FIELD = 64
_WRITTEN_OUT = 32
# What values are written like: each reads as a value to ``kind_of``, and holds no delimiter.
_VALUES = (
    USUAL_VALUE.encode(),
    rb"(?:(?=[a-fA-F]*+\d)[0-9a-fA-F]{16,})?",
    rb"(?:(?=[a-fA-F-]*+\d)[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})?",
    rb"(?:\d{1,3}(?:\.\d{1,3}){3})?",
    rb"(?:/[!#-+\--:<-{}~]*+)?",
)
_VALUE = re.compile(b"|".join(b"(%b)" % one for one in _VALUES))
# Columns of such words are no evidence; others are told by one field that reads as no value.
_WORD_COLUMN, _OTHER_COLUMN = len(_VALUES), len(_VALUES) + 1
_WORDS = WORD.encode()


def usual_evidence(head: bytes, start: int, delimiter: bytes, width: int, *, complete: bool) -> int:
    """The first columns that hold nothing but values, as a bit mask.

    Args:
        head: of a source, or all of it.
        start: where its first record ends, which has no value in any column.
        delimiter: one byte.
        width: fields of the first record.
        complete: ``head`` is the whole source.

    Returns:
        0 where that, or whether all records have as many fields, takes a closer look.
    """
    at = head.find(b"\n", start) + 1
    if width < 2 or not at:
        return 0
    end = head.find(b"\n", at)
    first = head[at : end if end >= 0 else len(head)].removesuffix(b"\r").split(delimiter)
    # With more fields than names it is unlike the first record, and the search says so.
    for columns in _likely_columns(first[:width], delimiter):
        rows, mask = _rows(delimiter, width, columns)
        found = rows.match(head, at, start + FIRST_BYTES)
        if found is not None:
            stop = found.end()
            whole = complete and stop == len(head)
            enough = whole or head.count(b"\n", at, stop) >= FIRST_ROWS
            return mask if enough and (not complete or _ends_alike(head, start, rows)) else 0
    return 0


def _likely_columns(row: list[bytes], delimiter: bytes) -> Iterator[bytes]:
    """What the columns of a table may be: as in the last such table, or as its first row says."""
    known = _known_columns(delimiter, len(row))
    if _may_be(known[0], row):
        yield known[0]
    columns = _usual_columns(row)
    if columns is not None:
        known[0] = columns
        yield columns


@lru_cache(64)
def _known_columns(delimiter: bytes, width: int) -> list[bytes]:
    """What the columns of the last such table are: those of the next one are mostly the same."""
    return [b""]


def _may_be(columns: bytes, row: list[bytes]) -> bool:
    """Whether the columns of another table are this one's, if values are where it has them."""
    if not columns or len(row) < len(columns):
        return False
    for column, field in zip(columns, row, strict=False):
        if not field or (column >= _WORD_COLUMN and _column(field) != column):
            return False
    return True


def _usual_columns(row: list[bytes]) -> bytes | None:
    """What each column is, up to the last that is evidence, by the first row; None for unusual."""
    columns = bytearray()
    found = 0
    for field in row[:MOST_COLUMNS]:
        column = 0 if field.isdigit() else _column(field)
        if column is None:
            return None
        columns.append(column)
        if column < _WORD_COLUMN:
            found += 1
            if found == MOST_EVIDENCE:
                break
    return bytes(columns) if found else None


def _column(field: bytes) -> int | None:
    if not field or len(field) > _SHORT_FIELD or b'"' in field:
        return None
    value = _VALUE.fullmatch(field)
    return value.lastindex - 1 if value is not None and value.lastindex else _no_value(field)


@lru_cache(4096)
def _no_value(field: bytes) -> int | None:
    kind = kind_of(field.decode("latin-1"))
    if kind is None:
        return _OTHER_COLUMN
    return _WORD_COLUMN if kind == "word" else None


@lru_cache(256)
def _rows(delimiter: bytes, width: int, columns: bytes) -> tuple[re.Pattern[bytes], int]:
    """Records with values in some columns, and quotes around whole fields of one line at most."""
    by = re.escape(delimiter)
    other = rb'(?:"[^"\r\n]*+(?:""[^"\r\n]*+)*+"(?=[%b\r\n]|\Z)|[^%b"\r\n]*+)' % (by, by)
    forms = (*_VALUES, b"(?:%b)?" % _WORDS)
    looked_at = (b"(?>%b)" % forms[one] if one < _OTHER_COLUMN else other for one in columns)
    more = width - len(columns)
    # Written out it is found sooner, and takes longer to compile.
    rest = (by + other) * more if more <= _WRITTEN_OUT else rb"(?:%b%b){%d}+" % (by, other, more)
    record = by.join(looked_at) + rest + rb"\r?(?:\n|\Z)"
    mask = sum(1 << at for at, one in enumerate(columns) if one < _WORD_COLUMN)
    return re.compile(rb"(?:%b){1,%d}+" % (record, FIRST_ROWS)), mask


def _ends_alike(head: bytes, start: int, rows: re.Pattern[bytes]) -> bool:
    """Whether the last records are like the first, or nobody sees where they begin."""
    window = head[max(start, len(head) - LAST_BYTES) :]
    if b'"' in window:
        return True
    lines = window.rstrip(b"\r\n").rsplit(b"\n", LAST_ROWS)[1:]
    return rows.fullmatch(b"\n".join(lines)) is not None
