"""Outputs whose rows have a key say of each row where it comes from."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from compactor.errors import InvalidInput
from compactor.outputs.verify import check_commit
from compactor_spark.columnar import staging
from tests.spark.row_world import RowWorld

Rows = Callable[..., RowWorld]
KEYED: dict[str, Any] = {"table": "glue:lake.people", "upsert_key": ["id"]}


def origins(world: RowWorld) -> list[tuple[int, str, int]]:
    found = world.output().collect()
    return [(row.id, row["__source_key"].rpartition("/")[2], row["__position"]) for row in found]


def test_a_record_is_named_by_its_source_and_its_place_among_all_records_there(rows: Rows) -> None:
    world = rows(**KEYED, parquet_schema="id BIGINT")
    world.put_lines("1.json", {"id": 7}, {"id": 8})
    # A record that does not fit has its place, too; what is blank has none.
    world.put("2 %+é.json", b'{"id": 9}\n\n{"other": 1}\n{"id": 10}\n')
    (commit,) = world.run()
    assert origins(world) == [
        (7, "1.json", 0),
        (8, "1.json", 1),
        (9, "2 %+é.json", 0),
        (10, "2 %+é.json", 2),
    ]
    assert commit.output is not None
    assert commit.output.columnar is not None
    assert StructType.fromJson(json.loads(commit.output.columnar.schema)) == StructType(
        [
            StructField("id", LongType()),
            StructField("__source_key", StringType()),
            StructField("__position", LongType()),
        ]
    )
    assert check_commit(commit, world.store) == 4


@pytest.mark.parametrize("way", ["staged", "s3a"])
def test_rows_of_parquet_are_named_whichever_way_spark_reads_them(
    rows: Rows, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    world = rows(format="parquet", small_object_bytes=1, **KEYED)
    if not staging._Known(world.session)(way) and way != "staged":
        pytest.skip("no hadoop-aws among Spark's jars")
    world.put_sql("1.parquet", "select id, 'old' as name from range(2)")
    world.put_sql("2 with+blanks.parquet", "select id from range(3, 5)")
    world.put_sql("3?.parquet", "select id from range(5, 7)")
    monkeypatch.setattr("compactor_spark.columnar.groups.access_of", lambda _: way)
    world.run()
    assert sorted(origins(world)) == [
        (0, "1.parquet", 0),
        (1, "1.parquet", 1),
        (3, "2 with+blanks.parquet", 0),
        (4, "2 with+blanks.parquet", 1),
        (5, "3?.parquet", 0),
        (6, "3?.parquet", 1),
    ]


def test_a_column_that_is_called_so_already_is_refused(rows: Rows) -> None:
    world = rows(**KEYED)
    world.put_lines("1.json", {"id": 1, "__Position": 2})
    with pytest.raises(InvalidInput, match=r"column: '__Position' .* another name with upsert_key"):
        world.pending()
