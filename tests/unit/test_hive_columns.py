"""Columns of Parquet in Hive's words: of all types, by the footer that pyarrow writes."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compactor.rows.hive_types import NoHiveType, hive_columns


def schema_of(fields: list[tuple[str, Any]], **options: Any) -> pa.Schema:
    written = io.BytesIO()
    pq.write_table(pa.schema(fields).empty_table(), written, **options)
    return pq.ParquetFile(written).schema_arrow


def hive_types(*kinds: Any, **options: Any) -> list[str]:
    fields = [(f"c{number}", kind) for number, kind in enumerate(kinds)]
    return [*hive_columns(schema_of(fields, **options)).values()]


@pytest.mark.parametrize(
    ("kind", "hive"),
    [
        (pa.bool_(), "boolean"),
        (pa.int8(), "tinyint"),
        (pa.int16(), "smallint"),
        (pa.int32(), "int"),
        (pa.int64(), "bigint"),
        (pa.float32(), "float"),
        (pa.float64(), "double"),
        (pa.string(), "string"),
        (pa.large_string(), "string"),
        (pa.dictionary(pa.int8(), pa.string()), "string"),
        (pa.json_(), "string"),
        (pa.uuid(), "binary"),
        (pa.large_list(pa.large_binary()), "array<binary>"),
        (pa.list_(pa.int8(), 2), "array<tinyint>"),
        (pa.binary(), "binary"),
        (pa.binary(12), "binary"),
        (pa.date32(), "date"),
        (pa.timestamp("ms"), "timestamp"),
        (pa.timestamp("us", "UTC"), "timestamp"),
        (pa.timestamp("ns"), "timestamp"),
        (pa.decimal128(9, 2), "decimal(9,2)"),
        (pa.decimal128(38, 0), "decimal(38,0)"),
        (pa.list_(pa.int32()), "array<int>"),
        (pa.list_(pa.list_(pa.string())), "array<array<string>>"),
        (pa.map_(pa.string(), pa.int64()), "map<string,bigint>"),
        (
            pa.struct([("A", pa.int64()), ("b", pa.list_(pa.struct([("d", pa.date32())])))]),
            "struct<a:bigint,b:array<struct<d:date>>>",
        ),
    ],
)
def test_each_type_has_its_counterpart(kind: pa.DataType, hive: str) -> None:
    assert hive_types(kind) == [hive]


def test_old_timestamps_of_twelve_bytes_are_timestamps() -> None:
    assert hive_types(pa.timestamp("ns"), use_deprecated_int96_timestamps=True) == ["timestamp"]


def test_lists_of_writers_that_know_no_level_in_between_are_lists() -> None:
    kind = pa.list_(pa.int32())
    assert hive_types(kind, use_compliant_nested_type=False) == ["array<int>"]


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (pa.uint32(), "c0 is uint32, for which Hive has no type"),
        (pa.uint64(), "c0 is uint64"),
        (pa.time64("us"), r"c0 is time64\[us\]"),
        (pa.time32("ms"), r"c0 is time32\[ms\]"),
        (pa.null(), "c0 is null"),
        (pa.duration("ms"), r"c0 is duration\[ms\]"),
        (pa.float16(), "c0 is halffloat"),
        (pa.struct([("a-b", pa.int32())]), "c0 has a member named 'a-b', which no type can name"),
    ],
)
def test_what_hive_has_no_type_for_is_reported_by_name(kind: pa.DataType, told: str) -> None:
    with pytest.raises(NoHiveType, match=told):
        hive_types(kind)


def test_names_are_those_of_a_catalog_and_each_is_there_once() -> None:
    found = hive_columns(schema_of([("EventTime", pa.int64()), ("id", pa.string())]))
    assert dict(found) == {"eventtime": "bigint", "id": "string"}
    with pytest.raises(NoHiveType, match="two of them are named id"):
        hive_columns(schema_of([("ID", pa.int64()), ("id", pa.string())]))
