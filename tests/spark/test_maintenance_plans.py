"""What a plan selects of ten tables of Spark's, and that nothing of it is left afterwards."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import load_catalog
from pyspark.sql import DataFrame, SparkSession

from compactor.settings.tables import parse_table
from compactor.sizes import MIB
from compactor_tables.costs import Rewrite
from compactor_tables.measures import TableMeasure
from compactor_tables.metadata.measured_delta import measure_delta
from compactor_tables.metadata.measured_iceberg import measured
from compactor_tables.policies import read_policies
from compactor_tables.table_planning import plan_table
from tests.support.maintained_tables import BUCKET, COLUMNS, TEN, TableToMake, shelve
from tests.support.memory_store import ManualClock, MemoryStore

_FILES_A_COMMIT = 5
# The least that a rule may ask for, and nothing is written any more.
_RULE = {"match": ["*"], "target_bytes": MIB, "min_files": 2, "closed_after_seconds": 0}
POLICIES = read_policies([{**_RULE, "engine": "spark"}])


class MadeTable:
    """A table that Spark wrote.

    Args:
        tables: a session with catalogs.
        directory: of the catalog, and of Delta tables.
        spec: what to make.
    """

    def __init__(self, tables: SparkSession, directory: Path, spec: TableToMake) -> None:
        self._spark, self._directory, self.spec = tables, directory, spec
        self.is_delta = spec.format == "delta"
        self._place = directory / "delta" / spec.name
        self.sql = f"delta.`{self._place}`" if self.is_delta else f"lake.db.{spec.name}"

    def make(self) -> None:
        self._spark.conf.set("spark.databricks.delta.stats.collect", "true")
        # Else a union of frames of one task each has one task.
        self._spark.conf.set("spark.sql.unionOutputPartitioning", "false")
        by = f"PARTITIONED BY ({self.spec.partitioned_by})" if self.spec.partitioned_by else ""
        named = ", ".join(f"'{name}' = '{value}'" for name, value in self.spec.properties.items())
        properties = f"TBLPROPERTIES ({named})" if named else ""
        using = "delta" if self.is_delta else "iceberg"
        self._spark.sql(f"CREATE TABLE {self.sql} ({COLUMNS}) USING {using} {by} {properties}")
        # A commit takes longer than its files; several have as many manifests, or versions.
        numbered = list(enumerate(self.spec.batches))
        for first in range(0, len(numbered), _FILES_A_COMMIT):
            self._append(numbered[first : first + _FILES_A_COMMIT])
        if self.spec.deletes:
            self._spark.sql(f"DELETE FROM {self.sql} WHERE {self.spec.deletes}")  # noqa: S608 - our own

    def _append(self, batches: Sequence[tuple[int, int]]) -> None:
        """One commit, each batch a task and so a file in each partition."""
        frame = reduce(DataFrame.union, (self._rows(*one) for one in batches))
        if self.is_delta:
            frame.write.format("delta").mode("append").save(str(self._place))
        else:
            writer = frame.writeTo(self.sql).option("fanout-enabled", "true")
            writer.option("distribution-mode", "none").append()

    def _rows(self, number: int, rows: int) -> DataFrame:
        # What packs to nothing less: of all else a writer thinks that it is more than it is.
        bytes_ = ", ".join(f"unhex(sha2(concat(id, '-{number}-{n}'), 256))" for n in range(6))
        return self._spark.range(0, rows, numPartitions=1).selectExpr(
            f"id + {number} * 100000 AS id",
            "CASE id % 3 WHEN 0 THEN 'a/b=c d' WHEN 1 THEN NULL ELSE 'plain' END AS kind",
            "CAST(timestamp_seconds(1761955200 + (id % 2) * 3000000) AS TIMESTAMP_NTZ) AS at",
            f"concat({bytes_}) AS payload",
        )

    def measure(self) -> TableMeasure:
        if self.is_delta:
            store = MemoryStore(ManualClock(1.0))
            store.add_bucket(BUCKET)
            shelve(self._place / "_delta_log", store, "t/_delta_log/")
            address = parse_table(f"delta:s3://{BUCKET}/t/")
            return measure_delta(address, store, time.time())
        uri = f"sqlite:///{self._directory}{os.sep}catalog.db"
        table = load_catalog("lake", type="sql", uri=uri).load_table(f"db.{self.spec.name}")
        return measured(table, f"sql:{uri}#db.{self.spec.name}", time.time())

    def rewrite(self) -> Rewrite:
        """Have it rewritten, and return what the engine says of it."""
        if self.is_delta:
            for name in ("minFileSize", "maxFileSize"):
                self._spark.conf.set(f"spark.databricks.delta.optimize.{name}", str(MIB))
            (row,) = self._spark.sql(f"OPTIMIZE {self.sql}").collect()
            told = row.metrics
            size = told.filesRemoved.totalSize if told.numFilesRemoved else 0
            return Rewrite(told.numFilesRemoved, size)
        options = f"map('min-input-files', '2', 'target-file-size-bytes', '{MIB}')"
        call = f"rewrite_data_files(table => 'db.{self.spec.name}', options => {options})"
        (row,) = self._spark.sql(f"CALL lake.system.{call}").collect()
        return Rewrite(row.rewritten_data_files_count, row.rewritten_bytes_count)

    def deleted(self) -> int:
        """Rows that are gone, by what was written and what is there."""
        return sum(self.spec.batches) - self._spark.table(self.sql).count()

    def directories(self) -> Counter[str]:
        """Where an engine puts the files of each partition, and how many."""
        if self.is_delta:
            # Nothing is removed before the first rewrite.
            paths = [path.relative_to(self._place) for path in self._place.rglob("*.parquet")]
            return Counter(str(path.parent) for path in paths if path.parts[0] != "_delta_log")
        rows = self._spark.table(f"{self.sql}.data_files").collect()
        return Counter(row.file_path.partition("/data/")[2].rpartition("/")[0] for row in rows)


@pytest.fixture
def made(tables: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> MadeTable:
    table = MadeTable(tables, tmp_path, request.param)
    table.make()
    return table


def _name(value: Any) -> str:
    return str(value.name)


@pytest.mark.parametrize("made", TEN, indirect=True, ids=_name)
def test_an_engine_rewrites_what_a_plan_selects_and_the_next_plan_selects_less(
    made: MadeTable,
) -> None:
    measure = made.measure()
    assert measure.rows == sum(made.spec.batches)
    assert measure.deleted == made.deleted()
    assert bool(measure.delete_files) == bool(made.spec.deletes)
    named = {one.name or ".": len(one.files) for one in measure.partitions}
    assert named == {name or ".": files for name, files in made.directories().items()}
    plan = plan_table(measure, POLICIES.of(measure.name), measure.at, ["spark"])
    assert plan.engine == "spark"
    selected, rewritten = plan.rewrite, made.rewrite()
    # The engine packs the selected files, and takes more of the same partitions where they fit.
    assert rewritten.files >= selected.files > 0
    again = plan_table(made.measure(), POLICIES.of(measure.name), time.time(), ["spark"])
    assert again.rewrite.files < selected.files
