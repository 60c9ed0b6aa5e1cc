"""The worker's rewrites of Delta tables beside delta-rs, which also reads the result."""

from __future__ import annotations

import datetime
import json
import time
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("deltalake")
pytest.importorskip("duckdb")

import duckdb
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake

from compactor.settings.tables import parse_table
from compactor.settings.uris import parse_location
from compactor_tables.costs import SPARK, WORKER
from compactor_tables.engine_choice import NONE
from compactor_tables.lease import Leases
from compactor_tables.maintenance_receipts import DONE, GAVE_WAY, MaintenanceReceipt
from compactor_tables.metadata.measuring import measure_table
from compactor_tables.orders import Order
from compactor_tables.policies import read_policies
from compactor_tables.rewriting import row_files
from compactor_tables.rewriting.delta import DeltaRewrites
from compactor_tables.rewriting.worker import carry_out
from compactor_tables.table_planning import TablePlan, plan_table
from tests.support.directory_store import DirectoryStore
from tests.support.maintained_tables import DeltaLines, added
from tests.support.memory_hooks import Call, Crashed
from tests.support.memory_store import ManualClock, MemoryStore

BUCKET = "lake"
TABLE = parse_table(f"delta:s3://{BUCKET}/events/")
STATE = parse_location(f"s3://{BUCKET}/state/")


@pytest.fixture
def store(tmp_path: Path) -> DirectoryStore:
    return DirectoryStore(BUCKET, tmp_path / "lake")


def uri(store: DirectoryStore) -> str:
    return str(store.directory / "events")


def rows(first: int, count: int = 5) -> pa.Table:
    numbers = [*range(first, first + count)]
    moment = datetime.datetime(2026, 11, 1, 0, 0, 0, 123456, tzinfo=datetime.UTC)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "kind": ["a b" if one % 2 else None for one in numbers],
            "at": pa.array([moment] * count, pa.timestamp("us", "UTC")),
            "day": pa.array([datetime.date(2026, 11, 1)] * count),
            "price": pa.array([Decimal("1.25")] * count, pa.decimal128(9, 2)),
            "good": [None, *[True] * (count - 1)],
            "share": [one / 4 for one in numbers],
            "small": pa.array([one % 100 for one in numbers], pa.int8()),
            "bytes": pa.array([b"\xff\x00"] * count),
            "point": [{"x": one, "tags": ["a", None]} for one in numbers],
            "more": pa.array([[("k", 1)]] * count, pa.map_(pa.string(), pa.int64())),
        }
    )


def small(store: DirectoryStore, by: list[str] | None = None, **configuration: str) -> None:
    """Make a table of eight commits of five rows each."""
    for number in range(8):
        write_deltalake(
            uri(store),
            rows(number * 5),
            mode="append",
            partition_by=by,
            configuration=configuration or None,
        )


def content(store: DirectoryStore) -> Counter[str]:
    found = DeltaTable(uri(store)).to_pyarrow_table()
    return Counter(map(repr, found.select(sorted(found.column_names)).to_pylist()))


def ids(store: DirectoryStore) -> Counter[int]:
    return Counter(DeltaTable(uri(store)).to_pyarrow_table()["id"].to_pylist())


def files(store: DirectoryStore) -> list[str]:
    return DeltaTable(uri(store)).file_uris()


def planned(store: MemoryStore, **rule: Any) -> TablePlan:
    now = time.time() + 1
    given = {"match": ["*"], "closed_after_seconds": 0, **rule}
    measure = measure_table(TABLE, store, now)
    return plan_table(measure, read_policies([given]).of(TABLE.text), now)


def maintained(store: DirectoryStore, run_id: str = "run", **rule: Any) -> MaintenanceReceipt:
    order = planned(store, **rule).order(run_id)
    assert order.engine == WORKER, order.reason
    return carried_out(store, order)


