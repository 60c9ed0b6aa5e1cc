"""Small Parquet objects of flat columns, for what has no pyarrow at hand.

pyarrow would take 150 MB of the 250 MB that a Lambda function may have. What is written is the
plainest that Apache Parquet's format has: one row group, data pages of version 1, PLAIN values,
zstd; and the least and greatest value of each column, by which engines pass over whole objects.
"""

from __future__ import annotations

import struct as packing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import Enum
from itertools import groupby, islice
from typing import Any

import zstandard

from compactor.codecs import thrift_compact as thrift
from compactor.codecs.parquet_footer import MAGIC

# A page is held whole by who reads it.
_PAGE_ROWS = 20_000
_ZSTD_LEVEL = 3
_CREATED_BY = b"s3-compactor version 1"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
# Of parquet.thrift.
_VERSION, _PLAIN, _RLE, _ZSTD, _DATA_PAGE = 2, 0, 3, 6, 0
_BOOLEAN, _INT64, _BYTE_ARRAY = 0, 2, 6
_NOTHING = thrift.struct({})


class Kind(Enum):
    """What the values of a column are, in Python and in Parquet."""

    TEXT = "str, as UTF-8"
    BYTES = "bytes"
    WHOLE = "int of 64 bits"
    MOMENT = "datetime, as microseconds of UTC"
    FLAG = "bool"


@dataclass(frozen=True, slots=True)
class Column:
    """One column; where it is ``nullable``, None stands for no value."""

    name: str
    kind: Kind
    nullable: bool = False


def write_parquet(columns: Sequence[Column], rows: Iterable[Sequence[Any]]) -> bytes:
    """A whole Parquet object.

    Args:
        columns: one or more.
        rows: the values of each row, in the order of the columns; none for an object that has
            columns alone.
    """
    chunks = [_Chunk(column) for column in columns]
    left, count = iter(rows), 0
    while page := list(islice(left, _PAGE_ROWS)):
        count += len(page)
        for chunk, values in zip(chunks, zip(*page, strict=True), strict=True):
            chunk.add(values)
    body = bytearray(MAGIC)
    groups = []
    if count:
        written = [chunk.written(body) for chunk in chunks]
        size = sum(chunk.plain_bytes for chunk in chunks)
        group = {1: thrift.list_of(written), 2: _long(size), 3: _long(count)}
        groups.append(thrift.struct(group))
    footer = _footer(columns, count, groups)
    return bytes(body) + footer + len(footer).to_bytes(4, "little") + MAGIC


@dataclass(slots=True)
class _Chunk:
    """The values of one column, in pages."""

    column: Column
    pages: list[bytes] = field(default_factory=list)
    plain_bytes: int = 0
    rows: int = 0
    nulls: int = 0
    least: Any = None
    greatest: Any = None

    def add(self, values: Sequence[Any]) -> None:
        """One page more."""
        there = [one for one in values if one is not None] if self.column.nullable else values
        self.rows += len(values)
        self.nulls += len(values) - len(there)
        if there and self.column.kind in _COMPARED:
            self._note(min(there), max(there))
        plain = _levels(values) if self.column.nullable else b""
        plain += _PLAINLY[self.column.kind](there)
        packed = zstandard.ZstdCompressor(level=_ZSTD_LEVEL).compress(plain)
        header = _page_header(len(values), len(plain), len(packed))
        self.pages.append(header + packed)
        self.plain_bytes += len(header) + len(plain)

    def _note(self, least: Any, greatest: Any) -> None:
        # Texts are compared by their code points, whose order is that of their UTF-8.
        self.least = least if self.least is None else min(self.least, least)
        self.greatest = greatest if self.greatest is None else max(self.greatest, greatest)

    def written(self, body: bytearray) -> thrift.Value:
        """Append the pages to an object; returns the ColumnChunk that tells of them."""
        start = len(body)
        for page in self.pages:
            body += page
        encodings = [thrift.whole(one) for one in (_PLAIN, _RLE)]
        path = [thrift.binary(self.column.name.encode())]
        told = {
            1: thrift.whole(_TYPES[self.column.kind]),
            2: thrift.list_of(encodings),
            3: thrift.list_of(path),
            4: thrift.whole(_ZSTD),
            5: _long(self.rows),
            6: _long(self.plain_bytes),
            7: _long(len(body) - start),
            9: _long(start),
            12: self._statistics(),
        }
        return thrift.struct({2: _long(0), 3: thrift.struct(told)})

    def _statistics(self) -> thrift.Value:
        found: dict[int, thrift.Value] = {3: _long(self.nulls)}
        if self.least is not None:
            found[5] = thrift.binary(self._alone(self.greatest))
            found[6] = thrift.binary(self._alone(self.least))
        return thrift.struct(found)

    def _alone(self, value: Any) -> bytes:
        if self.column.kind is Kind.TEXT:
            return str(value).encode()
        return _PLAINLY[self.column.kind]([value])


