"""Columns found in a footer are those that Spark reads there, and writes into its catalog."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from compactor.rows.hive_types import hive_columns

OF_ALL_TYPES = """
    true as truth, 1Y as tiny, 1S as small, 1 as whole, 1L as large, 1.5F as single, 1.5D as double,
    'a' as text, X'00' as bytes, date '2026-01-01' as day, timestamp '2026-01-01 00:00:00' as at,
    1.25BD as exact, cast(1 as decimal(38, 10)) as wide, array(1, 2) as some,
    array(array('a')) as nested, map('k', 1L) as pairs,
    map('k', array(named_struct('x', 1))) as deep,
    array(named_struct('only', 1)) as single_members,
    named_struct('x', 1, 'y', array(named_struct('z', date '2026-01-01'))) as all_of_it
"""


@pytest.mark.parametrize("legacy", ["false", "true"])
@pytest.mark.parametrize("timestamps", ["INT96", "TIMESTAMP_MICROS", "TIMESTAMP_MILLIS"])
def test_columns_are_those_that_spark_reads(
    spark_session: SparkSession, tmp_path: Path, legacy: str, timestamps: str
) -> None:
    session = spark_session.newSession()
    session.conf.set("spark.sql.parquet.writeLegacyFormat", legacy)
    session.conf.set("spark.sql.parquet.outputTimestampType", timestamps)
    where = tmp_path / "all"
    session.sql(f"select {OF_ALL_TYPES}").coalesce(1).write.parquet(where.as_uri())
    (path,) = where.glob("*.parquet")

    found = hive_columns(pq.ParquetFile(path).schema_arrow)

    read = session.read.parquet(where.as_uri()).schema
    assert dict(found) == {one.name: one.dataType.simpleString() for one in read.fields}
