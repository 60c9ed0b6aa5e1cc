"""Files of an older partition spec, with the real Iceberg: planned, rewritten and compared."""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from compactor_tables.maintenance_receipts import GAVE_WAY
from compactor_tables.orders import DELETES, REWRITE, Order
from compactor_tables.policies import read_policies
from compactor_tables.table_planning import TablePlan, plan_table

pytestmark = pytest.mark.slow
pytest.importorskip("pyiceberg")

from pyiceberg.catalog import load_catalog  # noqa: E402 - needs pyiceberg
from pyiceberg.table import Table  # noqa: E402 - see above

from compactor_spark.maintain.iceberg import IcebergTable  # noqa: E402 - see above
from compactor_tables.metadata.measured_iceberg import measured  # noqa: E402 - see above
from tests.spark.maintenance_world import ICEBERG, Maintained  # noqa: E402 - see above

_FILES, _ROWS = 6, 18
_FIRST, _SECOND, _THIRD = (f"ts_day=2026-11-0{number}" for number in (1, 2, 3))


class EvolvedTable:
    """A table by day to which ``country`` was added; both specs have files in the same days.

    Args:
        tables: a session with catalogs.
        directory: of the catalog.
    """

    def __init__(self, tables: SparkSession, directory: Path) -> None:
        self._uri = f"sqlite:///{directory}{os.sep}catalog.db"
        self.world = Maintained(ICEBERG, tables, directory)
        self.sql = self.world.others.sql
        self.sql(
            "CREATE TABLE lake.db.t (id BIGINT, ts TIMESTAMP, country STRING) USING iceberg"
            " PARTITIONED BY (days(ts)) TBLPROPERTIES ('format-version' = '2',"
            " 'write.delete.mode' = 'merge-on-read', 'write.distribution-mode' = 'none',"
            " 'write.spark.fanout.enabled' = 'true')"
        )
        for number, day in enumerate((1, 2)):
            self.append(day, _ROWS, first=number * _ROWS, files=_FILES)
        self.sql("DELETE FROM lake.db.t WHERE id IN (0, 5)")
        self.sql("ALTER TABLE lake.db.t ADD PARTITION FIELD country")

    def append(self, day: int, rows: int, *, first: int, files: int = 1) -> None:
        frame = self.world.others.range(first, first + rows, 1, files).selectExpr(
            "id",
            f"TIMESTAMP'2026-11-0{day} 00:00:00' + make_interval(0, 0, 0, 0, id % 24) AS ts",
            "element_at(array('de', 'at'), 1 + int(id % 2)) AS country",
        )
        frame.writeTo("lake.db.t").append()

    def delete_equal(self, row: int, spec: int, partition: str) -> None:
        """A commit of a streaming writer: an equality delete of a row by its ``id``."""
        path = self.world.directory / f"{spec}-{row}.parquet"
        column = pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})
        pq.write_table(pa.table([[row]], schema=pa.schema([column])), path)
        session = self.world.session
        jvm: Any = session._jvm
        gateway: Any = session.sparkContext._gateway
        numbers = gateway.new_array(jvm.int, 1)
        numbers[0] = 1
        table = IcebergTable(session, "lake.db.t")._table()
        made = jvm.org.apache.iceberg.FileMetadata.deleteFileBuilder(table.specs().get(spec))
        made = made.ofEqualityDeletes(numbers).withPath(path.as_uri()).withFormat("parquet")
        made = made.withFileSizeInBytes(path.stat().st_size).withRecordCount(1)
        table.newRowDelta().addDeletes(made.withPartitionPath(partition).build()).commit()

    def ids(self) -> list[int]:
        """Of all rows, by Spark: pyiceberg reads no equality deletes."""
        rows = self.world.others.table("lake.db.t").select("id").collect()
        return sorted(row.id for row in rows)

    def load(self) -> Table:
        return load_catalog("lake", type="sql", uri=self._uri).load_table("db.t")

    def rows(self) -> list[Any]:
        return sorted(self.load().scan().to_arrow().to_pylist(), key=lambda row: int(row["id"]))

    def files(self) -> Counter[tuple[int, str, str | None]]:
        """Data files by spec, day and country, by pyiceberg."""
        rows = self.load().inspect.data_files().to_pylist()
        found = ((one["spec_id"], one["partition"]) for one in rows)
        return Counter((n, str(one["ts_day"])[-2:], one.get("country")) for n, one in found)

    def plan(self, **rule: Any) -> TablePlan:
        measure = measured(self.load(), f"sql:{self._uri}#db.t", time.time())
        given = {"match": ["*"], "engine": "spark", "closed_after_seconds": 0, **rule}
        return plan_table(measure, read_policies([given]).of(measure.name), measure.at)

    def unfit(self, order: Order) -> list[str]:
        engine = IcebergTable(self.world.session, "lake.db.t")
        return [engine.unfit(one, order) for one in order.partitions]


