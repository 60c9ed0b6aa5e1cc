"""The records in objects, read without any code of the compactor.

A second opinion for :mod:`tests.support.audit`: simple, slow, and deliberately independent of the
code that wrote the outputs. JSON is compared by value (its spacing may change when objects without
newlines between them are put on lines), tables row by row as the csv module reads them, everything
else line by line. An output is read in the way of its sources: as one JSON document if they are,
otherwise as one JSON value per line.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import zstandard

_SPACE = re.compile(r"[ \t\r\n]*")
_TABLE_KEY = re.compile(r"\.([ct])sv(\.gz|\.gzip|\.zst|\.zstd)?$", re.IGNORECASE)
# The header of VPC flow logs: nothing but names of fields, these among them.
_FLOW_HEADER = re.compile(r"(?=.*\b(srcaddr|interface-id)\b)[a-z][a-z0-9-]*( [a-z][a-z0-9-]*)+")
_SEPARATOR = re.compile(r'"?sep=([^\w"\r\n])"?\r?\n', re.IGNORECASE)
_COLUMN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_ .()/-]*")
_WORDS = re.compile(r"[A-Za-z_ ]+")
_DATA = re.compile(r"[^A-Za-z]*\d|/|true$|false$", re.IGNORECASE)
_NO_TEXT = re.compile("[\0-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_ONE_DOCUMENT = re.compile(r"\s*(<[?!]|<(svg|html)\b|\[[^\[\]{}\"]+\]\s*\n(\s*[\w. -]+=.*(\n|$))+)")
_MOST_SURROGATES = 0.1
csv.field_size_limit((1 << 31) - 1)


def plain_text(content: bytes) -> str:
    """The decompressed content as text; bytes that are not UTF-8 are kept as surrogates."""
    if content.startswith(b"\x1f\x8b"):
        content = gzip.decompress(content)
    elif content.startswith(b"\x28\xb5\x2f\xfd"):
        reader = zstandard.ZstdDecompressor().stream_reader(content, read_across_frames=True)
        content = reader.read()
    return content.decode("utf-8", "surrogateescape").removeprefix("\ufeff")


def records(key: str, content: bytes) -> Iterator[str]:
    """Yield the records of one object, in a form that is equal for equal records.

    The first row of a table counts as a record, because one object does not show whether it is a
    header.

    Args:
        key: its suffix ``.csv`` or ``.tsv`` decides whether it is a table.
        content: the object as stored.

    Raises:
        OSError, EOFError, zlib.error, ZstdError: the content does not decompress.
    """
    text = plain_text(content)
    yield from Reader([(key, text)]).source(text)


class Reader:
    """Reads the sources of one output, and the output in the same way.

    Args:
        sources: key and text of each.

    Attributes:
        header: the row that is certainly a header of all sources, or None.
        doubt: why it is unclear whether their first rows are headers; empty if it is clear.
    """

    def __init__(self, sources: Sequence[tuple[str, str]]) -> None:
        filled = [(key, text) for key, text in sources if text]
        texts = [text for _, text in filled]
        self._whole = any(_is_one_whole(text) for text in texts)
        tables = [found for key, _ in filled if (found := _TABLE_KEY.search(key))]
        jsons = any(_starts_json(text) for text in texts)
        self._is_table = bool(tables) and not jsons
        self._document = any(_is_document(text) for text in texts)
        self.header: list[str] | None = None
        self.doubt = ""
        self._delimiter = ","
        if self._is_table and not self._whole:
            self._delimiter = "\t" if tables[0][1] in "tT" else _delimiter(texts)
            self._look_for_header([self._rows(text) for text in texts])

    def source(self, text: str) -> Iterator[str]:
        """Yield the records of one source."""
        return self._records(text, joined=False)

    def output(self, text: str) -> Iterator[str]:
        """Yield the records of the output."""
        return self._records(text, joined=True)

    def _records(self, text: str, *, joined: bool) -> Iterator[str]:
        if self._whole:
            yield from filter(None, (text.strip(),))
        elif self._is_table:
            rows = self._rows(text)
            for row in rows[1:] if rows[:1] == [self.header] else rows:
                yield json.dumps(row)
        elif _starts_json(text):
            yield from self._json(text, joined=joined)
        else:
            yield from _lines(text, joined=joined)

    def _json(self, text: str, *, joined: bool) -> Iterator[str]:
        values = _json_values(text)
        if values is None:
            yield from _lines(text, joined=joined)
            return
        inner = _inner(values[0]) if len(values) == 1 else None
        if inner is not None:
            yield from map(_canonical, inner)
        elif self._document and len(values) == 1 and type(values[0]) is list:
            yield from map(_canonical, values[0])
        elif joined and not self._document:
            yield from _lines(text, joined=True)
        elif joined:
            yield f"{len(values)} documents in one: {text}"
        else:
            yield from map(_canonical, values)

    def _rows(self, text: str) -> list[list[str]]:
        found = _SEPARATOR.match(text)
        body = io.StringIO(text[found.end() :] if found else text, newline="")
        return [row for row in csv.reader(body, delimiter=self._delimiter) if row]

    def _look_for_header(self, tables: Sequence[Sequence[list[str]]]) -> None:
        filled = [rows for rows in tables if rows]
        below = [row for rows in filled for row in rows[1:]]
        if not filled or any(rows[0] != filled[0][0] for rows in filled) or filled[0][0] in below:
            return
        first = filled[0][0]
        names = {name.strip().lower() for name in first}
        named = len(names) == len(first) and all(_COLUMN_NAME.fullmatch(one) for one in first)
        if named and _differs(len(first), below):
            self.header = first
        elif len(filled) > 1 and _may_be_names(first):
            self.doubt = f"{first} is first in {len(filled):,} sources: a header, or records"


def _differs(width: int, below: Sequence[Sequence[str]]) -> bool:
    """Return whether some column has only data, and no names, below the first row."""
    for column in range(width):
        cells = [row[column] for row in below if column < len(row) and row[column].strip()]
        if cells and all(_DATA.match(cell.strip()) for cell in cells):
            return True
    return False


def _may_be_names(row: Sequence[str]) -> bool:
    others = [cell for cell in row if not cell.strip().isdecimal()]
    return bool(others) and all(not cell or _WORDS.fullmatch(cell) for cell in others)


def _delimiter(texts: Sequence[str]) -> str:
    found = _SEPARATOR.match(texts[0])
    if found:
        return found[1]
    line = re.sub(r'"[^"]*"', "", re.split(r"[\r\n]", texts[0].lstrip(), maxsplit=1)[0])
    return max(",;\t|", key=line.count)


def _is_one_whole(text: str) -> bool:
    """Return whether content is binary, markup or INI: formats that cannot be concatenated."""
    head = text[:4096]
    strange = sum("\udc80" <= one <= "\udcff" for one in head)
    binary = len(_NO_TEXT.findall(head)) > len(head) / 50 or strange > _MOST_SURROGATES * len(head)
    return binary or bool(_ONE_DOCUMENT.match(text))


def _starts_json(text: str) -> bool:
    return text.lstrip()[:1] in {"{", "["}


def _is_document(text: str) -> bool:
    """Return whether a text is one JSON array, or one value over several lines."""
    if not _starts_json(text) or (values := _json_values(text)) is None or len(values) != 1:
        return False
    return type(values[0]) is list or (_inner(values[0]) is None and "\n" in text.strip())


def _lines(text: str, *, joined: bool) -> Iterator[str]:
    fields = ""
    for number, line in enumerate(text.split("\n")):
        record = line.removesuffix("\r")
        if record.startswith("#Fields:"):
            fields = " ".join(record.split())
        elif record.startswith("#Version:") or not record:
            continue
        elif number or not _FLOW_HEADER.fullmatch(record):
            yield from _from_line(f"{fields}\0{record}" if fields else record, joined=joined)


def _from_line(line: str, *, joined: bool) -> Iterator[str]:
    values = _json_values(line) if _starts_json(line) else None
    if values is None:
        yield line
    elif joined and len(values) > 1:
        yield f"{len(values)} values on a line: {line}"
    else:
        yield from (_canonical(value) for value in values)


def _json_values(text: str) -> list[Any] | None:
    """Return the JSON values in a text, with or without separators; None if it is not JSON."""
    values = []
    at = _end_of_space(text, 0)
    while at < len(text):
        try:
            value, at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            return None
        values.append(value)
        at = _end_of_space(text, at)
    return values


def _inner(value: Any) -> list[Any] | None:
    """Return the records inside a CloudTrail document; None for any other value."""
    if isinstance(value, _Pairs) and len(value) == 2 and value[1][0] == "Records":
        inner = value[1][1]
        if isinstance(inner, list):
            return inner
    return None


class _Pairs(list[tuple[str, Any]]):
    """A JSON object with its order and repeated names, marked to differ from any list."""


def _pairs(pairs: list[tuple[str, Any]]) -> _Pairs:
    return _Pairs([("object", len(pairs)), *pairs])


def _number(text: str) -> list[str]:
    # 1.10 must not become 1.1 on one side only.
    return ["number", text]


def _canonical(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _end_of_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_float=_number, parse_int=_number)
