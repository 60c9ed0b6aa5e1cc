"""Data sets of delimited text, with the truth of what is in them.

The truth is written down before the bytes are: rows as lists of strings, whether a header stands
above them, the delimiter and the line end. Nothing of the product is asked or imported here.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from ipaddress import ip_address
from time import strptime, struct_time
from typing import Literal
from uuid import UUID

Row = tuple[str, ...]

# A delimiter and a number of fields.
Shape = tuple[str, int]

# Fewer sources show no header.
_ENOUGH = 3
# No words of prose such as "missing": where a column has one, another may be its value.
_NULLS = frozenset(("", "-", "--", "?", "\\n", "n/a", "#n/a", "na", "nan", "nil", "none", "null"))
_TIMES = (
    *("%Y-%m-%d", "%m/%d/%Y", "%d.%m.%Y", "%Y-%m", "%b %Y", "%H:%M", "%H:%M:%S"),
    *("%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%S.%fZ"),
)
# Types of values that name no column.
_NO_NAMES = frozenset(("time", "address", "ID"))
_MAIL = re.compile(r"[^@\s]+@[^@\s]+\.[a-z]+")
_PATH = re.compile(r"(?:https?:/)?/\S*")


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
    def shape(self) -> Shape:
        """Of its records, as the first one shows it."""
        return self.form.delimiter, len(self.first)

    @property
    def headed(self) -> Source:
        """The same bytes, with its first row taken for a header."""
        if self.header is not None or not self.rows:
            return self
        return replace(self, header=self.rows[0], rows=self.rows[1:])

    @property
    def unheaded(self) -> Source:
        """The same bytes, with its header taken for a row."""
        return replace(self, header=None, rows=(self.header, *self.rows)) if self.header else self

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
        posed: shapes of which no reader of the bytes alone could tell first rows from a header.
    """

    kind: str
    sources: tuple[Source, ...]
    expected: Expected = Expected.EITHER
    name: str = ""
    posed: frozenset[Shape] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "posed", _posed(self.sources))


def _posed(sources: Sequence[Source]) -> frozenset[Shape]:
    """The shapes whose first rows are, to the letter, what the product documents as a header.

    Three sources or more begin with the identical line and have no header in truth. Its fields
    differ, none comes again in its column, and the values of one column are of a type that its
    first one is not.
    """
    some = [one for one in sources if one.first]
    shapes = {one.shape for one in some}
    return frozenset(
        shape for shape in shapes if _poses([one for one in some if one.shape == shape])
    )


def _poses(sources: Sequence[Source]) -> bool:
    at_first = [one for one in sources if not one.wave]
    # Too few wait for what comes later.
    some = at_first if len(at_first) >= _ENOUGH else sources
    lines = {(one.first, one.form.quoting) for one in some}
    if len(some) < _ENOUGH or len(lines) > 1 or any(one.header is not None for one in some):
        return False
    names = [name.strip() for name in some[0].first]
    columns = [
        {row[number].strip() for one in some for row in one.rows[1:] if number < len(row)}
        for number in range(len(names))
    ]
    if len(set(names)) < len(names) or any(map(set.__contains__, columns, names)):
        return False
    return any(
        name.lower() not in _NULLS and not _type(name) and _is_typed(column)
        for name, column in zip(names, columns, strict=True)
    )


def have_rows_for_headers(sources: Sequence[Source]) -> bool:
    """Whether the headers of these sources are, by all that their bytes show, rows.

    They differ between the sources, or one stands below as well. Where the values of a column have
    a type theirs is the same; or one of them is a time, an address or an ID above such values,
    which no name of a column is.
    """
    some = [one for one in sources if one.first]
    headers = {one.header for one in some}
    rows = {row for one in some for row in one.rows}
    if None in headers or not (len(headers) > 1 or headers & rows):
        return False
    fits: list[bool] = []
    for number, fields in enumerate(zip(*(one.first for one in some), strict=False)):
        below = _types(row[number] for row in rows if number < len(row))
        above = _types(fields)
        if below and above and below | above <= _NO_NAMES:
            return True
        if len(below) == 1 and "" not in below:
            fits.append(above == below)
    return bool(fits) and all(fits)


def _types(values: Iterable[str]) -> set[str]:
    return {_type(one.strip()) for one in values if one.strip().lower() not in _NULLS}


def _is_typed(column: set[str]) -> bool:
    types = {_type(value) for value in column if value.lower() not in _NULLS}
    return len(types) == 1 and "" not in types


def _type(text: str) -> str:
    """What Python's own readers of values take it for; empty for a text."""
    for name, read in _READERS.items():
        try:
            read(text)
        except ValueError:
            continue
        return name
    return "mail" if _MAIL.fullmatch(text) else "path" if _PATH.fullmatch(text) else ""


def _number(text: str) -> float:
    return float(text.removeprefix("$").removesuffix("%").replace(",", ""))


def _truth(text: str) -> bool:
    return bool(("false", "true").index(text.lower()))


def _time(text: str) -> struct_time:
    for form in _TIMES:
        with suppress(ValueError):
            return strptime(text, form)
    raise ValueError(text)


_READERS: dict[str, Callable[[str], object]] = {
    "number": _number,
    "truth value": _truth,
    "time": _time,
    "address": ip_address,
    "ID": UUID,
}
