"""The worker's rewrites of Iceberg tables beside other writers, read by pyiceberg and DuckDB."""

from __future__ import annotations

import io
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyiceberg")
pytest.importorskip("duckdb")

import duckdb
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntryStatus,
)
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation, ancestors_of
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import (
    DecimalType,
    DoubleType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestamptzType,
)

from compactor.errors import TableConflict
from compactor.settings.uris import parse_location
from compactor_tables.costs import WORKER
from compactor_tables.engine_choice import NONE
from compactor_tables.lease import Leases
from compactor_tables.maintenance_receipts import DONE, GAVE_WAY, LEFT, MaintenanceReceipt
from compactor_tables.metadata.measuring import measure_table
from compactor_tables.orders import Order
from compactor_tables.policies import read_policies
from compactor_tables.rewriting.iceberg import IcebergRewrites
from compactor_tables.rewriting.worker import carry_out
from compactor_tables.table_planning import TablePlan, plan_table
from tests.support.maintained_tables import BUCKET, IcebergLake, _DeleteFiles
from tests.support.memory_hooks import Call, Crashed
from tests.support.memory_store import ManualClock

STATE = parse_location(f"s3://{BUCKET}/state/")
SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "kind", StringType(), required=False),
    NestedField(3, "at", TimestamptzType(), required=False),
    NestedField(4, "tags", ListType(7, StringType(), element_required=False), required=False),
    NestedField(5, "point", StructType(NestedField(8, "x", IntegerType())), required=False),
    NestedField(
        6, "more", MapType(9, StringType(), 10, DoubleType(), value_required=False), required=False
    ),
    NestedField(11, "price", DecimalType(9, 2), required=False),
)
BY_NOTHING = UNPARTITIONED_PARTITION_SPEC
BY_KIND = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "kind"))
DAY_MICROSECONDS = 86_400_000_000


@pytest.fixture
def lake(tmp_path: Path) -> IcebergLake:
    return IcebergLake(tmp_path, time.time())


def rows(first: int, count: int = 5, kinds: str = "ab") -> pa.Table:
    def micros(number: int) -> int:
        return 1_700_000_000_000_000 + (number % 2) * DAY_MICROSECONDS

    names = [kinds[number % len(kinds)] for number in range(first, first + count)]
    return pa.table(
        {
            "id": pa.array(range(first, first + count), pa.int64()),
            "kind": pa.array(names, pa.string()),
            "at": pa.array(map(micros, range(first, first + count)), pa.timestamp("us", "UTC")),
            "tags": pa.array([["x", None], [], None, ["y"], ["z"]][:count], pa.list_(pa.string())),
            "point": pa.array([{"x": one} for one in range(count)], pa.struct([("x", pa.int32())])),
            "more": pa.array([[("k", 1.5)]] * count, pa.map_(pa.string(), pa.float64())),
            "price": pa.array([None, *["1.25"] * (count - 1)]).cast(pa.decimal128(9, 2)),
        }
    )


def append(table: Table, *tables: pa.Table) -> None:
    table.refresh()
    for one in tables:
        present = table.schema().as_arrow()
        table.append(one.cast(pa.schema([present.field(name) for name in one.column_names])))


def small(lake: IcebergLake, spec: Any = UNPARTITIONED_PARTITION_SPEC, **more: str) -> Table:
    """Return a table of eight files in each partition, of five rows a commit."""
    table = lake.create("events", SCHEMA, spec, **more)
    append(table, *(rows(number * 5) for number in range(8)))
    return table


def content(table: Table) -> Counter[str]:
    """Return the rows of a table, as pyiceberg reads them."""
    return Counter(map(repr, table.refresh().scan().to_arrow().to_pylist()))


def by_duckdb(lake: IcebergLake, table: Table, directory: Path) -> Counter[int]:
    """Return how often each id is in the data files, as DuckDB reads them."""
    directory.mkdir(exist_ok=True)
    paths = []
    for number, task in enumerate(table.refresh().scan().plan_files()):
        assert not task.delete_files
        path = directory / f"{number}.parquet"
        key = task.file.file_path.removeprefix(f"s3://{BUCKET}/")
        path.write_bytes(lake.store.get(BUCKET, key))
        paths.append(str(path))
    found = duckdb.sql("SELECT id FROM read_parquet($paths)", params={"paths": paths})
    assert found is not None
    return Counter(row[0] for row in found.fetchall())


