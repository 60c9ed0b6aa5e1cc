"""Tables of Iceberg and of Delta that others write, and orders for their maintenance."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from compactor_spark.maintain.delta import DeltaTable
from compactor_spark.maintain.iceberg import IcebergTable
from compactor_tables.maintenance_job import Maintenance
from compactor_tables.maintenance_receipts import MaintenanceReceipt
from compactor_tables.orders import REWRITE, Condition, Order, PartitionOrder
from compactor_tables.table_engine import Tables
from tests.support.table_engines import known_session

ICEBERG, DELTA = "iceberg", "delta"
#: Files of a partition to begin with.
FILES = 6
#: Rows of such a partition.
ROWS = 18
LONG_AGO_SECONDS = 40 * 86_400

Row = Mapping[str, Any]


def day(value: str | None, transform: str = "identity", column: str = "day") -> PartitionOrder:
    """A partition of one column."""
    return PartitionOrder(f"{column}={value}", where=(Condition(column, transform, value),))


@dataclass
class Maintained:
    """A table with two partitions ``day``, each of :data:`FILES` files, written by Spark.

    Attributes:
        kind: what it is made of.
        session: with its catalog.
        directory: where the catalog and the tables lie.
        saved: the receipts of the last job, as they were stored.
    """

    kind: str
    session: SparkSession
    directory: Path
    name: str = "t"
    saved: list[MaintenanceReceipt] = field(default_factory=list)
    _rows: int = 0

    def __post_init__(self) -> None:
        # What our session is told for a while, such as what its commits say, is not for others.
        self.others = known_session(self.session, self.directory)

    @property
    def sql(self) -> str:
        """As statements name it."""
        return f"lake.db.{self.name}" if self.kind == ICEBERG else f"delta.`{self.uri}`"

    @property
    def uri(self) -> str:
        """Of a Delta table."""
        return f"{self.directory.as_uri()}/{self.name}"

    def make(self, columns: str = "id BIGINT, day STRING, v STRING", **properties: str) -> None:
        """An empty table with partitions by ``day``, whose deletes are not files written anew."""
        own = {
            ICEBERG: {
                "format-version": "2",
                "write.delete.mode": "merge-on-read",
                "write.distribution-mode": "none",
                "write.spark.fanout.enabled": "true",
            },
            DELTA: {"delta.enableDeletionVectors": "true"},
        }[self.kind] | properties
        said = ", ".join(f"'{one}' = '{value}'" for one, value in own.items())
        self.others.sql(
            f"CREATE TABLE {self.sql} ({columns}) USING {self.kind} PARTITIONED BY (day)"
            f" TBLPROPERTIES ({said})"
        )

    def fill(self, *days: str) -> None:
        """Small files in each of these partitions, by one commit."""
        count = ROWS * len(days)
        first, self._rows = self._rows, self._rows + count
        frame = self.others.range(first, self._rows, 1, FILES).selectExpr(
            "id",
            f"element_at(split('{' '.join(days)}', ' '), 1 + int(id % {len(days)})) AS day",
            "concat('v', id) AS v",
        )
        self._write(frame)

    def begin(self, *days: str, templates: Path) -> None:
        """Make it and fill it, once for all tables of Delta: the paths in its log are relative.

        Args:
            days: as for :meth:`fill`.
            templates: where the first of them is kept.
        """
        own, template = self.directory / self.name, templates / self.kind
        if self.kind == DELTA and template.exists():
            shutil.copytree(template, own)
            self._rows = ROWS * len(days)
            return
        self.make()
        self.fill(*days)
        if self.kind == DELTA:
            shutil.copytree(own, template)

    def append(self, of_day: str, rows: int = 3) -> None:
        """A commit of another writer: one file."""
        first, self._rows = self._rows, self._rows + rows
        frame = self.others.range(first, self._rows).selectExpr(
            "id", f"'{of_day}' AS day", "concat('v', id) AS v"
        )
        self._write(frame.coalesce(1))

    def _write(self, frame: DataFrame) -> None:
        if self.kind == ICEBERG:
            frame.writeTo(self.sql).append()
        else:
            frame.write.format("delta").mode("append").save(self.uri)

    def delete(self, where: str) -> None:
        """A commit of another writer."""
        self.others.sql(f"DELETE FROM {self.sql} WHERE {where}")  # noqa: S608 - of tests

    def read(self) -> list[Row]:
        """All rows, by a library that has not written them."""
        if self.kind == ICEBERG:
            found = self._iceberg().scan().to_arrow()
        else:
            from deltalake import DeltaTable as Other
            from deltalake import QueryBuilder

            other = Other(self.uri)
            reader = QueryBuilder().register("t", other)
            found = pa.table(reader.execute("SELECT * FROM t"))
        return sorted(found.to_pylist(), key=lambda row: int(row["id"]))

    def files(self) -> dict[str, int]:
        """Data files that readers open, by partition."""
        if self.kind == ICEBERG:
            partitions = self._iceberg().inspect.data_files().column("partition")
            return dict(Counter(one["day"] for one in partitions.to_pylist()))
        from deltalake import DeltaTable as Other

        found = pa.table(Other(self.uri).get_add_actions(flatten=True))
        return dict(Counter(found.column("partition.day").to_pylist()))

    def versions(self) -> list[str]:
        """All that the table was, the newest first."""
        if self.kind == ICEBERG:
            return [str(one.snapshot_id) for one in reversed(self._iceberg().history())]
        log = self.directory / self.name / "_delta_log"
        return [str(int(path.stem)) for path in sorted(log.glob("*[0-9].json"), reverse=True)]

    def _iceberg(self) -> Any:
        from pyiceberg.catalog.sql import SqlCatalog

        catalog = SqlCatalog("lake", uri=f"sqlite:///{self.directory}/catalog.db")
        return catalog.load_table(f"db.{self.name}")

    def engine(self, kind: type[Tables] | None = None) -> Tables:
        """What maintains it; of this class where one is given."""
        if self.kind == ICEBERG:
            iceberg: Callable[[SparkSession, str], Tables] = kind or IcebergTable
            return iceberg(self.session, f"lake.db.{self.name}")
        delta: Callable[[SparkSession, str], Tables] = kind or DeltaTable
        return delta(self.session, self.uri)

    def order(self, *partitions: PartitionOrder, **given: Any) -> Order:
        """An order to rewrite partitions, unless something else is said."""
        table = "glue:db.t" if self.kind == ICEBERG else "delta:s3://lake/t/"
        usual: dict[str, Any] = {"run_id": "run-1", "engine": "spark", "steps": (REWRITE,)}
        if self.kind == DELTA:
            # OPTIMIZE takes what is smaller than a gigabyte by itself.
            usual["target_bytes"] = 1 << 20
        return Order(table=table, partitions=partitions, **(usual | given))

    def maintain(
        self,
        order: Order,
        engine: Tables | None = None,
        receipt: MaintenanceReceipt | None = None,
        *,
        ahead_seconds: float = 0.0,
        require_ours: Callable[[], None] = lambda: None,
    ) -> MaintenanceReceipt:
        """Do an order, as the job does it."""
        self.saved = []
        new = MaintenanceReceipt(table=order.table, run_id=order.run_id, engine="spark")
        work = Maintenance(
            order,
            engine or self.engine(),
            receipt or new,
            save=self._save,
            say=lambda _: None,
            now=lambda: time.time() + ahead_seconds,
            require_ours=require_ours,
        )
        return work.run()

    def _save(self, receipt: MaintenanceReceipt) -> None:
        self.saved.append(msgspec.json.decode(msgspec.json.encode(receipt), type=type(receipt)))

    def on_disk(self) -> set[str]:
        """Names of the data files that are there, named by a version or not."""
        return {path.name for path in self._paths()}

    def sizes(self) -> dict[str, int]:
        """Their bytes."""
        return {path.name: path.stat().st_size for path in self._paths()}

    def _paths(self) -> list[Path]:
        root = self.directory / ("warehouse/db" if self.kind == ICEBERG else "") / self.name
        return [path for path in root.rglob("*.parquet") if "_delta_log" not in path.parts]

    def age(self, seconds: float = LONG_AGO_SECONDS) -> None:
        """Make all of a Delta table as old as that: its files, and what its log says of them."""
        then = time.time() - seconds
        for path in sorted((self.directory / self.name).rglob("*")):
            if path.suffix == ".json":
                lines = [json.loads(line) for line in path.read_text().splitlines()]
                for line in lines:
                    for body in line.values():
                        for name in ("timestamp", "modificationTime", "deletionTimestamp"):
                            if isinstance(body, dict) and name in body:
                                body[name] = int(body[name] - seconds * 1000)
                path.write_text("".join(json.dumps(line) + "\n" for line in lines))
                path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
            if path.is_file():
                os.utime(path, (then, then))


def ids(rows: Sequence[Row]) -> list[int]:
    """The keys of rows, in order; a row that is there twice is in it twice."""
    return [int(row["id"]) for row in rows]
