"""Decides from a sample whether the CSV sources of a data set begin with a header.

A single file does not show whether its first record names columns or is a row. Several files do:

| First records of the sampled sources of one shape | Decision |
|---|---|
| identical; different fields that look like names (the first one may be blank: an index), none of which occurs as a value of its column; at least one column whose values are of a type, which no name is | a header |
| different; those that several sources share occur below, too; each reads as a row: of the type of every typed column, or with a value of its own columns; and all together are written and ordered as the rows below | rows |
| anything else, or fewer than three sources | undecided: such sources are left alone |

A shape is a delimiter and a number of fields, two or more.
"""  # noqa: E501 - a table

from __future__ import annotations

import csv
import hashlib
import io
import re
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from itertools import combinations, islice, pairwise
from typing import NamedTuple
from unicodedata import category

from compactor.formats.column_types import NULL, NULL_WORDS, TEXT, column_type, type_of
from compactor.formats.delimited import ends_within_quotes, first_record_of

#: How many sources of one shape a decision needs.
FEWEST_SOURCES = 3
_FEWEST_VALUES = 3
_MOST_ROWS = 500
# Words that identify the rows of a text column: those that occur more than once.
_MOST_WORDS = 500
_WORD_BYTES = 6
_LONGEST_NAME = 128
_NAME = re.compile(r"[^\W\d][\w .:/()%#&$@+*?'\[\]<>\u00b0-]*")
# Numbered things (web-1), versions, fragments of sentences and of paths.
_NO_NAME = re.compile(r"-\d|/\d|\d\.\d| /|: |\.$|\. (?![(\[])")
# If rows would have such first records with less probability than this, they are in doubt.
_LEAST_LIKELY = 0.01
_MOST_COMPARED = 1_000
# Types that one program writes in one form; digests and paths vary.
_WRITTEN_ALIKE = frozenset(("number", "time"))
_DIGITS = re.compile(r"\d+")
_LETTERS = re.compile(r"[^\W\d_]+")
# First fields of records that begin a transmission, not a table.
_TAGS = frozenset(("h", "hd", "hdr", "head", "header", "fh", "fhr", "fhd", "bof", "boh"))


class CsvDialect(NamedTuple):
    """How the CSV sources of one shape are written. Decided once for a data set, and pinned.

    Attributes:
        delimiter: one byte.
        columns: fields of each record.
        header: the first record of every source without its line end; empty if it is a row.
        types: of the values of each column, see :mod:`compactor.formats.column_types`.
        line_end: that of most sources, for sources that show none.
        words: digests of the values that occur more than once in each text column; only if no
            column has a type.
    """

    delimiter: bytes
    columns: int
    header: bytes
    types: tuple[str, ...]
    line_end: bytes = b"\n"
    words: tuple[frozenset[str], ...] = ()

    def row_fault(self, fields: Sequence[str], below: Iterable[Sequence[str]] = ()) -> str:
        """Return why a first record is not certain to be a row of these columns; empty if it is.

        Args:
            fields: the fields of the first record, one per column.
            below: records that follow it in its source.
        """
        typed = [(field, type) for field, type in zip(fields, self.types, strict=True) if type]
        for field, type in typed:
            if type_of(field) not in (type, NULL):
                return f"its first record has {field[:40]!r} where others have a {type}"
        if any(type_of(field) != NULL for field, _ in typed):
            return ""
        rows = [row for row in below if len(row) == len(fields) and list(row) != list(fields)]
        for number, field in enumerate(fields):
            words = self.words[number] if self.words else frozenset()
            if field.strip() and (word(field) in words or any(r[number] == field for r in rows)):
                return ""
        return "nothing in its first record shows that it is a row"


class Undecided(NamedTuple):
    """Why there is no decision, in words."""

    why: str


Decision = CsvDialect | Undecided


class SampledSource(NamedTuple):
    """The beginning of one source: its first record, and records after it."""

    first: bytes
    line_end: bytes
    fields: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def sampled(head: bytes, delimiter: bytes, columns: int, *, complete: bool) -> SampledSource | None:
    """Return a source for the sample; None if its first record is not of this shape.

    Args:
        head: its first plain bytes, without a BOM.
        delimiter: of the shape.
        columns: of the shape.
        complete: whether ``head`` is the whole source.
    """
    if complete and ends_within_quotes(head, delimiter):
        # The source is damaged, and what follows the quote is not a record.
        return None
    found = first_record_of(head, delimiter)
    if found is None or not (found.ended or complete):
        return None
    fields = fields_of(found.record, delimiter)
    if len(fields) != columns:
        return None
    rows = rows_of(head[found.end :], delimiter, complete=complete)
    return SampledSource(found.record, found.line_end, tuple(fields), rows)


