"""Whether a first line that several CSV or TSV sources share is their header, or one of their rows.

Pure, and stricter than what found headers before: only what admits no other reading is decided.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from enum import StrEnum

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9 _.:/()%#-]*")
# What a row holds and no column is called: numbers, dates and times, addresses, ids, truth.
_VALUE = re.compile(
    r"[+-]?[$€£]?[\d.,]*\d[\d.,]*(?:[eE][+-]?\d+)?[%a-zA-Z]{0,3}"
    r"|\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?:[T ].*)?"
    r"|\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?(?: ?[AaPp][Mm])?(?:Z|[+-]\d\d:?\d\d)?"
    r"|\d{8}T\d{4,6}(?:\.\d+)?Z?"
    r"|\d{1,3}(?:\.\d{1,3}){3}(?::\d+|/\d+)?"
    r"|(?=[0-9A-Fa-f:.]*:)[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f.]{0,15}){2,7}(?:/\d+)?"
    r"|[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
    r"|true|false|yes|no|null|none|nan|n/a|\\n|-",
    re.IGNORECASE,
)


class FirstLine(StrEnum):
    """What a first line is."""

    HEADER = "header"
    ROW = "row"
    UNDECIDED = "undecided"


def judge(line: bytes, delimiter: bytes, rows: Sequence[bytes], *, elsewhere: bool) -> FirstLine:
    """What a first line is, from itself and from rows below it.

    Args:
        line: without its end.
        delimiter: between fields.
        rows: some lines that follow it in its sources.
        elsewhere: it is also among the lines that follow.
    """
    names = fields_of(line, delimiter)
    if elsewhere or any(map(_is_value, names)):
        return FirstLine.ROW
    named = all(_NAME.fullmatch(name) for name in names) and len(set(names)) == len(names)
    if named and len(names) > 1 and _differ(names, [fields_of(row, delimiter) for row in rows]):
        return FirstLine.HEADER
    return FirstLine.UNDECIDED


def fields_of(line: bytes, delimiter: bytes) -> list[str]:
    """Fields of one record, without blanks around them; quotes as RFC 4180 has them."""
    text = line.decode("latin-1")
    try:
        found = next(csv.reader([text], delimiter=delimiter.decode()), [])
    except csv.Error:
        found = text.split(delimiter.decode())
    return [field.strip() for field in found]


def _is_value(field: str) -> bool:
    return _VALUE.fullmatch(field) is not None


def _differ(names: Sequence[str], rows: Iterable[Sequence[str]]) -> bool:
    """True when all rows have a value in one column, where the first line has a name."""
    whole = [row for row in rows if len(row) == len(names)]
    columns = zip(*whole, strict=True)
    return bool(whole) and any(all(map(_is_value, column)) for column in columns)
