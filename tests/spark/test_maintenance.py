"""Maintenance of tables that others write, with the real Iceberg and the real Delta."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - how everybody imports it

from compactor.errors import InvalidInput
from compactor.settings.tables import parse_table
from compactor_spark.maintain import delta_number, rows
from compactor_spark.maintain.delta import DeltaTable
from compactor_spark.maintain.iceberg import IcebergTable
from compactor_spark.maintain.iceberg_snapshots import RUN, WHAT
from compactor_spark.maintain.rows import sums_of
from compactor_tables.lease import LeaseLost
from compactor_tables.maintenance_job import require_floors
from compactor_tables.metadata.measured_delta import measure_delta
from compactor_tables.orders import (
    CHECKPOINT,
    DELETES,
    EXPIRE,
    MANIFESTS,
    NUMBER,
    ORPHANS,
    REWRITE,
    SORT,
    ZORDER,
    Condition,
    Order,
    PartitionOrder,
)
from compactor_tables.table_engine import Rewritten

pytestmark = pytest.mark.slow
pytest.importorskip("pyiceberg")
pytest.importorskip("deltalake")

from tests.spark.maintenance_world import (  # noqa: E402 - needs both libraries
    DELTA,
    FILES,
    ICEBERG,
    ROWS,
    Maintained,
    Row,
    day,
    ids,
)
from tests.support.maintained_tables import BUCKET, shelve  # noqa: E402 - see above
from tests.support.memory_store import ManualClock, MemoryStore  # noqa: E402 - see above

A, B = "2026-11-01", "2026-11-02"
DAY = 86_400.0


class Killed(BaseException):
    """As if the driver were gone."""


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("templates")


@pytest.fixture(params=[ICEBERG, DELTA])
def table(
    request: pytest.FixtureRequest, tables: SparkSession, tmp_path: Path, templates: Path
) -> Maintained:
    made = Maintained(request.param, tables, tmp_path)
    made.begin(A, B, templates=templates)
    return made


@pytest.fixture
def iceberg(tables: SparkSession, tmp_path: Path) -> Maintained:
    return Maintained(ICEBERG, tables, tmp_path)


@pytest.fixture
def delta(tables: SparkSession, tmp_path: Path, templates: Path) -> Maintained:
    made = Maintained(DELTA, tables, tmp_path)
    made.begin(A, B, templates=templates)
    return made


def test_partitions_are_rewritten_with_the_same_rows(
    table: Maintained,
) -> None:
    table.delete("id IN (0, 2, 4)")
    table.others.sql(f"ALTER TABLE {table.sql} ADD COLUMNS (extra MAP<STRING, DOUBLE>)")
    before = table.read()
    assert len(before) == 2 * ROWS - 3
    steps = (REWRITE, DELETES, MANIFESTS, CHECKPOINT)
    order = table.order(day(A), day(B), steps=steps)
    receipt = table.maintain(order)
    assert (receipt.status, receipt.cause) == ("done", "")
    told, other = receipt.partitions
    assert (told.status, told.files, told.into, told.rows) == ("done", FILES, 1, ROWS - 3)
    assert (other.status, other.into, other.rows) == ("done", 1, ROWS)
    assert table.read() == before
    assert table.files() == {A: 1, B: 1}
    # Stored after each partition, each step and at the end.
    assert [len(one.partitions) for one in table.saved] == [1, 2, 2, 2, 2, 2, 2]
    assert receipt.at == table.engine().version()
    # The same order again finds all of it done.
    versions = table.versions()
    again = table.maintain(order, receipt=receipt)
    assert again.partitions[0].after == told.after
    assert table.versions() == versions


def test_rows_are_sorted_or_laid_together_while_others_append(
    table: Maintained, monkeypatch: pytest.MonkeyPatch
) -> None:
    if table.kind == ICEBERG:
        signed = _first(lambda: table.append(A), IcebergTable._signed)
        monkeypatch.setattr(IcebergTable, "_signed", signed)
        first: dict[str, Any] = {"how": SORT, "columns": ("id desc",)}
    else:
        made = _first(lambda: table.append(A), delta_number.repartitioned)
        monkeypatch.setattr(delta_number, "repartitioned", made)
        first = {"how": NUMBER, "num_files": 2}
    for run, partition, given in (
        ("run-1", day(A), first),
        ("run-2", day(B), {"how": ZORDER, "columns": ("v", "id")}),
    ):
        receipt = table.maintain(table.order(partition, run_id=run, **given))
        assert [one.status for one in receipt.partitions] == ["done"], receipt
    # What was appended meanwhile is there, beside what was rewritten.
    assert ids(table.read()) == list(range(2 * ROWS + 3))
    written = 1 if table.kind == ICEBERG else 2
    assert table.files() == {A: written + 1, B: 1}
    if table.kind == ICEBERG:
        where = f"day = '{A}' AND id < {2 * ROWS}"
        found = table.session.table(table.sql).where(where).select("id").collect()
        assert [row.id for row in found] == list(range(2 * ROWS - 2, -1, -2))


def _first(act: Callable[[], object], real: Callable[..., Any]) -> Callable[..., Any]:
    """What is done before the first call of something, by somebody else."""
    acts = [act]

    def called(*given: Any) -> Any:
        if acts:
            acts.pop()()
        return real(*given)

    return called


def test_who_commits_first_has_right_of_way(
    table: Maintained, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign = lambda: table.delete("id = 0")  # noqa: E731 - named for what it is
    given: dict[str, Any] = {}
    with monkeypatch.context() as patched:
        if table.kind == ICEBERG:
            patched.setattr(IcebergTable, "_signed", _first(foreign, IcebergTable._signed))
        else:
            made = _first(foreign, delta_number.repartitioned)
            patched.setattr(delta_number, "repartitioned", made)
            given = {"how": NUMBER, "num_files": 1}
        order = table.order(day(A), day(B), **given)
        receipt = table.maintain(order)
    assert receipt.status == "done"
    gave_way, done = receipt.partitions
    assert (gave_way.status, done.status) == ("gave way", "done")
    assert gave_way.why
    assert ids(table.read()) == list(range(1, 2 * ROWS))
    # The files that were written for nothing are gone at once, or orphans; the next try does it.
    again = table.maintain(order, receipt=receipt)
    assert {one.name: one.status for one in again.partitions} == {
        "day=2026-11-01": "done",
        "day=2026-11-02": "done",
    }
    assert table.files() == {A: 1, B: 1}
    assert ids(table.read()) == list(range(1, 2 * ROWS))


class Dropping(IcebergTable):
    """An Iceberg whose rewrites lose a file; then somebody may be quicker than we."""

    then: Callable[[], object] = staticmethod(lambda: None)

    def rewrite(self, partition: PartitionOrder, order: Order, what: str) -> Rewritten | None:
        found = self._table()
        base = str(found.currentSnapshot().snapshotId())
        lost = self._tasks(found, int(base), partition)[0].file()
        change = found.newRewrite().deleteFile(lost)
        change.set(RUN, order.run_id).set(WHAT, what).commit()
        self._ours = None
        type(self).then()
        return self.done(what, order)


class DroppingDelta(DeltaTable):
    """A Delta whose rewrites lose rows."""

    then: Callable[[], object] = staticmethod(lambda: None)

    def _optimize(self, partition: PartitionOrder, order: Order) -> None:
        where = self._predicate(partition)
        kept = self.session.read.format("delta").load(self.uri).where(where).limit(ROWS - 1)
        writer = kept.write.format("delta").option("dataChange", "false").mode("overwrite")
        writer.option("replaceWhere", where).save(self.uri)

    def rewrite(self, partition: PartitionOrder, order: Order, what: str) -> Rewritten | None:
        found = super().rewrite(partition, order, what)
        type(self).then()
        return found


def test_a_rewrite_with_other_rows_is_taken_back_and_nothing_is_let_go_of(
    table: Maintained, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = Dropping if table.kind == ICEBERG else DroppingDelta
    before, files = table.read(), table.on_disk()
    steps = (REWRITE, MANIFESTS, EXPIRE, ORPHANS)
    given: dict[str, Any] = {
        "steps": steps, "below_floor": True, "keep_seconds": 0.0,
    }  # fmt: skip
    receipt = table.maintain(table.order(day(A), day(B), **given), table.engine(kind))
    assert receipt.status == "failed"
    (told,) = receipt.partitions
    assert told.status == "rolled back"
    assert f"{ROWS} rows became" in told.why or "3 rows became 0" in told.why
    assert receipt.steps == {}
    assert table.read() == before
    assert files <= table.on_disk()
    # Somebody commits before that is seen: nothing of theirs is taken back.
    monkeypatch.setattr(kind, "then", staticmethod(lambda: table.append(B)))
    receipt = table.maintain(table.order(day(A), run_id="run-2", **given), table.engine(kind))
    assert (receipt.status, receipt.error) == ("failed", "RowsDiffer")
    assert f"go back to version {receipt.partitions[0].before}" in receipt.cause
    assert receipt.steps == {}
    assert set(range(2 * ROWS, 2 * ROWS + 3)) <= set(ids(table.read()))


def test_a_number_of_files_with_other_rows_is_not_even_committed(
    delta: Maintained, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dropping(found: DataFrame, number: int) -> DataFrame:
        return found.limit(ROWS - 1).repartition(number)

    versions, before = delta.versions(), delta.read()
    monkeypatch.setattr(delta_number, "repartitioned", dropping)
    order = delta.order(day(A), how=NUMBER, num_files=2, verify_rows=False)
    receipt = delta.maintain(order)
    (told,) = receipt.partitions
    assert (receipt.status, told.status) == ("failed", "failed")
    assert f"{ROWS} rows would have become {ROWS - 1}" in told.why
    assert (delta.versions(), delta.read()) == (versions, before)


def test_what_is_not_let_go_of_is_the_way_back(table: Maintained) -> None:
    before = table.read()
    first = table.engine().version()
    steps = (REWRITE, EXPIRE, ORPHANS)
    receipt = table.maintain(table.order(day(A), day(B), steps=steps))
    assert receipt.status == "done", receipt
    assert receipt.undo == first
    # Within keep_days the version before the rewrite comes back.
    if table.kind == DELTA:
        table.session.sql(f"RESTORE TABLE delta.`{table.uri}` TO VERSION AS OF {receipt.undo}")
    else:
        name = f"db.{table.name}"
        table.session.sql(f"CALL lake.system.rollback_to_snapshot('{name}', {receipt.undo})")
    assert table.files() == {A: FILES, B: FILES}
    assert table.read() == before


def test_old_files_that_nothing_names_go_and_younger_ones_stay(table: Maintained) -> None:
    table.maintain(table.order(day(A)))
    before = table.read()
    if table.kind == DELTA:
        table.age()
        assert len(_due(table)) == FILES
    root = next(path for path in table.directory.rglob("day=*")).parent
    for name, days in (("old", 8.0), ("young", 6.0)):
        path = root / f"{name}.parquet"
        path.write_bytes(b"rows of a driver that was killed")
        os.utime(path, (time.time() - days * DAY,) * 2)
    sizes = table.sizes()
    steps = (REWRITE, EXPIRE, ORPHANS)
    given: dict[str, Any] = {"steps": steps, "keep_versions": 1, "orphan_seconds": 7.5 * DAY}
    receipt = table.maintain(table.order(day(B), run_id="run-2", **given))
    assert receipt.status == "done", receipt
    left = table.on_disk()
    assert "old.parquet" not in left
    assert "young.parquet" in left
    # Replaced long ago in the Delta table, a moment ago in the other, and B's in both.
    assert len(left) == (2 + 1 + FILES if table.kind == DELTA else 2 + 1 + 2 * FILES)
    assert table.read() == before
    assert receipt.deleted_files == (FILES + 1 if table.kind == DELTA else 1)
    if table.kind == DELTA:
        # What the log is told of it says also that it need not be done again.
        gone = [size for name, size in sizes.items() if name not in left]
        assert receipt.deleted_bytes == sum(gone)
        assert receipt.steps[EXPIRE].startswith(f"{FILES} files")
        assert _due(table) == []


def _due(table: Maintained) -> list[float]:
    """Of a Delta table, when files went that an expiry would take now."""
    store = MemoryStore(ManualClock(1.0))
    store.add_bucket(BUCKET)
    shelve(table.directory / table.name / "_delta_log", store, "t/_delta_log/")
    now = time.time()
    found = measure_delta(parse_table(f"delta:s3://{BUCKET}/t/"), store, now)
    return [one for one in found.superseded if one < now - 7 * DAY]


def test_a_floor_is_refused_before_anything_is_touched(delta: Maintained) -> None:
    delta.age()
    files, versions = delta.on_disk(), delta.versions()
    for name, seconds in (("keep_seconds", 6 * DAY), ("orphan_seconds", 2 * DAY)):
        order = delta.order(day(A), steps=(REWRITE, EXPIRE, ORPHANS), **{name: seconds})
        with pytest.raises(InvalidInput, match=name):
            require_floors(order)
        receipt = delta.maintain(order)
        assert (receipt.status, receipt.error) == ("failed", "InvalidInput")
        assert name in receipt.cause
    assert (delta.on_disk(), delta.versions()) == (files, versions)
    iceberg_table: dict[str, Any] = {"table": "glue:db.t", "run_id": "r", "engine": "spark"}
    require_floors(Order(**iceberg_table, steps=(ORPHANS,), keep_seconds=0.0))
    require_floors(Order(**iceberg_table, steps=(EXPIRE,), keep_seconds=0.0, below_floor=True))


def test_nothing_is_begun_when_the_time_is_up(iceberg: Maintained) -> None:
    iceberg.make()
    iceberg.fill(A, B)
    order = iceberg.order(day(A), day(B), until=time.time() - 1)
    receipt = iceberg.maintain(order)
    assert (receipt.status, receipt.partitions) == ("more", [])


def test_nothing_is_begun_once_the_table_is_another_runs(iceberg: Maintained) -> None:
    iceberg.make()
    iceberg.fill(A, B)
    asked: list[int] = []

    def require_ours() -> None:
        asked.append(len(asked))
        # Before the work, before the first partition, before the second.
        if len(asked) == 3:
            raise LeaseLost("run two has it")

    receipt = iceberg.maintain(iceberg.order(day(A), day(B)), require_ours=require_ours)
    assert (receipt.status, receipt.error) == ("failed", "LeaseLost")
    assert [one.status for one in receipt.partitions] == ["done"]


def test_a_delta_driver_that_dies_before_its_commit_leaves_orphans_and_a_whole_table(
    delta: Maintained, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, files, calls = delta.read(), delta.on_disk(), []

    def killed(frame: DataFrame) -> object:
        calls.append(1)
        if len(calls) == 2:
            raise Killed
        return sums_of(frame)

    order = delta.order(day(A), how=NUMBER, num_files=2)
    with monkeypatch.context() as patched:
        patched.setattr(delta_number, "sums_of", killed)
        with pytest.raises(Killed):
            delta.maintain(order)
    orphans = delta.on_disk() - files
    assert len(orphans) == 2
    assert delta.read() == before
    for path in delta.directory.rglob("*.parquet"):
        if path.name in orphans:
            os.utime(path, (time.time() - 9 * DAY,) * 2)
    again = delta.order(day(A), how=NUMBER, num_files=2, steps=(REWRITE, ORPHANS), run_id="run-2")
    receipt = delta.maintain(again)
    assert receipt.status == "done", receipt
    assert not orphans & delta.on_disk()
    assert delta.files() == {A: 2, B: FILES}
    assert delta.read() == before


def _killed(directory: Path, where: str) -> None:
    worker = Path(__file__).with_name("maintenance_worker.py")
    ended = subprocess.run(
        [sys.executable, worker, str(directory), where],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == -9, ended.stderr[-2_000:]


def _finish(iceberg: Maintained, before: Sequence[Row]) -> None:
    """What a driver left that was killed after its commit, and what the next one makes of it."""
    # The first partition is rewritten, which no receipt says; the second is as it was.
    assert iceberg.files() == {A: 1, B: FILES}
    assert iceberg.read() == before
    receipt = iceberg.maintain(iceberg.order(day(A), day(B), steps=(REWRITE, EXPIRE)))
    assert receipt.status == "done", receipt
    found, done = receipt.partitions
    assert (found.status, found.files, found.rows) == ("done", FILES, ROWS)
    assert done.status == "done"
    # What it returns to is what was before the first of both.
    assert receipt.undo == found.before
    assert iceberg.files() == {A: 1, B: 1}
    assert iceberg.read() == before


def test_killed_drivers_leave_whole_tables_and_the_next_one_finds_what_is_done(
    iceberg: Maintained, delta: Maintained
) -> None:
    iceberg.make()
    iceberg.fill(A, B)
    before, rows = iceberg.read(), delta.read()
    first, files = delta.versions(), delta.on_disk()
    _killed(iceberg.directory, "rewrite")
    _finish(iceberg, before)
    # Of the other table nothing is committed: what was written is an orphan.
    orphans = delta.on_disk() - files
    assert orphans
    assert (delta.versions(), delta.read()) == (first, rows)
    _killed(delta.directory, "vacuum")
    # Now it is, and what was replaced is still there.
    assert delta.files() == {A: 1, B: FILES}
    assert files | orphans < delta.on_disk()
    assert delta.read() == rows
    delta.age()
    order = delta.order(day(A), steps=(REWRITE, ORPHANS))
    receipt = delta.maintain(order)
    assert receipt.status == "done", receipt
    (found,) = receipt.partitions
    assert (found.status, found.before, found.rows) == ("done", first[0], ROWS)
    assert len(delta.on_disk()) == 1 + FILES
    assert receipt.deleted_files == FILES + len(orphans)
    assert delta.read() == rows


_TYPES = (
    "i INT, l BIGINT, b BOOLEAN, dt DATE, tz TIMESTAMP, ntz TIMESTAMP_NTZ, de DECIMAL(6,2),"
    " st STRING, bi BINARY, v STRING, y TIMESTAMP, m TIMESTAMP, d TIMESTAMP, h TIMESTAMP, k BIGINT"
)
_VALUES = (
    "1, 2, true, DATE'2026-01-02', TIMESTAMP'2026-01-02 03:04:05.000006',"
    " TIMESTAMP_NTZ'2026-01-02 03:04:05', 12.30, 'a/b=c', X'0102', 'abcdef',"
    " TIMESTAMP'1969-12-31 23:59:59', TIMESTAMP'2026-01-02 03:04:05',"
    " TIMESTAMP'2026-01-02 03:04:05', TIMESTAMP'2026-01-02 03:04:05', 7"
)
_WHERE = (
    ("i", "identity", "1"),
    ("l", "identity", "2"),
    ("b", "identity", "true"),
    ("dt", "identity", "2026-01-02"),
    ("tz", "identity", "2026-01-02T03:04:05.000006+00:00"),
    ("ntz", "identity", "2026-01-02T03:04:05"),
    ("de", "identity", "12.30"),
    ("st", "identity", "a/b=c"),
    ("bi", "identity", "AQI="),
    ("v", "truncate[2]", "ab"),
    ("y", "year", "1969"),
    ("m", "month", "2026-01"),
    ("d", "day", "2026-01-02"),
    ("h", "hour", "2026-01-02-03"),
    ("k", "bucket[4]", "3"),
)


def test_each_transform_and_type_finds_the_files_of_its_partition(tables: SparkSession) -> None:
    division = ", ".join(one if how == "identity" else _as_ddl(one, how) for one, how, _ in _WHERE)
    tables.sql(f"CREATE TABLE lake.db.u ({_TYPES}) USING iceberg PARTITIONED BY ({division})")
    for _ in range(2):
        tables.sql(f"INSERT INTO lake.db.u VALUES ({_VALUES})")  # noqa: S608 - of this file
    nothing = ", ".join(["NULL"] * len(_WHERE))
    tables.sql(f"INSERT INTO lake.db.u VALUES ({nothing})")  # noqa: S608 - see above
    engine = IcebergTable(tables, "lake.db.u")
    found = engine._table()
    version = int(engine.version())
    for one in _WHERE:
        alone = PartitionOrder("one", where=(Condition(*one),))
        assert len(engine._tasks(found, version, alone)) == 2, one
        null = PartitionOrder("null", where=(Condition(*one[:2], None),))
        assert len(engine._tasks(found, version, null)) == 1, one
        other = PartitionOrder("other", where=(Condition(*one[:2], _other(one[2])),))
        assert engine._tasks(found, version, other) == [], one
    for wrong in (("i", "identity", "x"), ("m", "month", "2026"), ("k", "bucket", "1")):
        with pytest.raises(InvalidInput):
            engine._tasks(found, version, PartitionOrder("", where=(Condition(*wrong),)))
    # What an older spec has, and the present one not, is no condition for a rewrite.
    tables.sql("ALTER TABLE lake.db.u DROP PARTITION FIELD i")
    order = Order(run_id="r", table="glue:db.u", engine="spark")
    conditions = [Condition(*one) for one in _WHERE]
    for unfit, why in (
        (conditions[:1], "older partition spec"),
        (conditions[-1:], "bucket[4] of k, no range of it"),
        ([one for one in conditions if one.column == "v"], "truncate[2] of v, no range of it"),
        ([Condition("st", "void", None)], "void of st, no range of it"),
        ([Condition("gone", "day", A)], "no column gone"),
        ([], "no partitions"),
    ):
        assert why in engine.unfit(PartitionOrder("one", where=tuple(unfit)), order)
    newer = PartitionOrder("one", spec=1, where=tuple(conditions[1:]))
    assert "older partition spec" in engine.unfit(newer, order)


def _as_ddl(column: str, transform: str) -> str:
    name, _, width = transform.rstrip("]").partition("[")
    return f"{name}({width}, {column})" if width else f"{name}s({column})"


def _other(value: str) -> str:
    swapped = {"true": "false", "AQI=": "AQM=", "3": "1"}
    return swapped.get(value) or value.translate(str.maketrans("12a", "23b"))


_COLUMNS = (
    "INT",
    "DOUBLE",
    "DECIMAL(20,3)",
    "TIMESTAMP",
    "BINARY",
    "STRUCT<x: INT, y: STRING>",
    "ARRAY<STRUCT<k: STRING, v: INT>>",
    "MAP<STRING, ARRAY<DOUBLE>>",
)


def test_rows_that_differ_anywhere_have_other_sums(tables: SparkSession) -> None:
    row = (
        "1, double('NaN'), 1.5, TIMESTAMP'2026-01-02 03:04:05.000006', X'0102',"
        " named_struct('x', 1, 'y', null), array(named_struct('k', 'a', 'v', 1)),"
        " map('p', array(1.0D), 'q', array())"
    )
    others = (
        ("1.5,", "1.501,"),
        (".000006", ".000007"),
        ("X'0102'", "X'0103'"),
        ("'y', null", "'y', ''"),
        ("'v', 1", "'v', null"),
        ("'q', array()", "'q', null"),
        ("double('NaN')", "double('Infinity')"),
        ("array(1.0D)", "array(-1.0D)"),
    )

    def sums(*given: str) -> object:
        values = ", ".join(f"({one})" for one in given)
        frame = tables.sql(f"SELECT * FROM VALUES {values} AS t")  # noqa: S608 - see above
        cast = [f"CAST(col{n} AS {kind})" for n, kind in enumerate(_COLUMNS, start=1)]
        return sums_of(frame.selectExpr(*cast))

    second = row.replace("1,", "2,", 1)
    base = sums(row, second)
    # Neither the order of rows nor that of a map's entries is part of it.
    turned = second.replace("'p', array(1.0D), 'q', array()", "'q', array(), 'p', array(1.0D)")
    assert sums(turned, row) == base
    assert sums(row, row) != base
    for old, new in others:
        assert old in row
        assert sums(row.replace(old, new, 1), second) != base, new
    both = tables.sql("SELECT parse_json('{\"a\": 1}') AS v")
    assert sums_of(both) != sums_of(tables.sql("SELECT parse_json('{\"a\": 2}') AS v"))


def test_columns_without_a_hash_end_the_job_before_anything_is_rewritten(
    iceberg: Maintained, monkeypatch: pytest.MonkeyPatch
) -> None:
    iceberg.make()
    iceberg.fill(A)
    versions = iceberg.versions()
    # Every type of both formats has one here; a later Spark may bring others.
    monkeypatch.setattr(rows, "hash_sums", lambda _: [F.xxhash64(F.parse_json(F.lit("1")))])
    receipt = iceberg.maintain(iceberg.order(day(A)))
    assert (receipt.status, receipt.error) == ("failed", "InvalidInput")
    assert "columns of which Spark makes a hash" in receipt.cause
    assert iceberg.versions() == versions
