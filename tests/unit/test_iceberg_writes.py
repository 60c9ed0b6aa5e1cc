"""What a snapshot of a real Iceberg table wrote, by its manifests."""

from __future__ import annotations

from pathlib import Path

import pytest

from compactor.errors import TransientStoreError
from compactor_tables.measures import PartitionValue
from compactor_tables.touched_partitions import Touched
from tests.support.memory_store import Call

pytest.importorskip("pyiceberg")

import pyarrow as pa
from pyiceberg.manifest import DataFileContent
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType

from compactor_tables.metadata.iceberg_writes import IcebergWrites
from tests.support.maintained_tables import IcebergLake, Named

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "kind", StringType(), required=False),
)
BY_KIND = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "kind"))


@pytest.fixture
def lake(tmp_path: Path) -> IcebergLake:
    return IcebergLake(tmp_path)


def touched(lake: IcebergLake, table: Table) -> list[str]:
    """Partitions of the snapshot of now."""
    now = table.refresh()
    found = IcebergWrites(lake.store).touched(now.metadata_location, _current(now))
    return sorted(one.name for one in found)


def _current(table: Table) -> str:
    snapshot = table.current_snapshot()
    assert snapshot is not None
    return f"{snapshot.snapshot_id}"


def test_a_snapshot_has_touched_what_it_added_and_nothing_of_before(lake: IcebergLake) -> None:
    table = lake.create("events", SCHEMA, BY_KIND)
    lake.name(table, [Named(5, partition=("a",)), Named(6, partition=("a",))])
    lake.name(table, [Named(5, partition=("b",)), Named(5, partition=(None,))])

    assert touched(lake, table) == ["kind=b", "kind=null"]


def test_deletes_count_and_so_do_files_that_went(lake: IcebergLake) -> None:
    table = lake.create("events", SCHEMA, BY_KIND)
    lake.name(table, [Named(5, partition=(one,)) for one in "abc"])
    lake.delete(table.refresh(), [Named(1, partition=("c",))])
    assert touched(lake, table) == ["kind=c"]
    equality = DataFileContent.EQUALITY_DELETES
    lake.delete(table.refresh(), [Named(1, partition=("b",))], content=equality)
    assert touched(lake, table) == ["kind=b"]
    real = lake.create("real", SCHEMA, BY_KIND)
    for one in "ab":
        real.append(_row(real, one))
    real.delete("kind = 'a'")
    assert touched(lake, real) == ["kind=a"]


def _row(table: Table, kind: str) -> pa.Table:
    return pa.Table.from_pylist([{"id": 1, "kind": kind}], table.schema().as_arrow())


def test_merged_manifests_name_what_others_wrote_and_that_does_not_count(
    lake: IcebergLake,
) -> None:
    merged = {"commit.manifest-merge.enabled": "true", "commit.manifest.min-count-to-merge": "2"}
    table = lake.create("events", SCHEMA, BY_KIND, **merged)
    for one in "abc":
        table.append(_row(table, one))
    snapshot = table.current_snapshot()

    assert snapshot is not None
    assert len(snapshot.manifests(table.io)) < 3
    assert touched(lake, table) == ["kind=c"]


def test_a_partition_is_named_as_a_plan_names_it_and_by_its_own_division(
    lake: IcebergLake,
) -> None:
    table = lake.create("events", SCHEMA, BY_KIND)
    lake.name(table, [Named(5, partition=("a/b",))])
    before = table.refresh()
    with before.update_spec() as change:
        change.remove_field("kind")
    lake.name(before.refresh(), [Named(5, partition=(None,))])
    now = before.refresh()
    writes = IcebergWrites(lake.store)
    first, second = (f"{one.snapshot_id}" for one in now.snapshots())

    assert writes.touched(now.metadata_location, first) == (
        Touched(0, "kind=a%2Fb", (PartitionValue("kind", "identity", "a/b"),)),
    )
    (later,) = writes.touched(now.metadata_location, second)
    assert later.spec != 0


def test_a_snapshot_is_read_once_and_one_that_has_gone_is_a_matter_of_time(
    lake: IcebergLake,
) -> None:
    table = lake.create("events", SCHEMA, BY_KIND)
    lake.name(table, [Named(5, partition=("a",))])
    now = table.refresh()
    calls: list[str] = []
    known: dict[str, tuple[Touched, ...]] = {}

    def see(call: Call) -> None:
        calls.append(call.key)

    lake.store.hooks.before.append(see)
    for _ in range(2):
        IcebergWrites(lake.store, known).touched(now.metadata_location, _current(now))
        assert len([one for one in calls if one.endswith("metadata.json")]) == 1
    with pytest.raises(TransientStoreError):
        IcebergWrites(lake.store, known).touched(now.metadata_location, "7")