def carried_out(store: DirectoryStore, order: Order) -> MaintenanceReceipt:
    clock = ManualClock(time.time())
    leases = Leases(store, STATE, clock)
    leases.take(TABLE, order.run_id, engine=WORKER)
    try:
        return carry_out(order, STATE, store, clock, say=lambda line: None)
    finally:
        leases.release(TABLE, order.run_id)


def last_entry(store: DirectoryStore) -> list[dict[str, Any]]:
    log = sorted((store.directory / "events" / "_delta_log").glob("*.json"))
    return [json.loads(line) for line in log[-1].read_text().splitlines()]


# What is rewritten.


def test_small_files_become_one_with_the_same_rows(store):
    small(store)
    before = content(store)
    receipt = maintained(store)

    assert (receipt.status, receipt.error) == ("done", "")
    (partition,) = receipt.partitions
    assert (partition.status, partition.why) == (DONE, "")
    assert (partition.files, partition.into, partition.rows) == (8, 1, 40)
    assert content(store) == before
    (path,) = files(store)
    found = duckdb.sql("SELECT id FROM read_parquet($path)", params={"path": path})
    assert found is not None
    assert Counter(row[0] for row in found.fetchall()) == Counter(range(40))
    actions = [pair for line in last_entry(store) for pair in line.items()]
    changes = {kind: one.get("dataChange") for kind, one in actions}
    assert (changes["add"], changes["remove"]) == (False, False)
    assert planned(store).engine == NONE


def test_many_files_are_read_as_listed(store, monkeypatch):
    monkeypatch.setattr(row_files, "_FEWEST_LISTED", 2)
    small(store, ["kind"])
    before = content(store)
    read: list[str] = []
    store.hooks.before.append(lambda call: read.append(f"{call.name} {call.key[-8:]}"))
    assert maintained(store).status == "done"
    store.quiet()
    assert content(store) == before
    assert read.count("read_source .parquet") == 16


def test_filters_find_the_rows_by_the_new_statistics(store):
    small(store)
    maintained(store)
    found = DeltaTable(uri(store)).to_pyarrow_dataset()
    assert found.count_rows(filter=ds.field("id") == 39) == 1
    assert found.count_rows(filter=ds.field("share") > 9.5) == 1
    assert found.count_rows(filter=ds.field("good") == True) == 32  # noqa: E712 - of Arrow
    assert found.count_rows(filter=ds.field("price") == Decimal("1.25")) == 40
    assert found.count_rows(filter=ds.field("day") == datetime.date(2026, 11, 1)) == 40
    moment = datetime.datetime(2026, 11, 1, 0, 0, 0, 123456, tzinfo=datetime.UTC)
    assert found.count_rows(filter=ds.field("at") == moment) == 40
    assert found.count_rows(filter=ds.field("kind") == "a b") == 20


def test_each_partition_keeps_its_value_also_null_and_escaped(store):
    small(store, ["kind"])
    before = content(store)
    receipt = maintained(store)
    assert [(one.status, one.files, one.into) for one in receipt.partitions] == [(DONE, 8, 1)] * 2
    assert content(store) == before
    assert len(files(store)) == 2


def test_a_column_that_came_later_is_null_in_older_rows(store):
    small(store)
    later = rows(100).append_column("extra", pa.array(range(5), pa.int32()))
    write_deltalake(uri(store), later, mode="append", schema_mode="merge")
    before = content(store)
    assert maintained(store).status == "done"
    assert content(store) == before
    assert len(files(store)) == 1