def planned(lake: IcebergLake, **rule: Any) -> TablePlan:
    now = time.time() + 1
    given = {"match": ["*"], "closed_after_seconds": 0, **rule}
    measure = measure_table(lake.address("events"), lake.store, now)
    return plan_table(measure, read_policies([given]).of(measure.name), now)


def maintained(lake: IcebergLake, run_id: str = "run", **rule: Any) -> MaintenanceReceipt:
    order = planned(lake, **rule).order(run_id)
    assert order.engine == WORKER, order.reason
    return carried_out(lake, order)


def carried_out(lake: IcebergLake, order: Order) -> MaintenanceReceipt:
    clock = ManualClock(time.time() + 1)
    leases = Leases(lake.store, STATE, clock)
    leases.take(order.address, order.run_id, engine=WORKER)
    try:
        return carry_out(order, STATE, lake.store, clock, say=lambda line: None)
    finally:
        leases.release(order.address, order.run_id)


def files(table: Table) -> list[str]:
    return [one.file.file_path for one in table.refresh().scan().plan_files()]


def delete_positions(
    lake: IcebergLake, table: Table, positions: dict[str, list[int]], *, name: str = "d"
) -> None:
    """Commit a file of position deletes, as a merge-on-read DELETE does."""
    pairs = sorted((path, one) for path, found in positions.items() for one in found)
    body = io.BytesIO()
    fields = [
        pa.field("file_path", pa.string(), metadata={b"PARQUET:field_id": b"2147483546"}),
        pa.field("pos", pa.int64(), metadata={b"PARQUET:field_id": b"2147483545"}),
    ]
    columns = [list(one) for one in zip(*pairs, strict=True)]
    pq.write_table(pa.Table.from_arrays([*map(pa.array, columns)], schema=pa.schema(fields)), body)
    key = f"events/data/{name}.parquet"
    lake.store.put(BUCKET, key, body.getvalue())
    table.refresh()
    partition = next(
        one.file.partition for one in table.scan().plan_files() if one.file.file_path in positions
    )
    bounds = {2147483546: pairs[0][0].encode()}, {2147483546: pairs[-1][0].encode()}
    made = DataFile.from_args(
        content=DataFileContent.POSITION_DELETES,
        file_path=f"s3://{BUCKET}/{key}",
        file_format=FileFormat.PARQUET,
        partition=partition,
        record_count=len(pairs),
        file_size_in_bytes=len(body.getvalue()),
        lower_bounds=bounds[0],
        upper_bounds=bounds[1],
        spec_id=table.metadata.default_spec_id,
    )
    transaction = table.transaction()
    with _DeleteFiles(Operation.DELETE, transaction, table.io) as producer:
        producer.append_data_file(made)
    transaction.commit_transaction()


# What is rewritten.


@pytest.mark.parametrize("version", ["1", "2"])
def test_small_files_become_one_with_the_same_rows_and_field_ids(lake, tmp_path, version):
    table = small(lake, **{"format-version": version})
    before = content(table)
    receipt = maintained(lake)

    assert (receipt.status, receipt.error) == ("done", "")
    (partition,) = receipt.partitions
    assert (partition.status, partition.files, partition.into, partition.rows) == (DONE, 8, 1, 40)
    assert content(table) == before
    assert by_duckdb(lake, table, tmp_path / "read") == Counter(range(40))
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    assert snapshot.summary.operation == Operation.REPLACE
    assert snapshot.summary["total-data-files"] == "1"
    assert snapshot.summary["total-records"] == "40"
    (path,) = files(table)
    schema = pq.read_schema(io.BytesIO(lake.store.get(BUCKET, path[len(f"s3://{BUCKET}/") :])))
    ids = {one.name: int(one.metadata[b"PARQUET:field_id"]) for one in schema}
    assert ids == {one.name: one.field_id for one in table.schema().fields}
    (entry,) = table.inspect.files().to_pylist()
    assert entry["readable_metrics"]["id"]["lower_bound"] == 0
    assert entry["readable_metrics"]["id"]["upper_bound"] == 39
    assert entry["readable_metrics"]["price"]["null_value_count"] == 8


