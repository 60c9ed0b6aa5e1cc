"""The job that maintains tables, as spark-submit starts it, over tables on S3."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from compactor.s3.store import S3Store, make_client
from compactor.settings.tables import parse_table
from compactor.settings.uris import parse_location
from compactor_local.embedded import EmbeddedS3
from compactor_spark import maintain_tables, opening
from compactor_spark.opening import table_name, table_session
from compactor_tables.maintenance_receipts import MaintenanceReceipt, read_receipt
from compactor_tables.orders import (
    CHECKPOINT,
    EXPIRE,
    ORPHANS,
    REWRITE,
    Condition,
    Order,
    PartitionOrder,
    write_order,
)
from tests.support.embedded import find_embedded
from tests.support.table_engines import small_session

pytestmark = pytest.mark.slow
pytest.importorskip("pyiceberg")
pytest.importorskip("deltalake")
_names = itertools.count(1)


class Lasting:
    """A session that goes on when a job stops it."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def stop(self) -> None:
        """Others need it."""


def _own_session(session: SparkSession) -> SparkSession:
    """Without what the job is to set itself."""
    own = small_session(session)
    own.conf.unset("spark.sql.sources.parallelPartitionDiscovery.parallelism")
    return own


def _most_tasks(session: SparkSession, group: str) -> int:
    """Of the stages of all jobs of a group."""
    tracker = session.sparkContext.statusTracker()
    jobs = [tracker.getJobInfo(one) for one in tracker.getJobIdsForGroup(group)]
    stages = [tracker.getStageInfo(one) for job in jobs if job for one in job.stageIds]
    return max(stage.numTasks for stage in stages if stage)


@pytest.fixture
def bucket(
    s3: EmbeddedS3, tables: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> tuple[str, SparkSession]:
    find_embedded(s3, monkeypatch)
    monkeypatch.setattr(opening, "pinned_session", _own_session)
    monkeypatch.setattr(maintain_tables, "_session", lambda _: Lasting(tables))
    made = f"maintained-{next(_names)}"
    s3.create_bucket(made)
    return made, tables


def _make(session: SparkSession, address: str, bucket: str) -> str:
    """A table with two partitions, each of four files; returns what reads it."""
    parsed = parse_table(address)
    own = table_session(session, parsed, make_client(), f"s3://{bucket}/warehouse")
    kind = "delta" if parsed.kind == "delta" else "iceberg"
    name = f"delta.`{parsed.uri}`" if kind == "delta" else table_name(parsed)
    if kind == "iceberg":
        own.sql("CREATE NAMESPACE compactor.lake")
    # Else Iceberg puts all rows of a partition into one file.
    said = "TBLPROPERTIES ('write.distribution-mode' = 'none')" if kind == "iceberg" else ""
    made = f"CREATE TABLE {name} (id BIGINT, day STRING) USING {kind} PARTITIONED BY (day) {said}"
    own.sql(made)
    for day in ("a", "b"):
        own.sql(f"INSERT INTO {name} SELECT id, '{day}' FROM range(0, 8, 1, 4)")  # noqa: S608 - of this test
    return name


@pytest.mark.parametrize("kind", ["iceberg", "delta"])
def test_the_job_does_orders_from_s3_and_leaves_receipts_there(
    bucket: tuple[str, SparkSession], tmp_path: Path, kind: str
) -> None:
    at, session = bucket
    address = {
        "iceberg": f"sql:sqlite:///{tmp_path}/own.db#lake.t",
        "delta": f"delta:s3://{at}/t/",
    }[kind]
    name = _make(session, address, at)
    state, store = parse_location(f"s3://{at}/state/"), S3Store(make_client())
    partitions = tuple(
        PartitionOrder(f"day={one}", where=(Condition("day", "identity", one),)) for one in "ab"
    )
    steps = (REWRITE, CHECKPOINT, EXPIRE, ORPHANS)
    order = Order(
        run_id="run-1", table=address, engine="spark", steps=steps, partitions=partitions,
        min_files=2,
    )  # fmt: skip
    uri = write_order(order, state, store)

    def receipt_of(run_id: str) -> MaintenanceReceipt:
        found = read_receipt(state, run_id, address, store)
        assert found is not None
        return found

    session.sparkContext.setJobGroup(uri, "")
    assert maintain_tables.main(["--order", uri]) == 0
    # By itself VACUUM takes ten thousand.
    assert _most_tasks(session, uri) <= 8
    receipt = receipt_of("run-1")
    assert receipt.status == "done", receipt
    told = [(one.status, one.files, one.into, one.rows) for one in receipt.partitions]
    assert told == [("done", 4, 1, 8)] * 2
    assert set(receipt.steps) == {CHECKPOINT, EXPIRE, ORPHANS}
    assert receipt.steps[ORPHANS].startswith("0 files older than")
    # S3 has the files still that the way back needs.
    own = table_session(session, parse_table(address), make_client(), f"s3://{at}/state/warehouse")
    if kind == "iceberg":
        own.sql(f"USE {table_name(parse_table(address)).partition('.')[0]}")
    own.sql(receipt.undo_sql)
    assert own.table(name).count() == 2 * 8


def test_an_order_that_is_not_there_ends_the_job_before_it_begins(
    bucket: tuple[str, SparkSession], capsys: pytest.CaptureFixture[str]
) -> None:
    at, _ = bucket
    for uri in ("nowhere", f"s3://{at}/no-run", f"s3://{at}/state/runs/r/tables/x.order.json"):
        with pytest.raises(SystemExit) as ended:
            maintain_tables.main(["--order", uri])
        assert ended.value.code == 2
        assert "the URI of an order" in capsys.readouterr().err
    # An order of one run in the place of another's.
    state, store = parse_location(f"s3://{at}/state/"), S3Store(make_client())
    order = Order(run_id="run-1", table="glue:a.b", engine="spark")
    key = write_order(order, state, store).removeprefix(f"s3://{at}/")
    moved = key.replace("run-1", "run-2")
    store.put(at, moved, store.get(at, key), content_type="application/json")
    with pytest.raises(SystemExit):
        maintain_tables.main(["--order", f"s3://{at}/{moved}"])
    assert "its own run" in capsys.readouterr().err


def test_spark_is_started_with_what_all_tables_of_a_job_need() -> None:
    from compactor_spark.maintain.opening import start_settings

    found = start_settings([parse_table("glue:a.b"), parse_table("delta:s3://lake/t/")], {})
    assert found["spark.sql.extensions"].count(",") == 1
    assert "spark_catalog" in " ".join(found)
