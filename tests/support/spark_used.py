"""Uses what the tests' Spark jobs use, so that its classes are loaded: rows, Parquet, tasks."""

from __future__ import annotations

import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

session = (
    SparkSession.Builder()
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "2")
    .getOrCreate()
)
rows = session.range(100).selectExpr("id", "cast(id as string) name", "named_struct('a', id) deep")
with tempfile.TemporaryDirectory() as directory:
    place = Path(directory, "rows").as_uri()
    rows.repartition(2).write.parquet(place)
    session.read.parquet(place).groupBy("name").count().orderBy("name").collect()
session.sparkContext.parallelize(range(4), 2).map(lambda one: one + 1).sum()
session.stop()
