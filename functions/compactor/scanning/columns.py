"""Evidence in samples of CSV and TSV: how fields are delimited, and whether there is a header."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from enum import StrEnum

from compactor.errors import UnreadableSource
from compactor.formats.columns import Dialect, fields_of, records_of

_DELIMITERS = (",", "\t", ";", "|", "\x01")
# In the order in which they are tried: the first that fits as many objects as any other is taken.
_QUOTING: tuple[Mapping[str, str], ...] = ({}, {"escape": "backslash"}, {"quote": "none"})
# Of few objects each may be a table with a header of its own.
_READ_BYTES, _SHOWN_ROWS, _FEW = 32 << 10, 200, 8
_TYPED = re.compile(
    r"[+-]?[$\u20ac\u00a3]?\d[\d.,']*(?:e[+-]?\d+)?%?|true|false"
    r"|\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?:[T ].*)?|\d{1,2}:\d\d.*|[0-9a-f]{8}-[0-9a-f-]{27}"
    r"|\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?|https?://.*|[^@\s]+@[^@\s]+\.[a-z]{2,}",
    re.IGNORECASE,
)

Table = list[list[bytes]]
"""The fields of each record of a sample, all records with as many."""


class Confidence(StrEnum):
    """How far the evidence goes."""

    CERTAIN = "certain"
    LIKELY = "likely"
    UNSURE = "unsure"


def read_tables(
    samples: Sequence[tuple[bytes, bool]], first_delimiter: str
) -> tuple[Mapping[str, str], list[Table], bool]:
    """Return the options of the dialect that fits most samples, and the samples that it reads.

    And whether no other delimiter fits as many.

    Args:
        samples: the first bytes of each, and whether these are all.
        first_delimiter: that the extension suggests.
    """
    dialects = []
    for delimiter in sorted(_DELIMITERS, key=lambda one: one != first_delimiter):
        ways = []
        for quoting in _QUOTING:
            dialect = Dialect(delimiter.encode(), "quote" not in quoting, "escape" in quoting)
            tables = [table for sample in samples if (table := _table(*sample, dialect))]
            other = {} if delimiter == first_delimiter else {"delimiter": delimiter}
            ways.append(({**other, **quoting}, tables))
        # The first of several that fit as many.
        dialects.append(max(ways, key=_fit))
    best = max(dialects, key=lambda way: (_fit(way), sum(len(table[0]) for table in way[1])))
    rivals = sum(_fit(way) == _fit(best) for way in dialects)
    return *best, rivals == 1 or not _fit(best)[0]


def _fit(way: tuple[Mapping[str, str], list[Table]]) -> tuple[int, int]:
    """Return how many samples a dialect divides into several columns, and how many it reads."""
    return sum(len(table[0]) > 1 for table in way[1]), len(way[1])


def _table(plain: bytes, complete: bool, dialect: Dialect) -> Table | None:
    """Return the records, or None if they are not all alike; a last one that is cut is dropped."""
    if not complete or len(plain) > _READ_BYTES:
        plain, complete = plain[:_READ_BYTES].rpartition(b"\n")[0] + b"\n", False
    table, size = [], 0
    try:
        for record in records_of((plain,), dialect):
            table.append(fields_of(record, dialect))
            size += len(record)
    except UnreadableSource:
        if complete or 2 * size < len(plain):
            return None
    return table if len({len(fields) for fields in table}) == 1 else None


def header_of(tables: Sequence[Table]) -> tuple[bool, Confidence, str]:
    """Return whether first records name the columns, how sure that is, and the evidence."""
    many, firsts = len(tables), Counter(tuple(table[0]) for table in tables)
    below = sum(any(tuple(row) in firsts for row in table[1:]) for table in tables)
    kinds = [_first_like_others(table) for table in tables]
    named, rows = kinds.count(False), kinds.count(True)
    lines = "the same first line" if len(firsts) == 1 else f"{len(firsts)} different first lines"
    evidence = f"{lines} in {many} of {many} objects, found as a row in {below or 'none'}"
    if named or rows:
        evidence += f"; its fields are not of the types below them in {named} of {named + rows}"
    if many == 1:
        return named > 0, Confidence.UNSURE, f"one object alone; {evidence}"
    if 2 * len(firsts) <= many and 8 * below <= many and not rows:
        sure = len(firsts) == 1 and not below and 2 * named > many > 2
        likely = named or (len(firsts) == 1 and many > 2)
        confidence = Confidence.CERTAIN if sure else Confidence.LIKELY
        return True, confidence if likely else Confidence.UNSURE, evidence
    if 2 * len(firsts) > many > (2 if rows else _FEW) and not named:
        return False, Confidence.CERTAIN if 2 * rows > many else Confidence.LIKELY, evidence
    return named > rows, Confidence.UNSURE, evidence


def _first_like_others(table: Table) -> bool | None:
    """Return whether the first record has numbers, times and the like where all others do.

    None if it has some and lacks others, or if there are no such columns.
    """
    typed = []
    for first, *others in zip(*table[: _SHOWN_ROWS + 1], strict=True):
        values = [field for field in others if field.strip(b'" ')]
        if first.strip(b'" ') and values and all(map(_is_typed, values)):
            typed.append(_is_typed(first))
    return all(typed) if typed and any(typed) == all(typed) else None


def _is_typed(field: bytes) -> bool:
    return _TYPED.fullmatch(field.decode("latin-1").strip('" ')) is not None
