"""What the design of tables takes for granted of Iceberg and Delta, asked of themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

_PROPERTY = "s3-compactor.log.last"


def _java_table(tables: SparkSession, name: str) -> Any:
    jvm: Any = tables._jvm
    return jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(tables._jsparkSession, name)


def test_a_property_outlives_every_way_to_take_rows_out_of_an_iceberg_table(
    tables: SparkSession,
) -> None:
    tables.sql(f"CREATE TABLE lake.db.t (id BIGINT) TBLPROPERTIES ('{_PROPERTY}' = '3')")
    for number in range(2):
        tables.range(number, number + 1).writeTo("lake.db.t").append()
    metadata = _java_table(tables, "lake.db.t").operations().current()
    uuid, first = metadata.uuid(), metadata.snapshots()[0].snapshotId()
    done = [
        f"CALL lake.system.rollback_to_snapshot('db.t', {first})",
        "CREATE OR REPLACE TABLE lake.db.t (id BIGINT) USING iceberg",
        "INSERT OVERWRITE lake.db.t SELECT 7L",
        "CALL lake.system.expire_snapshots('db.t', TIMESTAMP '2100-01-01', 1)",
    ]
    for statement in done:
        tables.sql(statement)
        found = _java_table(tables, "lake.db.t").operations().current()
        assert (found.uuid(), found.properties()[_PROPERTY]) == (uuid, "3"), statement
    assert [row.id for row in tables.table("lake.db.t").collect()] == [7]


def test_a_delta_transaction_outlives_an_overwrite_and_vacuum_spares_underscores(
    tables: SparkSession, tmp_path: Path
) -> None:
    place = f"{tmp_path.as_uri()}/delta"
    frame = tables.range(3)
    frame.write.format("delta").option("txnAppId", "log").option("txnVersion", 2).save(place)
    kept = tmp_path / "delta" / "_outputs" / "named_nowhere.parquet"
    kept.parent.mkdir()
    kept.write_bytes(b"rows")
    taken = kept.parent.parent / "named_nowhere.parquet"
    taken.write_bytes(b"rows")
    frame.write.format("delta").mode("overwrite").save(place)
    tables.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    tables.sql(f"VACUUM delta.`{place}` RETAIN 0 HOURS")
    assert (kept.exists(), taken.exists()) == (True, False)
    jvm: Any = tables._jvm
    log = jvm.org.apache.spark.sql.delta.DeltaLog
    snapshot = log.forTableWithSnapshot(tables._jsparkSession, place)._2()
    assert snapshot.transactions().get("log").get() == 2