def test_each_partition_is_one_commit_and_keeps_its_value(lake):
    table = small(lake, BY_KIND)
    before = content(table)
    receipt = maintained(lake)

    assert receipt.status == "done"
    assert [(one.status, one.files, one.into) for one in receipt.partitions] == [(DONE, 8, 1)] * 2
    assert content(table) == before
    values = [one.file.partition for one in table.scan().plan_files()]
    assert len({repr(one) for one in values}) == 2
    kinds = table.scan(row_filter="kind = 'a'").to_arrow()["kind"].to_pylist()
    assert kinds == ["a"] * 20


def test_nothing_is_left_to_do_afterwards(lake):
    small(lake)
    maintained(lake)
    assert planned(lake).engine == NONE


def test_the_replaced_files_are_in_the_log_as_deleted_and_others_keep_their_numbers(lake):
    table = small(lake, BY_KIND)
    old = {one.snapshot_id: one.sequence_number or 0 for one in table.metadata.snapshots}
    maintained(lake, most_bytes=planned(lake).partitions[0].rewrite.bytes)
    snapshot = table.refresh().current_snapshot()
    assert snapshot is not None
    found = [
        entry
        for one in snapshot.manifests(table.io)
        for entry in one.fetch_manifest_entry(table.io, discard_deleted=False)
    ]
    states = Counter(one.status for one in found)
    assert states == {
        ManifestEntryStatus.ADDED: 1,
        ManifestEntryStatus.DELETED: 8,
        ManifestEntryStatus.EXISTING: 8,
    }
    for one in found:
        if one.status == ManifestEntryStatus.EXISTING:
            assert one.sequence_number == old[one.snapshot_id or 0]
        if one.status == ManifestEntryStatus.ADDED:
            # Equality deletes that are committed meanwhile have higher numbers, and so apply.
            assert one.sequence_number == max(old.values())


def test_files_of_older_schemas_get_the_present_columns(lake):
    table = small(lake)
    with table.update_schema() as update:
        update.rename_column("kind", "sort")
        update.add_column("extra", LongType())
        update.delete_column("price")
        update.update_column(("point", "x"), LongType())
    table.refresh()
    append(table, *_evolved(table, 3))
    before = content(table)
    assert maintained(lake).status == "done"
    assert content(table) == before
    assert len(files(table)) == 1


def _evolved(table: Table, count: int) -> Iterator[pa.Table]:
    schema = table.schema().as_arrow()
    for number in range(count):
        given = {"id": [100 + number], "sort": ["n"], "extra": [number]}
        nulls = {name: [None] for name in schema.names}
        yield pa.Table.from_pydict({**nulls, **given}, schema)


def test_a_large_partition_becomes_several_files_of_the_target_size(lake):
    table = lake.create("events", SCHEMA)
    words = [f"{number:>040}" for number in range(60_000)]
    for start in range(0, 60_000, 10_000):
        part = pa.table({"id": range(start, start + 10_000), "kind": words[start : start + 10_000]})
        schema = table.schema().as_arrow()
        nulls = [pa.nulls(10_000, one.type) for one in schema][2:]
        columns = [part["id"].cast(pa.int64()), part["kind"].cast(pa.large_string()), *nulls]
        table.append(pa.Table.from_arrays(columns, schema=schema))
    before = content(table)
    assert maintained(lake, min_files=2, target_bytes="1MiB").status == "done"
    assert content(table) == before


# Deletes.


@pytest.mark.parametrize("spec", [UNPARTITIONED_PARTITION_SPEC, BY_KIND], ids=["whole", "kind"])
def test_position_deletes_are_applied_and_their_files_dropped(lake, tmp_path, spec):
    table = small(lake, spec)
    for number, path in enumerate(files(table)):
        delete_positions(lake, table, {path: [0]}, name=f"d{number}")
    before = content(table)
    assert 0 < before.total() < 40
    receipt = maintained(lake, min_files=2)

    assert receipt.status == "done"
    assert content(table) == before
    assert not [one for one in table.scan().plan_files() if one.delete_files]
    assert by_duckdb(lake, table, tmp_path / "read").total() == before.total()
    snapshot = table.current_snapshot()
    assert snapshot is not None
    kinds = [one.content for one in snapshot.manifests(table.io)]
    assert ManifestContent.DELETES not in kinds


