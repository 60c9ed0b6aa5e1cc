"""What is read of a Delta table's checkpoints, in every form in which Spark writes them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable as Other
from pyspark.sql import SparkSession

from compactor.errors import TransientStoreError
from compactor.settings.tables import parse_table
from compactor_tables.measures import TableMeasure
from compactor_tables.metadata.measured_delta import measure_delta
from tests.spark.maintenance_world import DELTA, Maintained, day
from tests.support.maintained_tables import BUCKET, shelve
from tests.support.memory_store import ManualClock, MemoryStore

pytestmark = pytest.mark.slow

A, B = "2026-11-01", "2026-11-02"
# Actions of a part or a sidecar.
_PART_SIZE = "4"
_V2 = {"delta.checkpointPolicy": "v2"}
_STRUCT = {
    "delta.checkpoint.writeStatsAsJson": "false",
    "delta.checkpoint.writeStatsAsStruct": "true",
}
# Each with the properties of the table, the session's settings and the names that it leaves.
_FORMS: tuple[tuple[str, Mapping[str, str], Mapping[str, str], str], ...] = (
    ("one", {}, {}, "*.checkpoint.parquet"),
    ("parts", {}, {"checkpoint.partSize": _PART_SIZE}, "*.checkpoint.*.*.parquet"),
    ("statistics as columns", _STRUCT, {}, "*.checkpoint.parquet"),
    (
        "v2, JSON",
        _V2,
        {"checkpointV2.topLevelFileFormat": "json", "checkpoint.partSize": _PART_SIZE},
        "*.checkpoint.*-*.json",
    ),
    (
        "v2, Parquet",
        {},
        {"checkpointV2.topLevelFileFormat": "parquet", "checkpoint.partSize": _PART_SIZE},
        "*.checkpoint.*-*.parquet",
    ),
)


@pytest.fixture
def table(tables: SparkSession, tmp_path: Path) -> Maintained:
    """Two partitions, one of them with deletion vectors, and files that are replaced."""
    tables.conf.set("spark.databricks.delta.stats.collect", "true")
    made = Maintained(DELTA, tables, tmp_path)
    made.others.conf.set("spark.databricks.delta.stats.collect", "true")
    # By itself Delta makes one with every tenth version.
    made.make(**{"delta.checkpointInterval": "100"})
    made.fill(A, B)
    made.maintain(made.order(day(A)))
    made.delete(f"day = '{B}' AND id % 4 = 1")
    return made


def _measured(table: Maintained) -> tuple[TableMeasure, MemoryStore]:
    store = MemoryStore(ManualClock(1.0))
    store.add_bucket(BUCKET)
    shelve(_log(table), store, "t/_delta_log/")
    return measure_delta(parse_table(f"delta:s3://{BUCKET}/t/"), store, 1.0), store


def _log(table: Maintained) -> Path:
    return table.directory / table.name / "_delta_log"


def _told(measure: TableMeasure) -> Counter[Any]:
    """Each file: its partition, its size, its rows and how many of them are deleted."""
    return Counter(
        (one.where[0].value, file.size, file.rows, file.deleted)
        for one in measure.partitions
        for file in one.files
    )


def _of_spark(table: Maintained) -> Iterator[tuple[Any, ...]]:
    jvm: Any = table.others._jvm
    log = jvm.org.apache.spark.sql.delta.DeltaLog
    log.clearCache()
    found = log.forTableWithSnapshot(table.others._jsparkSession, table.uri)._2()
    for line in found.allFiles().toJSON().collectAsList():
        one = json.loads(line)
        rows = json.loads(one["stats"])["numRecords"]
        deleted = one.get("deletionVector", {}).get("cardinality", 0)
        yield one["partitionValues"]["day"], one["size"], rows, deleted


def test_a_checkpoint_of_any_form_says_what_spark_and_delta_rs_read_in_it(
    table: Maintained,
) -> None:
    engine: Any = table.engine()
    for form, properties, settings, names in _FORMS:
        if properties:
            said = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
            table.others.sql(f"ALTER TABLE {table.sql} SET TBLPROPERTIES ({said})")
        for name, value in settings.items():
            table.session.conf.set(f"spark.databricks.delta.{name}", value)
        there = set(_log(table).glob(names))
        line = engine.checkpoint(table.order()).line
        for name in settings:
            table.session.conf.unset(f"spark.databricks.delta.{name}")
        assert set(_log(table).glob(names)) > there, form
        table.append(A)
        measure, _ = _measured(table)
        assert line == f"of version {int(measure.version) - 1}", form
        assert measure.metadata_files == 1, form
        expected = Counter(_of_spark(table))
        assert _told(measure) == expected, form
        assert any(deleted for *_, deleted in expected)
        adds = pa.table(Other(table.uri).get_add_actions(flatten=True))
        sizes = Counter(size for _, size, _, _ in expected.elements())
        assert Counter(adds.column("size_bytes").to_pylist()) == sizes, form
        assert measure.superseded, form


def test_a_part_that_is_gone_makes_it_begin_again_or_take_an_older_checkpoint(
    table: Maintained,
) -> None:
    engine: Any = table.engine()
    expected = _told(_measured(table)[0])
    table.session.conf.set("spark.databricks.delta.checkpoint.partSize", _PART_SIZE)
    engine.checkpoint(table.order())
    measure, store = _measured(table)
    assert (measure.metadata_files, _told(measure)) == (0, expected)
    (last, *_) = sorted(_log(table).glob("*.checkpoint.*.parquet"))
    store.remove(BUCKET, f"t/_delta_log/{last.name}")
    again = measure_delta(parse_table(measure.name), store, 1.0)
    assert again.metadata_files == again.versions
    assert _told(again) == expected
    # Who reads one of the second form finds what it names, or another one.
    table.others.sql(f"ALTER TABLE {table.sql} SET TBLPROPERTIES ('delta.checkpointPolicy' = 'v2')")
    engine.checkpoint(table.order())
    measure, store = _measured(table)
    assert _told(measure) == expected
    (sidecar, *_) = sorted((_log(table) / "_sidecars").glob("0*.parquet"))
    store.remove(BUCKET, f"t/_delta_log/_sidecars/{sidecar.name}")
    with pytest.raises(TransientStoreError, match=sidecar.name):
        measure_delta(parse_table(measure.name), store, 1.0)


class Silent:
    """A log that writes no checkpoint, and says nothing of it: what goes wrong is only logged."""

    def __init__(self, log: Any) -> None:
        self._log = log

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def checkpoint(self) -> None:
        """As where S3 does not answer."""


def test_a_checkpoint_that_delta_did_not_write_is_not_said_to_be_there(
    table: Maintained, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine: Any = table.engine()
    log, snapshot = engine._look()
    with monkeypatch.context() as patched:
        patched.setattr(engine, "_look", lambda: (Silent(log), snapshot))
        assert engine.checkpoint(table.order()).line.startswith("Delta wrote none")
    there = f"of version {table.versions()[0]}"
    # The second time there is one already.
    assert [engine.checkpoint(table.order()).line for _ in range(2)] == [there, there]