def rows_of(text: bytes, delimiter: bytes, *, complete: bool) -> tuple[tuple[str, ...], ...]:
    """Return up to 500 whole records from the start of a text; blank lines are skipped."""
    reader = csv.reader(io.StringIO(_decoded(text), newline=""), delimiter=delimiter.decode())
    rows: list[tuple[str, ...]] = []
    try:
        rows.extend(map(tuple, islice(reader, _MOST_ROWS)))
    except csv.Error:
        return ()
    if not complete and len(rows) < _MOST_ROWS:
        del rows[-1:]
    return tuple(filter(None, rows))


def fields_of(record: bytes, delimiter: bytes) -> list[str]:
    """Return the fields of one record; empty if it cannot be parsed."""
    reader = csv.reader(io.StringIO(_decoded(record), newline=""), delimiter=delimiter.decode())
    try:
        return next(reader, [])
    except csv.Error:
        return []


def word(field: str) -> str:
    """Return the hex digest that identifies a value of a text column."""
    text = field.strip().encode("utf-8", "surrogateescape")
    return hashlib.blake2b(text, digest_size=_WORD_BYTES).hexdigest()


def decide(sources: Sequence[SampledSource], delimiter: bytes, columns: int) -> Decision:
    """Decide what the first records of these sources are, by the table above.

    Args:
        sources: sampled from all over a data set, of one shape.
        delimiter: of the shape.
        columns: of the shape.
    """
    if len(sources) < FEWEST_SOURCES:
        seen = f"{len(sources)} source{'s' if len(sources) != 1 else ''} of its data set"
        return Undecided(f"only {seen} have {columns} columns, and {FEWEST_SOURCES} are needed")
    rows = [row for one in sources for row in one.rows]
    if sum(len(row) == columns for row in rows) * 10 < len(rows) * 9:
        return Undecided("its records have different numbers of fields")
    times = Counter(one.fields for one in sources)
    # A record with which several sources begin may be a header, also further down.
    values = [row for row in rows if len(row) == columns and times[row] < 2]
    below = list(zip(*values, strict=True)) or [()] * columns
    types = tuple(_type(column) for column in below)
    ends = Counter(one.line_end for one in sources if one.line_end).most_common(1)
    line_end = ends[0][0] if ends else b"\n"
    if len({one.first for one in sources}) == 1:
        fault = _header_fault(sources[0].fields, rows, types)
        header = CsvDialect(delimiter, columns, sources[0].first, types, line_end)
        return Undecided(f"all sources begin alike, and {fault}") if fault else header
    dialect = CsvDialect(delimiter, columns, b"", types, line_end)
    fault = _rows_fault(dialect, sources, rows, values)
    if fault:
        return Undecided(fault)
    words = () if any(types) else tuple(_words(column) for column in below)
    return dialect._replace(words=words)


def _rows_fault(
    dialect: CsvDialect,
    sources: Sequence[SampledSource],
    rows: Sequence[Sequence[str]],
    values: Sequence[Sequence[str]],
) -> str:
    """Return why first records that differ are not certain to be rows; empty if they are."""
    times = Counter(one.fields for one in sources)
    held = Counter(map(tuple, rows))
    if any(many > 1 and not held[first] for first, many in times.items()):
        return "several sources, but not all, begin with a record that none has below"
    first, many = times.most_common(1)[0]
    if 2 * many > len(sources) and 2 * held[first] < len(rows):
        return "most sources begin with a record that is rare below"
    below = list(zip(*values, strict=True)) or [()] * dialect.columns
    if _are_of_two_tables(sources):
        return "its sources have other types of values in their columns"
    shared = _shared(sources, below, dialect.types)
    if shared:
        return f"several sources begin with {shared[:40]!r}, which may be a name"
    faults = (dialect.row_fault(one.fields, values) for one in sources)
    found = next(filter(None, faults), "") or _stands_out(sources, below, dialect.types)
    return found and f"first records differ between sources, and {found}"