def test_files_of_before_a_field_was_added_become_files_of_the_present_spec(
    tables: SparkSession, tmp_path: Path
) -> None:
    table = EvolvedTable(tables, tmp_path)
    table.append(1, 4, first=100)
    for number in range(5):
        table.append(3, 2, first=200 + 2 * number)
    before = table.rows()
    assert len(before) == 2 * _ROWS - 2 + 4 + 10
    assert table.files() == {
        (0, "01", None): _FILES,
        (0, "02", None): _FILES,
        (1, "01", "de"): 1,
        (1, "01", "at"): 1,
        (1, "03", "de"): 5,
        (1, "03", "at"): 5,
    }
    plan = table.plan()
    assert [(one.name, one.files, one.rewrite.files) for one in plan.partitions] == [
        (_FIRST, _FILES + 2, _FILES),
        (_SECOND, _FILES, _FILES),
        (f"{_THIRD}/country=at", 5, 5),
        (f"{_THIRD}/country=de", 5, 5),
    ]
    assert plan.steps[:2] == (REWRITE, DELETES)
    receipt = table.world.maintain(plan.order("run-1"))
    assert receipt.status == "done", receipt
    assert [(one.name, one.status, one.files, one.rows) for one in receipt.partitions] == [
        (_FIRST, "done", _FILES, _ROWS - 2),
        (_SECOND, "done", _FILES, _ROWS),
        (f"{_THIRD}/country=at", "done", 5, 5),
        (f"{_THIRD}/country=de", "done", 5, 5),
    ]
    assert table.rows() == before
    after = table.files()
    assert {spec for spec, _, _ in after} == {1}
    assert after[1, "01", "de"] + after[1, "01", "at"] == 4
    # Younger than every delete, so that none of another spec applies to them.
    first = table.load().snapshot_by_id(int(receipt.partitions[0].after))
    assert first is not None
    entries = table.load().inspect.entries(first.snapshot_id).to_pylist()
    came = [one for one in entries if one["snapshot_id"] == first.snapshot_id]
    assert {one["sequence_number"] for one in came if one["status"] == 1} == {10}
    assert first.sequence_number == 10
    assert table.plan().rewrite.files == 0


def test_sorted_are_the_files_of_both_specs_and_those_of_a_third_are_refused(
    tables: SparkSession, tmp_path: Path
) -> None:
    table = EvolvedTable(tables, tmp_path)
    table.append(2, 4, first=100)
    order = table.plan(sort=["id desc"]).order("run-1")
    assert [(one.name, one.files) for one in order.partitions] == [
        (_FIRST, _FILES),
        (_SECOND, _FILES + 2),
    ]
    before = table.rows()
    # The first day stays in files of the older spec.
    second = msgspec.structs.replace(order, partitions=order.partitions[1:])
    (done,) = table.world.maintain(second).partitions
    assert (done.status, done.files, done.rows) == ("done", _FILES + 2, _ROWS + 4)
    assert table.rows() == before
    assert sorted(table.files().items())[0] == ((0, "01", None), _FILES)
    # Files of a third spec may have rows of the day: neither judge takes it.
    table.sql("ALTER TABLE lake.db.t REPLACE PARTITION FIELD ts_day WITH hours(ts) AS hour")
    table.append(1, 2, first=400)
    refused = table.plan()
    assert "ts_day" in " ".join(one.name for one in refused.partitions)
    assert not [one for one in refused.order("r").partitions if one.name.startswith(_FIRST)]
    assert "older partition spec" in table.unfit(order)[0]
    # With the day again, what the third spec has of it is the only reason.
    table.sql("ALTER TABLE lake.db.t ADD PARTITION FIELD days(ts) AS day_again")
    table.sql("ALTER TABLE lake.db.t DROP PARTITION FIELD hour")
    assert not [one for one in table.plan().order("r").partitions if one.where]
    assert "older partition spec" in table.unfit(order)[0]


def test_deletes_of_either_spec_that_come_meanwhile_apply_to_what_they_applied_to(
    tables: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = EvolvedTable(tables, tmp_path)
    order = table.plan().order("run-1")
    real = IcebergTable._signed
    meanwhile = [
        # Of rows of the second day, which are in files of the older spec: only this one is gone.
        lambda: table.delete_equal(_ROWS, 0, _SECOND),
        lambda: table.delete_equal(1, 1, f"{_FIRST}/country=at"),
    ]

    def signed(*given: Any) -> Any:
        if meanwhile:
            meanwhile.pop()()
        return real(*given)

    monkeypatch.setattr(IcebergTable, "_signed", signed)
    receipt = table.world.maintain(order)
    kept, gave_way = receipt.partitions
    assert (kept.status, kept.rows) == ("done", _ROWS - 2), receipt
    assert gave_way.status == GAVE_WAY, receipt
    wanted = sorted({*range(2 * _ROWS)} - {0, 5, _ROWS})
    assert table.ids() == wanted
    receipt = table.world.maintain(table.plan().order("run-2"))
    assert [(one.status, one.rows) for one in receipt.partitions] == [("done", _ROWS - 1)]
    assert table.ids() == wanted
    assert {spec for spec, _, _ in table.files()} == {1}