def test_a_delete_file_of_several_data_files_is_applied_to_each(lake):
    table = small(lake)
    delete_positions(lake, table, {path: [0, 1] for path in files(table)[:3]})
    before = content(table)
    assert before.total() == 34
    maintained(lake)
    assert content(table) == before


def test_deletes_of_a_partition_that_is_not_rewritten_stay(lake):
    table = small(lake, BY_KIND)
    paths = {one.file.partition[0]: one.file.file_path for one in table.scan().plan_files()}
    for kind, path in paths.items():
        delete_positions(lake, table, {path: [0]}, name=kind)
    before = content(table)
    maintained(lake, most_bytes=planned(lake).partitions[0].rewrite.bytes)
    assert content(table) == before
    left = [one for one in table.scan().plan_files() if one.delete_files]
    assert len(left) == 1


# Other writers.


class Meanwhile:
    """Does something when the worker stores its first new data file or manifest list."""

    def __init__(self, lake: IcebergLake, at: str, what: Callable[[], None]) -> None:
        self._lake, self._at, self._what = lake, at, what
        lake.store.hooks.before.append(self)

    def __call__(self, call: Call) -> None:
        if call.name in {"create", "put"} and self._at in call.key:
            self._lake.store.hooks.before.remove(self)
            self._what()


MOMENTS = ["events/data/", "events/metadata/snap-"]


@pytest.mark.parametrize("moment", MOMENTS)
def test_appends_meanwhile_are_kept(lake, moment):
    table = small(lake)
    other = lake.catalog.load_table("db.events")
    Meanwhile(lake, moment, lambda: append(other, rows(100), rows(105)))
    receipt = maintained(lake)
    assert receipt.partitions[0].status == DONE
    ids = Counter(table.refresh().scan().to_arrow()["id"].to_pylist())
    assert ids == Counter([*range(40), *range(100, 110)])
    assert len(files(table)) == 3


@pytest.mark.parametrize("moment", MOMENTS)
def test_it_gives_way_to_a_delete_of_whole_files(lake, moment):
    table = small(lake)
    other = lake.catalog.load_table("db.events")
    Meanwhile(lake, moment, lambda: other.delete("id = 7"))
    receipt = maintained(lake)
    assert receipt.partitions[0].status == GAVE_WAY
    ids = Counter(table.refresh().scan().to_arrow()["id"].to_pylist())
    assert ids == Counter(set(range(40)) - {7})
    assert maintained(lake, "again").partitions[0].status == DONE
    assert Counter(table.refresh().scan().to_arrow()["id"].to_pylist()) == ids


@pytest.mark.parametrize("moment", MOMENTS)
def test_it_gives_way_to_position_deletes_of_its_files(lake, moment):
    table = small(lake)
    first = files(table)[0]
    other = lake.catalog.load_table("db.events")
    Meanwhile(lake, moment, lambda: delete_positions(lake, other, {first: [2]}))
    assert maintained(lake).partitions[0].status == GAVE_WAY
    assert content(table).total() == 39


@pytest.mark.parametrize("moment", MOMENTS)
def test_deletes_in_another_partition_are_no_conflict(lake, moment):
    table = small(lake, BY_KIND)
    path = next(
        one.file.file_path for one in table.scan().plan_files() if one.file.partition[0] == "b"
    )
    other = lake.catalog.load_table("db.events")
    Meanwhile(lake, moment, lambda: delete_positions(lake, other, {path: [0]}))
    found = {one.name: one.status for one in maintained(lake).partitions}
    assert found["kind=a"] == DONE
    # Its own turn came after the delete.
    assert found["kind=b"] in {DONE, LEFT}
    assert content(table).total() == 39


@pytest.mark.parametrize("moment", MOMENTS)
def test_it_gives_way_to_an_overwrite(lake, moment):
    table = small(lake)
    other = lake.catalog.load_table("db.events")
    schema = other.schema().as_arrow()
    Meanwhile(lake, moment, lambda: other.overwrite(rows(500).cast(schema)))
    assert maintained(lake).partitions[0].status == GAVE_WAY
    assert Counter(table.refresh().scan().to_arrow()["id"].to_pylist()) == Counter(range(500, 505))


