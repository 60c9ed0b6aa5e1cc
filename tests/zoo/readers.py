"""How the users of a kind of source read one object of it, without a line of the product.

A reader takes the plain bytes of one object and gives the records in it. The law that the zoo
stands on: what a reader sees in a joined object is what it sees in each of its sources.
A reader never fails: what it cannot make sense of is a record, too, of raw bytes.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, TypeAlias

Records: TypeAlias = Counter[tuple[object, ...]]
Reader: TypeAlias = Callable[[bytes], Records]

BOM = b"\xef\xbb\xbf"
_BLANKS = " \t\r\n"

csv.field_size_limit(1 << 30)


def lines(body: bytes) -> Records:
    """A record is a line."""
    return Counter(("line", one) for one in _lines(body))


def document(body: bytes) -> Records:
    """A record is the whole object, a text: two of them in one object are neither."""
    text = body.removeprefix(BOM).rstrip(b"\r\n")
    return Counter([("document", text)] if text else [])


def blob(body: bytes) -> Records:
    """A record is the whole object to its last byte."""
    return Counter([("blob", body)] if body else [])


# JSON.


def json_lines(body: bytes) -> Records:
    """A record is a line that is one JSON value; another one is a record of raw bytes."""
    return Counter(_json_line(one) for one in _lines(body) if one.strip())


def json_stream(body: bytes) -> Records:
    """Values one behind the other, with or without blanks between."""
    return Counter(_values(body.removeprefix(BOM)))


def json_document(body: bytes) -> Records:
    """The object is one JSON value; an array's elements are the records."""
    try:
        value = json.loads(body.removeprefix(BOM))
    except (ValueError, RecursionError):
        return document(body)
    values = value if isinstance(value, list) else [value]
    return Counter(("json", canonical(one)) for one in values)


def json_elements(body: bytes) -> Records:
    """Elements of arrays and values on lines alike."""
    try:
        json.loads(body.removeprefix(BOM))
    except (ValueError, RecursionError):
        return json_stream(body)
    return json_document(body)


def records_document(body: bytes) -> Records:
    """One document whose array ``Records`` holds the records; any other member is one, too."""
    try:
        value = json.loads(body.removeprefix(BOM))
        records = value.pop("Records")
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        return _no_document(body)
    if not isinstance(records, list):
        return document(body)
    found: Records = Counter(("json", canonical(one)) for one in records)
    found.update(("member", canonical([key, one])) for key, one in value.items())
    return found


def _no_document(body: bytes) -> Records:
    """Several whole values one behind the other are a stream; anything else stays whole."""
    values = json_stream(body)
    several = values.total() > 1 and all(kind == "json" for kind, *_ in values)
    return values if several else document(body)


@cache
def listed_document(name: str) -> Reader:
    """A record is an element of one member, with all that stands beside it in the document."""

    def read(body: bytes) -> Records:
        try:
            value = json.loads(body.removeprefix(BOM))
            records = value.pop(name)
        except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
            return _no_document(body)
        if not isinstance(records, list):
            return document(body)
        beside = canonical(value)
        return Counter(("json", beside, canonical(one)) for one in records)

    read.__name__ = f"listed_document({name!r})"
    return read


# Tables.


def table(delimiter: str = ",", *, header: bool = True, quotes: bool = True) -> Reader:
    """Rows as the csv module reads them; with a header, each row under it.

    Blank rows are no records.
    """
    return _table(delimiter, header, quotes)


@cache
def _table(delimiter: str, header: bool, quotes: bool) -> Reader:

    def read(body: bytes) -> Records:
        rows = _rows(body, delimiter, quotes=quotes)
        first = next(rows, None) if header else ()
        return Counter(("row", first, one) for one in rows)

    read.__name__ = f"table({delimiter!r}, header={header}, quotes={quotes})"
    return read


def headed(body: bytes) -> Records:
    """Words with blanks between, the first line's their names (VPC flow logs)."""
    rows = [tuple(one.split()) for one in _lines(body)]
    return Counter(("row", rows[0], one) for one in rows[1:])


def w3c(body: bytes) -> Records:
    """W3C Extended Log Format: values belong to the last ``#Fields`` above them."""
    fields = b""
    found: Records = Counter()
    for one in _lines(body):
        line = one.rstrip(b"\r")
        if line.lower().startswith(b"#fields:"):
            fields = line
        elif not line.startswith(b"#"):
            found["row", fields, line] += 1
    return found


def zeek(body: bytes) -> Records:
    """Zeek's TSV: as W3C, with ``#path`` and ``#types`` as well; ``#close`` ends it."""
    state: dict[bytes, bytes] = {}
    found: Records = Counter()
    for line in _lines(body):
        if line.startswith(b"#"):
            name, _, value = line.partition(b"\t")
            if name not in (b"#open", b"#close"):
                state[name] = value
        else:
            found["row", tuple(sorted(state.items())), line] += 1
    return found


# Text of more than one line.


@cache
def entries(start: str) -> Reader:
    """A record begins with a line that matches, and goes on to the next that does."""
    begins = re.compile(start.encode())

    def read(body: bytes) -> Records:
        found: list[list[bytes]] = []
        for one in _lines(body):
            if not found or begins.match(one):
                found.append([])
            found[-1].append(one)
        return Counter(("entry", *one) for one in found)

    read.__name__ = f"entries({start!r})"
    return read


def canonical(value: Any) -> str:
    """Equal for equal values."""
    return json.dumps(value, sort_keys=True)


def _lines(body: bytes) -> list[bytes]:
    body = body.removeprefix(BOM)
    return body.removesuffix(b"\n").split(b"\n") if body else []


def _json_line(line: bytes) -> tuple[object, ...]:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return ("raw", line)
    return ("json", line.strip())


def _values(body: bytes) -> Iterator[tuple[object, ...]]:
    text = body.decode("utf-8", "surrogateescape")
    decoder = json.JSONDecoder()
    at = len(text) - len(text.lstrip(_BLANKS))
    while at < len(text):
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            yield ("raw", text[at:].rstrip(_BLANKS))
            return
        yield ("json", canonical(value))
        at = end
        while at < len(text) and text[at] in _BLANKS:
            at += 1


def _rows(body: bytes, delimiter: str, *, quotes: bool) -> Iterator[tuple[str, ...]]:
    text = body.removeprefix(BOM).decode("utf-8", "surrogateescape")
    stream = io.StringIO(text, newline="")
    if quotes:
        rows = csv.reader(stream, delimiter=delimiter)
    else:
        rows = csv.reader(stream, delimiter=delimiter, quoting=csv.QUOTE_NONE)
    try:
        for row in rows:
            if row:
                yield tuple(row)
    except csv.Error as error:
        yield ("error", str(error), text)
