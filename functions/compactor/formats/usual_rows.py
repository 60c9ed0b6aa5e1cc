"""Which columns hold nothing but usual values, told without splitting the records of a table.

What :mod:`compactor.formats.first_record` finds field by field, one search finds in most tables:
without quotes, and with numbers or points in time in two columns.
"""

from __future__ import annotations

import re
from functools import lru_cache

from compactor.formats.values import USUAL_VALUE, kind_of

#: Records that are looked at: behind the first one, and at the end; and bytes for them.
FIRST_ROWS = 8
FIRST_BYTES = 2 << 10
LAST_ROWS = 2
LAST_BYTES = 2 << 10
#: Columns that are looked at, and of evidence that are enough: a wide table has hundreds.
MOST_COLUMNS = 62
MOST_EVIDENCE = 2
_SHORT_FIELD = 64
_USUAL = re.compile(USUAL_VALUE.encode())


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
    mask = _usual_columns(first)
    if not mask:
        return 0
    rows = _rows(delimiter, width, mask)
    found = rows.match(head, at, start + FIRST_BYTES)
    if found is None:
        return 0
    stop = found.end()
    if head.count(b"\n", at, stop) < FIRST_ROWS and not (complete and stop == len(head)):
        return 0
    return mask if not complete or _ends_alike(head, start, rows) else 0


def _usual_columns(row: list[bytes]) -> int:
    mask = found = 0
    for column, field in enumerate(row[:MOST_COLUMNS]):
        if field.isdigit() or (field and _USUAL.fullmatch(field)):
            mask |= 1 << column
            found += 1
            if found == MOST_EVIDENCE:
                break
        elif len(field) > _SHORT_FIELD or not _is_no_value(field):
            return 0
    return mask


@lru_cache(4096)
def _is_no_value(field: bytes) -> bool:
    return kind_of(field.decode("latin-1")) is None


@lru_cache(256)
def _rows(delimiter: bytes, width: int, mask: int) -> re.Pattern[bytes]:
    """Records with values in some columns, and no quote."""
    by, value = re.escape(delimiter), rb"(?>%b)" % USUAL_VALUE.encode()
    other = rb'[^%b"\r\n]*+' % by
    looked_at = mask.bit_length()
    columns = (value if mask >> column & 1 else other for column in range(looked_at))
    rest = rb"(?:%b%b){%d}" % (by, other, width - looked_at)
    record = by.join(columns) + rest + rb"\r?(?:\n|\Z)"
    return re.compile(rb"(?:%b){1,%d}+" % (record, FIRST_ROWS))


def _ends_alike(head: bytes, start: int, rows: re.Pattern[bytes]) -> bool:
    """Whether the last records are like the first, or nobody sees where they begin."""
    window = head[max(start, len(head) - LAST_BYTES) :]
    if b'"' in window:
        return True
    lines = window.rstrip(b"\r\n").rsplit(b"\n", LAST_ROWS)[1:]
    return rows.fullmatch(b"\n".join(lines)) is not None
