"""Spark reads the manifest table as it lies: its rows, its days, and objects without rows."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.cleaning import DAY
from tests.support.examples import NOW
from tests.support.world import World
from tests.unit.test_manifest_table import (
    JSON,
    TABLE,
    exported,
    objects,
    void_and_again,
    world_of,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_spark_reads_the_export_and_only_the_days_that_are_asked_for(
    spark_session: SparkSession, tmp_path: Path
) -> None:
    world: World = world_of()
    world.add_variety()
    world.run()
    void_and_again(world)
    world.clock.advance(DAY)
    world.add("z.json", JSON)
    world.run()
    # Its own place below a bucket, where a name begins with "_".
    place = tmp_path / TABLE
    for name, body in objects(world).items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(body)
    table = spark_session.read.parquet(str(place))
    expected = exported(world)
    names = [name for name in table.columns if name != "output_date"]
    rows = table.selectExpr("unix_micros(committed_at) AS at", "*").collect()
    found = []
    for row in rows:
        at = datetime.fromtimestamp(row["at"] / 1e6, UTC)
        assert row["output_date"] == at.date()
        values = {**row.asDict(), "committed_at": at}
        found.append(tuple(_plain(values[name]) for name in names))
    assert sorted(found, key=repr) == sorted(expected, key=repr)
    newest = date.fromordinal(datetime.fromtimestamp(NOW, UTC).toordinal() + 2)
    one_day = table.where(f"output_date = DATE '{newest}'")
    assert [row.source_key.rpartition("/")[2] for row in one_day.collect()] == ["z.json"]
    scanned = one_day._jdf.queryExecution().executedPlan().toString()
    assert "PartitionFilters: [isnotnull(output_date" in scanned


def _plain(value: object) -> object:
    return bytes(value) if isinstance(value, bytearray) else value