@pytest.mark.parametrize("moment", MOMENTS)
def test_it_gives_way_to_a_rollback(lake, moment):
    table = small(lake)
    target = [*ancestors_of(table.refresh().current_snapshot(), table.metadata)][2].snapshot_id
    other = lake.catalog.load_table("db.events")
    Meanwhile(lake, moment, lambda: other.manage_snapshots().rollback_to_snapshot(target).commit())
    assert maintained(lake).partitions[0].status == GAVE_WAY
    assert content(table).total() == 30


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_new_column_meanwhile_is_no_conflict(lake, moment):
    table = small(lake)
    other = lake.catalog.load_table("db.events")

    def evolve() -> None:
        with other.update_schema() as update:
            update.add_column("extra", LongType())

    Meanwhile(lake, moment, evolve)
    assert maintained(lake).partitions[0].status == DONE
    found = table.refresh().scan().to_arrow()
    assert found["extra"].null_count == found.num_rows == 40


def test_two_workers_at_once_rewrite_once(lake):
    table = small(lake)
    before = content(table)
    order = planned(lake).order("two")
    other = IcebergRewrites(order.address, lake.store)
    Meanwhile(
        lake, MOMENTS[1], lambda: other.rewrite(order.partitions[0], order, "rewrite") and None
    )
    assert maintained(lake).partitions[0].status == GAVE_WAY
    assert content(table) == before
    assert len(files(table)) == 1


# Kills, and answers that are lost.


def test_killed_at_any_request_it_goes_on_under_its_name_and_nothing_is_doubled(lake):
    table = small(lake, BY_KIND)
    before = content(table)
    order = planned(lake).order("run")
    kills, receipt = 0, None
    for number in range(1_000):
        left = number

        def kill(call: Call) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise Crashed

        lake.store.hooks.before.append(kill)
        try:
            receipt = carried_out(lake, order)
        except Crashed:
            kills += 1
            lake.store.hooks.clear()
            assert content(table) == before
            continue
        lake.store.hooks.clear()
        break
    assert kills > 10
    assert receipt is not None
    assert [one.status for one in receipt.partitions] == [DONE, DONE]
    assert [one.files for one in receipt.partitions] == [8, 8]
    assert content(table) == before
    assert len(files(table)) == 2


def test_a_commit_whose_answer_was_lost_is_found(lake, monkeypatch):
    table = small(lake)
    before = content(table)
    worker = IcebergRewrites(lake.address("events"), lake.store)
    commit = worker._catalog.commit_table

    def lost(*given: Any) -> Any:
        commit(*given)
        raise ConnectionError("the answer was lost")

    monkeypatch.setattr(worker._catalog, "commit_table", lost)
    order = planned(lake).order("run")
    found = worker.rewrite(order.partitions[0], order, "rewrite")
    assert found is not None
    assert (found.files, found.into, found.rows) == (8, 1, 40)
    assert content(table) == before


def test_a_catalog_that_refuses_is_no_conflict(lake, monkeypatch):
    table = small(lake)
    worker = IcebergRewrites(lake.address("events"), lake.store)

    def refused(*_: Any) -> Any:
        raise ValueError("not today")

    monkeypatch.setattr(worker._catalog, "commit_table", refused)
    order = planned(lake).order("run")
    with pytest.raises(ValueError, match="not today"):
        worker.rewrite(order.partitions[0], order, "rewrite")
    assert len(files(table)) == 8


def test_a_table_that_is_always_changed_first_is_left(lake, monkeypatch):
    table = small(lake)
    worker = IcebergRewrites(lake.address("events"), lake.store)
    other = lake.catalog.load_table("db.events")
    commit = worker._catalog.commit_table

    def late(*given: Any) -> Any:
        append(other, rows(1_000 + 5 * len(files(other))))
        return commit(*given)

    monkeypatch.setattr(worker._catalog, "commit_table", late)
    order = planned(lake).order("run")
    with pytest.raises(TableConflict, match="others committed first"):
        worker.rewrite(order.partitions[0], order, "rewrite")
    assert content(table).total() == 40 + 5 * 20