def _page_header(rows: int, plain_bytes: int, packed_bytes: int) -> bytes:
    of_data = {
        1: thrift.whole(rows),
        2: thrift.whole(_PLAIN),
        3: thrift.whole(_RLE),
        4: thrift.whole(_RLE),
    }
    sizes = {2: thrift.whole(plain_bytes), 3: thrift.whole(packed_bytes)}
    return thrift.struct({1: thrift.whole(_DATA_PAGE), **sizes, 5: thrift.struct(of_data)})[1]


def _footer(columns: Sequence[Column], rows: int, groups: Sequence[thrift.Value]) -> bytes:
    root = thrift.struct({4: thrift.binary(b"schema"), 5: thrift.whole(len(columns))})
    # That least and greatest values are of the order that the type has.
    order = thrift.struct({1: _NOTHING})
    told = {
        1: thrift.whole(_VERSION),
        2: thrift.list_of([root, *map(_schema_element, columns)]),
        3: _long(rows),
        4: thrift.list_of(groups) if groups else (thrift.LIST, bytes([thrift.STRUCT])),
        6: thrift.binary(_CREATED_BY),
        7: thrift.list_of([order] * len(columns)),
    }
    return thrift.struct(told)[1]


def _schema_element(column: Column) -> thrift.Value:
    converted, logical = _MEANINGS.get(column.kind, (None, None))
    return thrift.struct(
        {
            1: thrift.whole(_TYPES[column.kind]),
            3: thrift.whole(int(column.nullable)),
            4: thrift.binary(column.name.encode()),
            6: converted,
            10: logical,
        }
    )


def _levels(values: Sequence[Any]) -> bytes:
    """Which values are there, as runs."""
    runs = bytearray()
    for there, run in groupby(values, lambda one: one is not None):
        runs += thrift.varint(sum(1 for _ in run) << 1)
        runs.append(there)
    return len(runs).to_bytes(4, "little") + runs


def _long(value: int) -> thrift.Value:
    return thrift.whole(value, long=True)


def _texts(values: Sequence[str]) -> bytes:
    return _byte_strings([one.encode() for one in values])


def _byte_strings(values: Sequence[bytes]) -> bytes:
    return b"".join(len(one).to_bytes(4, "little") + one for one in values)


def _wholes(values: Sequence[int]) -> bytes:
    return packing.pack(f"<{len(values)}q", *values)


def _moments(values: Sequence[datetime]) -> bytes:
    return _wholes([(one - _EPOCH) // _MICROSECOND for one in values])


def _flags(values: Sequence[bool]) -> bytes:
    """Eight to a byte, the first the lowest bit."""
    bits = "".join("01"[one] for one in reversed(values))
    return int(bits or "0", 2).to_bytes((len(values) + 7) // 8, "little")


_PLAINLY: Mapping[Kind, Callable[[Any], bytes]] = {
    Kind.TEXT: _texts,
    Kind.BYTES: _byte_strings,
    Kind.WHOLE: _wholes,
    Kind.MOMENT: _moments,
    Kind.FLAG: _flags,
}
_TYPES = {
    Kind.TEXT: _BYTE_ARRAY,
    Kind.BYTES: _BYTE_ARRAY,
    Kind.WHOLE: _INT64,
    Kind.MOMENT: _INT64,
    Kind.FLAG: _BOOLEAN,
}
# Of bytes they may be long, and nobody asks for ranges of them.
_COMPARED = frozenset({Kind.TEXT, Kind.WHOLE, Kind.MOMENT})
# ConvertedType and LogicalType: 8 is TIMESTAMP, of UTC, in microseconds.
_MEANINGS = {
    Kind.TEXT: (thrift.whole(0), thrift.struct({1: _NOTHING})),
    Kind.MOMENT: (
        thrift.whole(10),
        thrift.struct({8: thrift.struct({1: thrift.flag(True), 2: thrift.struct({2: _NOTHING})})}),
    ),
}
