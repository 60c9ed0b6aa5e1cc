"""DuckDB beside the zoo's own readers: ``read_csv`` and ``read_json``, told what is true.

The law is the same: what it reads in an output is what it reads in each of the sources. A source
that DuckDB refuses says nothing about outputs, and is passed over.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Sequence
from functools import cache

import duckdb

from tests.foreign.readers import DuckDb, Told
from tests.zoo.readers import (
    BOM,
    TABLES,
    Dialect,
    Reader,
    Records,
    json_document,
    json_elements,
    json_lines,
    json_stream,
    listed_document,
    records_document,
)

_DOCUMENTS = frozenset((json_document, json_elements))
_JSON_READERS = frozenset((json_lines, json_stream, records_document, *_DOCUMENTS))


def difference(output: bytes, sources: Sequence[bytes], reader: Reader) -> str:
    """What DuckDB reads in an output of several sources and not in these, or the other way.

    Args:
        output: its plain bytes.
        sources: the plain bytes of those that have any.
        reader: the zoo's, which says what kind of source they are.
    """
    dialect = TABLES.get(reader)
    if dialect is not None:
        expected, found = _of_tables(output, sources, dialect)
    elif reader in _JSON_READERS or getattr(reader, "__name__", "").startswith(_LISTED):
        expected, found = _of_json(output, sources, reader)
    else:
        return ""
    if expected is None or found == expected:
        return ""
    if found is None:
        return "DuckDB refuses the output, and none of its sources"
    gone, new = (expected - found).total(), (found - expected).total()
    return f"DuckDB reads {gone} of {expected.total()} records less, and {new} others"


_LISTED = listed_document.__name__


@cache
def _duck() -> DuckDb:
    return DuckDb()


def _of_tables(
    output: bytes, sources: Sequence[bytes], dialect: Dialect
) -> tuple[Records | None, Records | None]:
    ends = {_end(one) for one in sources} - {""}
    end = ends.pop() if len(ends) == 1 else ""
    width = max(_width(one, dialect) for one in sources)
    told = Told(dialect.header, dialect.delimiter, end, width, quotes=dialect.quotes)
    bodies = {str(n): (one, told) for n, one in enumerate((output, *sources))}
    try:
        first, *others = _duck().rows(bodies).values()
    except duckdb.Error:
        return None, None
    expected: Records = Counter()
    for rows in others:
        if isinstance(rows, str):
            return None, None
        expected.update(rows)
    return expected, None if isinstance(first, str) else Counter(first)


def _end(body: bytes) -> str:
    """How its lines end, where all end alike."""
    lines = body.count(b"\n")
    if not lines:
        return ""
    returns = body.count(b"\r\n")
    return "\r\n" if returns == lines else "" if returns else "\n"


def _width(body: bytes, dialect: Dialect) -> int:
    text = body.removeprefix(BOM).decode("utf-8", "replace")
    rows = csv.reader(
        io.StringIO(text, newline=""),
        delimiter=dialect.delimiter,
        quoting=csv.QUOTE_MINIMAL if dialect.quotes else csv.QUOTE_NONE,
    )
    try:
        return max((len(row) for row in rows), default=1) or 1
    except csv.Error:
        return 1


def _of_json(
    output: bytes, sources: Sequence[bytes], reader: Reader
) -> tuple[Records | None, Records | None]:
    expected: Records = Counter()
    for one in sources:
        found = _json(one, reader, joined=False)
        if found is None:
            return None, None
        expected += found
    return expected, _json(output, reader, joined=True)


def _json(body: bytes, reader: Reader, *, joined: bool) -> Records | None:
    """What the zoo's reader sees in the values that DuckDB gives; None where it refuses them."""
    array = reader in _DOCUMENTS and body.removeprefix(BOM).lstrip().startswith(b"[")
    form = "array" if array else "newline_delimited"
    if reader in {json_stream, records_document} and not (joined and reader is json_stream):
        form = "unstructured"
    if reader not in _JSON_READERS:
        form = "unstructured"
    values = _duck().json(body, form)
    if values is None:
        return None
    text = f"[{','.join(values)}]" if array else "\n".join(values)
    return reader(text.encode())
