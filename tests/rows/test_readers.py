"""DuckDB, pyarrow, Polars and arrow-rs (by way of deltalake) read the same rows in an output."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, QueryBuilder, convert_to_deltalake

from compactor.rows.ddl import parse_ddl
from compactor.rows.hive_types import hive_columns
from compactor.rows.schema import simple
from tests.rows.row_world import RowWorld

COLUMNS = """
    tiny TINYINT, small SMALLINT, whole INT, large BIGINT, single FLOAT, wide DOUBLE,
    exact DECIMAL(10,2), most DECIMAL(38,10), text STRING, raw BINARY, truth BOOLEAN, day DATE,
    at TIMESTAMP, plain TIMESTAMP_NTZ, some ARRAY<BIGINT>, nested ARRAY<ARRAY<STRING>>,
    pairs MAP<STRING, BIGINT>,
    deep STRUCT<x: INT, y: ARRAY<STRUCT<z: DATE, w: MAP<STRING, DOUBLE>>>>
"""
RECORDS: list[dict[str, Any]] = [
    {
        "tiny": -128, "small": 32767, "whole": -(2**31), "large": 2**63 - 1, "single": 0.1,
        "wide": -0.0, "exact": "99999999.99", "most": "-1234567890123456789012345678.0123456789",
        "text": "é😀\0", "raw": "AP8=", "truth": True, "day": "0001-01-01",
        "at": "2026-01-02T03:04:05.123456+05:30", "plain": "9999-12-31 23:59:59.999999",
        "some": [1, None, -1], "nested": [["a", None, ""], None, []], "pairs": {"b": 1, "a": None},
        "deep": {"x": 1, "y": [{"z": "2026-01-02", "w": {"k": 1.5}}, None, {}]},
    },
    {"wide": "-INF", "text": "", "some": [], "nested": [], "pairs": {}, "deep": {}, "raw": ""},
    {"wide": 1e-320, "deep": {"y": []}, "truth": False, "day": "1969-12-31", "at": -1},
    {},
]  # fmt: skip


def a_zoo() -> RowWorld:
    world = RowWorld(parquet_schema=COLUMNS, format="json_lines")
    world.put_lines("1.json", *RECORDS)
    world.run()
    assert not world.dead_letters()
    return world


def test_readers_see_the_same_values_of_all_types() -> None:
    world = a_zoo()
    (body,) = world.outputs()
    arrow = pq.read_table(pa.BufferReader(body))
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "1.parquet"
        path.write_bytes(body)
        own = duckdb.connect()
        own.execute("set timezone = 'UTC'")
        ducks = own.read_parquet(str(path)).to_arrow_table()
        # As a table, its files are read by arrow-rs.
        convert_to_deltalake(directory)
        rust = pa.table(
            QueryBuilder()
            .register("found", DeltaTable(directory))
            .execute("select * from found")
            .read_all()
        )
    polars = pl.read_parquet(body).to_arrow()
    for found in (ducks, rust, polars):
        assert found.column_names == arrow.column_names
        assert found.cast(arrow.schema).to_pylist() == arrow.to_pylist()
    assert arrow.num_rows == len(RECORDS)
    assert arrow["text"].to_pylist() == ["é😀\0", "", None, None]
    assert arrow["raw"].to_pylist() == [b"\0\xff", b"", None, None]
    assert arrow["some"].to_pylist() == [[1, None, -1], [], None, None]
    assert arrow["pairs"].to_pylist() == [[("b", 1), ("a", None)], [], None, None]
    assert arrow["deep"].to_pylist()[1] == {"x": None, "y": None}


def test_types_in_the_footer_are_those_of_the_columns() -> None:
    (body,) = a_zoo().outputs()
    schema = pq.ParquetFile(pa.BufferReader(body)).schema_arrow
    expected = {one.name: simple(one.type) for one in parse_ddl(COLUMNS)}
    # Hive has one type for both.
    expected["plain"] = "timestamp"
    assert dict(hive_columns(schema)) == expected
