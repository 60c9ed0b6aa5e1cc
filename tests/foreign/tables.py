"""Data sets of delimited text, with the truth of what is in them.

The truth is written down before the bytes are: rows as lists of strings, whether a header stands
above them, the delimiter and the line end. Nothing of the product is asked or imported here.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

Row = tuple[str, ...]

_WORD = re.compile(r"[^\W\d][\w .-]*")
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32}|[A-Z][a-z]{2} \d{4}")
# Truth values, and words for nothing.
_NO_NAMES = frozenset(
    (
        *("true", "false", "yes", "no", "on", "off"),
        *("null", "none", "nan", "na", "nil", "unknown", "undefined", "missing"),
    )
)


class Expected(StrEnum):
    """What must become of a data set; its rows must be right in any case."""

    JOINED = "joined"
    LEFT = "left alone"
    EITHER = "either"


@dataclass(frozen=True)
class Form:
    """How rows are written.

    Attributes:
        delimiter: one character.
        end: of each line.
        quoting: one of the csv module's.
        bom: the byte order mark stands first.
        ended: the last line has its end.
        blank: so many empty lines follow.
    """

    delimiter: str = ","
    end: str = "\n"
    quoting: Literal[0, 1] = csv.QUOTE_MINIMAL
    bom: bool = False
    ended: bool = True
    blank: int = 0


@dataclass(frozen=True)
class Source:
    """One source and the truth of it.

    Attributes:
        path: of its key below the data set.
        header: None where the first record is a row, or where there is no record.
        rows: every record that is no header.
        form: how they are written.
        wave: the run before which it arrives, from 0.
    """

    path: str
    header: Row | None
    rows: tuple[Row, ...]
    form: Form
    wave: int = 0

    @property
    def body(self) -> bytes:
        """Its plain bytes."""
        records = [*([self.header] if self.header is not None else []), *self.rows]
        form = self.form
        if not records:
            return b"\xef\xbb\xbf" if form.bom else b""
        out = io.StringIO(newline="")
        writer = csv.writer(
            out, delimiter=form.delimiter, lineterminator=form.end, quoting=form.quoting
        )
        writer.writerows(records)
        text = out.getvalue()
        text = text if form.ended else text.removesuffix(form.end)
        text += form.end * form.blank
        return (b"\xef\xbb\xbf" if form.bom else b"") + text.encode()

    @property
    def blank(self) -> int:
        """Empty lines behind its records, which some count."""
        return max(0, self.form.blank - (not self.form.ended)) if self.first else 0

    @property
    def first(self) -> Row:
        """Its first record; empty where there is none."""
        if self.header is not None:
            return self.header
        return self.rows[0] if self.rows else ()


@dataclass(frozen=True)
class DataSet:
    """What one producer wrote, over all of its partitions.

    Attributes:
        kind: as the figures call it.
        sources: in no particular order.
        expected: what must become of it.
        name: of its keys, where they have to show which it is.
        undecidable: no reader of the bytes alone could tell its first rows from a header.
    """

    kind: str
    sources: tuple[Source, ...]
    expected: Expected = Expected.EITHER
    name: str = ""
    undecidable: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "undecidable", _is_undecidable(self.sources))


def _is_undecidable(sources: Sequence[Source]) -> bool:
    """Rows without a header that are, field by field, what files with a header look like.

    Every source of the first wave begins with the identical row of different fields, none comes
    again in its column, and one is a word where the others of its column are numbers or the like.
    """
    some = [one for one in sources if not one.wave and one.first]
    if not some or any(one.header is not None for one in some):
        return False
    shapes = {(one.form.delimiter, len(one.first)) for one in some}
    return any(_poses(some, *shape) for shape in shapes)


def _poses(sources: Sequence[Source], delimiter: str, width: int) -> bool:
    some = [one for one in sources if (one.form.delimiter, len(one.first)) == (delimiter, width)]
    first = some[0].first
    if any(one.first != first for one in some) or len(set(first)) < width:
        return False
    rest = [row for one in some for row in one.rows[1:] if len(row) == width]
    columns = [set(column) for column in zip(*rest, strict=True)]
    if any(name in column for name, column in zip(first, columns, strict=False)):
        return False
    return any(
        not _is_measured(name) and column and all(map(_is_measured, column - {""}))
        for name, column in zip(first, columns, strict=False)
    )


def _is_measured(text: str) -> bool:
    """It is no word: a number, a date, an address, an ID, a truth value, or nothing."""
    is_value = text.lower() in _NO_NAMES or _ID.fullmatch(text) is not None
    return is_value or _WORD.fullmatch(text) is None
