"""What is written as Parquet is what other readers read, pruned by what it says of itself."""

from __future__ import annotations

import io
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.codecs import parquet_writer
from compactor.codecs.parquet_footer import read_footer
from compactor.codecs.parquet_writer import Column, Kind, write_parquet

COLUMNS = tuple(
    Column(f"{kind.name.lower()}{'_or_none' * nullable}", kind, nullable)
    for kind in Kind
    for nullable in (False, True)
)
_WHOLES = st.integers(-(2**63), 2**63 - 1)
_MICROSECOND = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOMENTS = st.integers(-(10**16), 10**17).map(lambda count: _EPOCH + count * _MICROSECOND)
_VALUES = {
    Kind.TEXT: st.text(),
    Kind.BYTES: st.binary(),
    Kind.WHOLE: _WHOLES,
    Kind.MOMENT: _MOMENTS,
    Kind.FLAG: st.booleans(),
}
ROWS = st.lists(
    st.tuples(
        *(st.none() | _VALUES[one.kind] if one.nullable else _VALUES[one.kind] for one in COLUMNS)
    ),
    max_size=30,
)
Rows = Sequence[tuple[Any, ...]]


def example(number: int) -> tuple[Any, ...]:
    moment = datetime(2026, 1, 2, tzinfo=UTC) + timedelta(microseconds=number)
    values = (f"k-é{number:06}", b"%d" % number, number - 7, moment, number % 3 == 0)
    return tuple(one for value in values for one in (value, None if number % 4 == 0 else value))


def read_by_pyarrow(body: bytes) -> Rows:
    return [tuple(row.values()) for row in pq.read_table(io.BytesIO(body)).to_pylist()]


@given(rows=ROWS)
def test_pyarrow_reads_the_very_values(rows: Rows) -> None:
    assert read_by_pyarrow(write_parquet(COLUMNS, rows)) == list(rows)


@pytest.mark.parametrize("count", [0, 1, 6, 7, 8, 20, 50])
def test_pages_of_any_number_are_read_by_pyarrow_and_duckdb(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_writer, "_PAGE_ROWS", 7)
    rows = [example(number) for number in range(count)]
    path = tmp_path / "it.parquet"
    path.write_bytes(write_parquet(COLUMNS, rows))
    assert read_by_pyarrow(path.read_bytes()) == rows
    with duckdb.connect() as engine:
        times = "* REPLACE (epoch_us(moment) AS moment, epoch_us(moment_or_none) AS moment_or_none)"
        found = engine.execute(f"SELECT {times} FROM read_parquet(?)", [str(path)]).fetchall()  # noqa: S608 - a constant

    def told(value: object) -> object:
        if not isinstance(value, datetime):
            return value
        return (value - _EPOCH) // _MICROSECOND

    assert found == [tuple(map(told, row)) for row in rows]


def test_the_columns_are_those_that_pyarrow_would_write() -> None:
    types = {
        Kind.TEXT: pa.string(),
        Kind.BYTES: pa.binary(),
        Kind.WHOLE: pa.int64(),
        Kind.MOMENT: pa.timestamp("us", tz="UTC"),
        Kind.FLAG: pa.bool_(),
    }
    fields = [pa.field(one.name, types[one.kind], nullable=one.nullable) for one in COLUMNS]
    body = write_parquet(COLUMNS, ())
    assert pq.read_schema(io.BytesIO(body)) == pa.schema(fields)


def test_what_is_least_and_greatest_is_told_across_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_writer, "_PAGE_ROWS", 2)
    columns = (Column("key", Kind.TEXT), Column("n", Kind.WHOLE, nullable=True))
    rows = [("b", None), ("\uffff", -3), ("\U00010000", 5), ("é", None), ("a", None)]
    group = pq.ParquetFile(io.BytesIO(write_parquet(columns, rows))).metadata.row_group(0)
    keys, numbers = group.column(0).statistics, group.column(1).statistics
    assert (keys.min, keys.max, keys.null_count) == ("a", "\U00010000", 0)
    assert (numbers.min, numbers.max, numbers.null_count) == (-3, 5, 3)


def test_of_a_column_without_values_nothing_is_told_but_how_many_are_missing() -> None:
    columns = (Column("n", Kind.WHOLE, nullable=True),)
    body = write_parquet(columns, [(None,), (None,)])
    found = pq.ParquetFile(io.BytesIO(body)).metadata.row_group(0).column(0).statistics
    assert (found.has_min_max, found.null_count) == (False, 2)


def test_our_own_reader_of_footers_counts_its_rows() -> None:
    for count in (0, 3):
        body = write_parquet(COLUMNS, [example(number) for number in range(count)])
        assert read_footer(partial(_range, body), len(body)).rows == count


def _range(body: bytes, start: int, length: int) -> bytes:
    return body[start : start + length]