def _stands_out(
    sources: Sequence[SampledSource], below: Sequence[Sequence[str]], types: Sequence[str]
) -> str:
    """Return how first records of the right types differ from the rows below; empty if they do not.

    Headers made of numbers may differ between sources: years above amounts, bins above counts. Each
    of them could be a row, but it is unlikely that all are.
    """
    firsts = list(zip(*(one.fields for one in sources), strict=True))
    below = [column[:: len(column) // _MOST_COMPARED + 1] for column in below]
    typed = [number for number, type in enumerate(types) if type in _WRITTEN_ALIKE]
    for number in typed:
        if _is_unlikely(map(_form, firsts[number]), map(_form, below[number]), len(typed)):
            return f"those of column {number + 1} are written otherwise than the values below"
    numbers = [number for number in typed if types[number] == "number"]
    if len(numbers) < 2:
        return ""
    first, rows = (
        [_ascends(row) for row in zip(*(columns[number] for number in numbers), strict=True)]
        for columns in (firsts, below)
    )
    if all(first) and _is_unlikely(first, rows, 1):
        return "the numbers of each ascend, as those below do not"
    return ""


def _is_unlikely(first: Iterable[object], below: Iterable[object], columns: int) -> bool:
    """Return whether first records are improbable if they are drawn from the rows below."""
    firsts, rows = [one for one in first if one], list(below)
    same = set(firsts)
    share = (sum(one in same for one in rows) + 1) / (len(rows) + 1)
    return columns * share ** len(firsts) < _LEAST_LIKELY


def _form(field: str) -> str:
    """Return the form of a field, equal for values written in one format; empty for no value."""
    if type_of(field) == NULL:
        return ""
    return _LETTERS.sub("a", _DIGITS.sub("0", field.strip()))


def _ascends(fields: Iterable[str]) -> bool:
    try:
        numbers = [float(field) for field in fields]
    except ValueError:
        return False
    return all(one < next for one, next in pairwise(numbers))


def _are_of_two_tables(sources: Sequence[SampledSource]) -> bool:
    """Return whether two sources each have a type in a column where the other has text."""
    kinds = {
        tuple(bool(_type(column)) for column in zip(*one.rows, strict=True))
        for one in sources
        if len({len(row) for row in one.rows}) == 1
    }
    return any(
        len({a > b for a, b in zip(one, other, strict=True) if a != b}) > 1
        for one, other in combinations(kinds, 2)
        if len(one) == len(other)
    )


def _type(column: Sequence[str]) -> str:
    found = column_type(column)
    enough = sum(type_of(one) != NULL for one in column) >= _FEWEST_VALUES
    return found if enough and found != NULL else TEXT


def _header_fault(names: Sequence[str], rows: Sequence[Sequence[str]], types: Sequence[str]) -> str:
    """Return why a first record that all sources share is not certain to be a header."""
    trimmed = [name.strip() for name in names]
    if trimmed[0].lower() in _TAGS:
        return f"its first field {trimmed[0]!r} may mark a record of another kind"
    for name in filter(None, trimmed):
        if not _is_name(name):
            return f"its field {name[:40]!r} does not look like the name of a column"
    if len({name.lower() for name in trimmed}) < len(trimmed):
        return "two fields of it are equal"
    below = [{row[n].strip() for row in rows if n < len(row)} for n in range(len(trimmed))]
    if fault := _value_fault(trimmed, below):
        return fault
    found = zip(trimmed, types, below, strict=True)
    typed = any(name and type and not _has_words(column) for name, type, column in found)
    return "" if typed else "no column has values of a type that its name is not"


def _has_words(column: Iterable[str]) -> bool:
    return any(value.lower() in NULL_WORDS for value in column)


def _value_fault(names: Sequence[str], columns: Sequence[Set[str]]) -> str:
    """Return why names may be values of the columns below them; empty if they are not."""
    for number, (name, column) in enumerate(zip(names, columns, strict=True)):
        if name in column:
            return "it has a value of its own columns"
        # pandas and R leave the name of the index, the first column, blank.
        if not name and number:
            return "a field of it after the first is blank"
    return ""


def _is_name(text: str) -> bool:
    # Spreadsheets wrap names. Marks belong to letters, such as the vowels of Hindi and Thai.
    name = "".join(one for one in " ".join(text.split()) if not category(one).startswith("M"))
    named = len(name) <= _LONGEST_NAME and _NAME.fullmatch(name) is not None
    return named and _NO_NAME.search(name) is None and type_of(name) == TEXT


def _shared(
    sources: Sequence[SampledSource], below: Sequence[Sequence[str]], types: Sequence[str]
) -> str:
    """Return a text field that first records share, and that no other record has in that column."""
    for number, column in enumerate(below):
        if types[number]:
            continue
        times = Counter(one.fields[number] for one in sources)
        known = set(column)
        for field, many in times.items():
            if many > 1 and field not in known and type_of(field) != NULL:
                return field
    return ""


def _words(column: Iterable[str]) -> frozenset[str]:
    found = Counter(field.strip() for field in column)
    most = found.most_common(_MOST_WORDS)
    return frozenset(word(field) for field, times in most if times > 1 and field)


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")