def test_columns_keep_their_physical_names_and_ids(store):
    columns = [("a", "col-1", 1, "long"), ("b", "col-2", 2, "string")]
    fields = [
        {
            "name": name,
            "type": kind,
            "nullable": True,
            "metadata": {
                "delta.columnMapping.physicalName": physical,
                "delta.columnMapping.id": number,
            },
        }
        for name, physical, number, kind in columns
    ]
    schema = json.dumps({"type": "struct", "fields": fields})
    log = store.directory / "events" / "_delta_log"
    log.mkdir(parents=True)
    actions: list[dict[str, Any]] = [
        {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}},
        {"metaData": {"id": "0", "schemaString": schema, "partitionColumns": []}},
    ]
    for number in range(6):
        path = store.directory / "events" / f"{number}.parquet"
        # The second column came later, and a third one was dropped.
        given: dict[str, list[Any]] = {"col-1": [number], "col-2": ["x"], "col-3": [1]}
        names = ("col-1", "col-3") if number < 3 else ("col-1", "col-2")
        pq.write_table(pa.table({name: given[name] for name in names}), path)
        actions.append(added(path.name, path.stat().st_size, 1))
    (log / f"{0:020}.json").write_text("\n".join(map(json.dumps, actions)))
    assert maintained(store).status == "done"
    (add,) = [one["add"] for one in last_entry(store) if "add" in one]
    found = pq.read_table(store.directory / "events" / add["path"])
    assert found.to_pydict() == {"col-1": [*range(6)], "col-2": [None] * 3 + ["x"] * 3}
    assert [one.metadata[b"PARQUET:field_id"] for one in found.schema] == [b"1", b"2"]
    assert json.loads(add["stats"])["maxValues"]["col-1"] == 5


def test_vacuum_by_delta_rs_deletes_what_was_replaced_and_nothing_else(store):
    small(store, ["kind"])
    before = content(store)
    maintained(store)
    table = DeltaTable(uri(store))
    gone = table.vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)
    assert len([one for one in gone if one.endswith(".parquet")]) == 16
    assert content(store) == before


# Other writers.


class Meanwhile:
    """Does something when the worker stores its first new data file, or its commit."""

    def __init__(self, store: DirectoryStore, at: str, what: Callable[[], Any]) -> None:
        self._store, self._at, self._what = store, at, what
        store.hooks.before.insert(0, self)

    def __call__(self, call: Call) -> None:
        if call.name == "create" and self._at in call.key:
            self._store.hooks.before.remove(self)
            self._what()


MOMENTS = [".zstd.parquet", "_delta_log/"]


@pytest.mark.parametrize("moment", MOMENTS)
def test_appends_meanwhile_are_kept(store, moment):
    small(store)
    Meanwhile(
        store,
        moment,
        lambda: [write_deltalake(uri(store), rows(100 + n), mode="append") for n in (0, 5)],
    )
    assert maintained(store).partitions[0].status == DONE
    assert ids(store) == Counter([*range(40), *range(100, 110)])
    assert len(files(store)) == 3


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize(
    ("what", "expected"),
    [
        (lambda path: DeltaTable(path).delete("id = 7"), 39),
        (lambda path: DeltaTable(path).update({"share": "0.0"}, predicate="id = 7"), 40),
        (lambda path: write_deltalake(path, rows(500), mode="overwrite"), 5),
        (lambda path: DeltaTable(path).restore(3), 20),
    ],
    ids=["delete", "update", "overwrite", "restore"],
)
def test_it_gives_way_to_what_touches_its_files(store, moment, what, expected):
    small(store)
    Meanwhile(store, moment, lambda: what(uri(store)))
    assert maintained(store).partitions[0].status == GAVE_WAY
    assert ids(store).total() == expected
    assert set(ids(store).values()) == {1}


@pytest.mark.parametrize("moment", MOMENTS)
def test_it_gives_way_to_a_new_column(store, moment):
    small(store)
    later = rows(100).append_column("extra", pa.array(range(5), pa.int32()))
    Meanwhile(
        store,
        moment,
        lambda: write_deltalake(uri(store), later, mode="append", schema_mode="merge"),
    )
    assert maintained(store).partitions[0].status == GAVE_WAY
    assert ids(store).total() == 45


def test_two_workers_at_once_rewrite_once(store):
    small(store)
    order = planned(store).order("two")
    other = DeltaRewrites(TABLE, store, ManualClock(time.time()))
    Meanwhile(store, MOMENTS[1], lambda: other.rewrite(order.partitions[0], order, "rewrite"))
    assert maintained(store).partitions[0].status == GAVE_WAY
    assert ids(store) == Counter(range(40))
    assert len(files(store)) == 1


# Kills, and answers that are lost.


def test_killed_at_any_request_it_goes_on_under_its_name_and_nothing_is_doubled(store):
    small(store, ["kind"])
    before = content(store)
    order = planned(store).order("run")
    kills, receipt = 0, None
    for number in range(500):
        left = number

        def kill(call: Call) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise Crashed

        store.hooks.before.append(kill)
        try:
            receipt = carried_out(store, order)
        except Crashed:
            kills += 1
            store.quiet()
            assert content(store) == before
            continue
        store.quiet()
        break
    assert kills > 10
    assert receipt is not None
    assert [(one.status, one.files) for one in receipt.partitions] == [(DONE, 8)] * 2
    assert content(store) == before
    assert len(files(store)) == 2


def test_a_commit_that_is_stored_and_reported_as_taken_is_found(store):
    small(store)
    before = content(store)
    create = store.create

    def repeated(bucket: str, key: str, body: bytes, **more: Any) -> None:
        create(bucket, key, body, **more)
        if "_delta_log/" in key:
            create(bucket, key, body, **more)

    store.create = repeated
    receipt = maintained(store)
    assert [(one.status, one.files) for one in receipt.partitions] == [(DONE, 8)]
    assert content(store) == before


# Which go to Spark.


@pytest.fixture
def memory() -> MemoryStore:
    found = MemoryStore(ManualClock())
    found.add_bucket(BUCKET)
    return found


def reason(found: TablePlan) -> str:
    assert found.engine == SPARK
    return found.unable[WORKER]


@pytest.mark.parametrize(
    "feature", ["rowTracking", "clustering", "icebergCompatV2", "inCommitTimestamp", "typeWidening"]
)
def test_a_table_with_a_feature_that_a_worker_does_not_write(memory, feature):
    lines = DeltaLines(memory)
    lines.commit({"protocol": {"minWriterVersion": 7, "writerFeatures": [feature]}})
    lines.commit(*(added(f"{number}", 1_000) for number in range(8)))
    assert reason(planned(memory)) == f"it has the feature {feature}"


@pytest.mark.parametrize("feature", ["appendOnly", "changeDataFeed", "columnMapping"])
def test_a_table_with_a_feature_that_a_worker_writes(memory, feature):
    lines = DeltaLines(memory)
    lines.commit({"protocol": {"minWriterVersion": 7, "writerFeatures": [feature]}})
    lines.commit(*(added(f"{number}", 1_000) for number in range(8)))
    assert planned(memory).engine == WORKER


def test_a_table_with_deletion_vectors(memory):
    lines = DeltaLines(memory, features="deletionVectors")
    lines.commit(*(added(f"{number}", 1_000, deleted=number % 2) for number in range(8)))
    assert reason(planned(memory)) == "it has deletion vectors"


@pytest.mark.parametrize(("name", "value"), [("num_files", 2), ("zorder", ["v"])])
def test_a_rule_that_orders_more_than_packing(memory, name, value):
    lines = DeltaLines(memory)
    lines.commit(*(added(f"{number}", 1_000) for number in range(8)))
    assert reason(planned(memory, **{name: value})) == f"the worker does not rewrite by {name}"


def test_a_column_of_a_type_that_arrow_does_not_have(memory):
    lines = DeltaLines(memory)
    schema = json.dumps({"type": "struct", "fields": [{"name": "v", "type": "variant"}]})
    lines.commit({"metaData": {"id": "0", "schemaString": schema, "partitionColumns": []}})
    lines.commit(*(added(f"{number}", 1_000) for number in range(8)))
    assert reason(planned(memory)) == "it has columns of type 'variant'"
