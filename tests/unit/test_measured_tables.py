"""What the metadata of real tables says of their files: sizes, rows, deletes, partitions, times."""

from __future__ import annotations

import time
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from compactor.errors import IntegrityError, InvalidInput, TransientStoreError
from compactor.settings.tables import parse_table
from compactor.sizes import GIB, MIB
from compactor_tables.measures import DataFile, PartitionValue, TableMeasure
from tests.support.memory_store import Call, ManualClock, MemoryStore

pytest.importorskip("pyiceberg")
pytest.importorskip("deltalake")

from deltalake import DeltaTable, write_deltalake
from pyiceberg.manifest import DataFileContent
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.update import RemoveSchemasUpdate
from pyiceberg.transforms import parse_transform
from pyiceberg.types import (
    BooleanType,
    DateType,
    DecimalType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
)

from compactor_tables.metadata.measuring import measure_table
from tests.support.maintained_tables import (
    BUCKET,
    DeltaLines,
    IcebergLake,
    Named,
    added,
    shelve,
)

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "day", DateType(), required=False),
    NestedField(3, "kind", StringType(), required=False),
    NestedField(4, "at", TimestampType(), required=False),
    NestedField(5, "price", DecimalType(9, 2), required=False),
    NestedField(6, "good", BooleanType(), required=False),
)
DELTA = parse_table(f"delta:s3://{BUCKET}/events/")
DAY = 19_662  # 2023-11-01


def spec(*fields: tuple[int, str, str]) -> PartitionSpec:
    return PartitionSpec(
        *(
            PartitionField(source, 1000 + number, parse_transform(transform), name)
            for number, (source, transform, name) in enumerate(fields)
        )
    )


@pytest.fixture
def lake(tmp_path: Path) -> IcebergLake:
    return IcebergLake(tmp_path)


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore(ManualClock(1_700_000_000.0))
    store.add_bucket(BUCKET)
    return store


def measured(lake: IcebergLake, name: str = "events") -> TableMeasure:
    return measure_table(lake.address(name), lake.store, 5.0)


def keys_read(store: MemoryStore) -> list[str]:
    """Gathers the keys of all that is read from now on."""
    seen: list[str] = []

    def see(call: Call) -> None:
        if call.name not in ("list_level", "list_objects"):
            seen.append(call.key)

    store.hooks.before.append(see)
    return seen


# Iceberg.


def test_an_iceberg_table_is_measured_without_a_look_at_its_data_files(lake):
    table = lake.create("events", SCHEMA, spec((3, "identity", "kind")))
    schema = table.schema().as_arrow()
    for number in range(3):
        rows = {"id": [number, number + 1, 7], "kind": ["a", "b", "b"]}
        table.append(pa.Table.from_pydict({**_nulls(schema, 3), **rows}, schema))
    read = keys_read(lake.store)
    found = measured(lake)
    assert [(one.name, len(one.files), one.rows) for one in found.partitions] == [
        ("kind=a", 3, 3),
        ("kind=b", 3, 6),
    ]
    truth = table.inspect.files().to_pylist()
    assert Counter(file.size for one in found.partitions for file in one.files) == Counter(
        one["file_size_in_bytes"] for one in truth
    )
    assert (found.files, found.rows, found.deleted, found.versions) == (6, 9, 0, 3)
    assert (found.metadata_files, found.delete_files, found.at) == (3, 0, 5.0)
    assert found.metadata_bytes > 3_000
    assert found.version == str(table.refresh().metadata.current_snapshot_id)
    assert read
    # The metadata, the list of manifests, and each manifest once.
    counts = Counter(read[: 2 + found.metadata_files])
    assert set(counts.values()) == {1}
    assert not [key for key in counts if key.endswith(".parquet")]


def _nulls(schema: pa.Schema, rows: int) -> dict[str, list[Any]]:
    return {name: [None] * rows for name in schema.names}


def test_a_table_without_a_snapshot_has_nothing(lake):
    lake.create("events", SCHEMA, **{"write.target-file-size-bytes": str(64 * MIB)})
    found = measured(lake)
    assert (found.files, found.partitions, found.version, found.last_commit) == (0, (), "", None)
    assert found.target_bytes == 64 * MIB


def test_a_partition_is_named_as_its_engine_writes_it(lake):
    fields = [
        (2, "identity", "day"),
        (3, "identity", "kind"),
        (4, "hour", "at_hour"),
        (1, "bucket[16]", "id_bucket"),
        (3, "truncate[2]", "kind_trunc"),
        (5, "identity", "price"),
        (6, "identity", "good"),
    ]
    table = lake.create("events", SCHEMA, spec(*fields))
    values = (DAY, "a/b=c é", 471_894, 7, "a/", Decimal("12.50"), True)
    lake.name(table, [Named(5, partition=values), Named(6, partition=(None,) * 7)])
    named, nulls = measured(lake).partitions
    assert named.name == (
        "day=2023-11-01/kind=a%2Fb%3Dc+%C3%A9/at_hour=2023-11-01-06/id_bucket=7/kind_trunc=a%2F"
        "/price=12.50/good=true"
    )
    assert named.where == (
        PartitionValue("day", "identity", "2023-11-01"),
        PartitionValue("kind", "identity", "a/b=c é"),
        PartitionValue("at", "hour", "2023-11-01-06"),
        PartitionValue("id", "bucket[16]", "7"),
        PartitionValue("kind", "truncate[2]", "a/"),
        PartitionValue("price", "identity", "12.50"),
        PartitionValue("good", "identity", "true"),
    )
    assert {one.value for one in nulls.where} == {None}
    assert nulls.name.startswith("day=null/kind=null/")


@pytest.mark.parametrize(
    ("transform", "source", "value", "text"),
    [
        ("year", 4, 53, "2023"),
        ("month", 4, 646, "2023-11"),
        ("day", 4, DAY, "2023-11-01"),
        ("identity", 4, 1_698_796_800_000_000, "2023-11-01T00:00:00"),
        ("void", 3, None, None),
    ],
)
def test_a_value_is_reported_in_the_form_of_its_transform(lake, transform, source, value, text):
    table = lake.create("events", SCHEMA, spec((source, transform, "p")))
    lake.name(table, [Named(5, partition=(value,))])
    (only,) = measured(lake).partitions
    assert only.where == (PartitionValue({3: "kind", 4: "at"}[source], transform, text),)


def test_files_of_an_older_division_are_distinguished(lake):
    table = lake.create("events", SCHEMA, spec((2, "identity", "day"), (3, "identity", "kind")))
    lake.name(table, [Named(5, partition=(DAY, "a"))])
    with table.update_spec() as update:
        update.remove_field("kind")
    with table.update_schema() as update:
        update.delete_column("kind")
        update.rename_column("day", "date")
    lake.name(table, [Named(6, partition=(DAY,))])
    found = measured(lake)
    assert [(one.name, one.spec) for one in found.partitions] == [
        ("day=2023-11-01", 1),
        ("day=2023-11-01/kind=a", 0),
    ]
    assert found.spec == 1
    # By the names that columns have now, or had last.
    assert [each.column for each in found.partitions[1].where] == ["date", "kind"]


def test_a_division_by_a_column_that_no_schema_has_any_more_is_reported_by_its_own_name(lake):
    table = lake.create("events", SCHEMA, spec((3, "identity", "by_kind")))
    lake.name(table, [Named(5, partition=("a",))])
    with table.update_spec() as update:
        update.remove_field("by_kind")
    with table.update_schema() as update:
        update.delete_column("kind")
    with table.transaction() as transaction:
        transaction._apply((RemoveSchemasUpdate.model_validate({"schema-ids": [0]}),))
    (only,) = measured(lake).partitions
    assert only.where == (PartitionValue("by_kind", "identity", "a"),)


def test_a_partition_changed_when_the_last_commit_touched_it(lake):
    table = lake.create("events", SCHEMA, spec((3, "identity", "kind")))
    moments = []
    for kinds in (["a", "b"], ["b"], ["a"]):
        lake.name(table, [Named(5, partition=(kind,)) for kind in kinds])
        moments.append(table.metadata.current_snapshot().timestamp_ms / 1_000)
        time.sleep(0.01)
    lake.delete(table, [Named(1, partition=("b",))])
    moments.append(table.metadata.current_snapshot().timestamp_ms / 1_000)
    found = measured(lake)
    assert {one.name: one.changed for one in found.partitions} == {
        "kind=a": moments[2],
        "kind=b": moments[3],
    }
    assert found.commits == moments
    assert found.last_commit == moments[3]
    assert found.commits_an_hour(moments[3]) == 4 / 24


def test_what_an_expired_snapshot_added_changed_no_later_than_the_next(lake):
    table = lake.create("events", SCHEMA, spec((3, "identity", "kind")))
    for kind in "abc":
        lake.name(table, [Named(5, partition=(kind,))])
        time.sleep(0.01)
    first, second, third = sorted(table.metadata.snapshots, key=lambda one: one.timestamp_ms)
    assert measured(lake).superseded == [one.timestamp_ms / 1_000 for one in (first, second)]
    table.maintenance.expire_snapshots().by_id(first.snapshot_id).commit()
    found = measured(lake)
    assert [one.changed for one in found.partitions] == [
        one.timestamp_ms / 1_000 for one in (second, second, third)
    ]
    assert found.superseded == [second.timestamp_ms / 1_000]


def test_a_snapshot_with_a_name_is_not_superseded(lake):
    table = lake.create("events", SCHEMA)
    for _ in range(2):
        lake.name(table, [Named(5)])
    first = min(table.metadata.snapshots, key=lambda one: one.sequence_number)
    table.manage_snapshots().create_tag(first.snapshot_id, "kept").commit()
    assert measured(lake).superseded == []


def test_deletes_are_counted_for_the_files_that_they_apply_to(lake):
    table = lake.create("events", SCHEMA, spec((3, "identity", "kind")))
    one, _, _ = lake.name(
        table, [Named(n, 100, (kind,)) for n, kind in ((1, "a"), (2, "a"), (3, "b"))]
    )
    lake.delete(table, [Named(9, 30, ("a",))], of=one)
    lake.delete(table, [Named(9, 5, ("a",))])
    # To what comes later, these apply no more.
    lake.name(table, [Named(4, 100, ("a",))])
    found = measured(lake)
    assert [set(each.files) for each in found.partitions] == [
        {DataFile(1, 100, 30, 2), DataFile(2, 100, 0, 1), DataFile(4, 100)},
        {DataFile(3, 100)},
    ]
    assert (found.delete_files, found.deleted) == (2, 30)


def test_equality_deletes_apply_to_what_was_there_before(lake):
    table = lake.create("events", SCHEMA)
    lake.name(table, [Named(1)])
    lake.delete(table, [Named(9, 5)], content=DataFileContent.EQUALITY_DELETES)
    lake.name(table, [Named(2)])
    (only,) = measured(lake).partitions
    assert set(only.files) == {DataFile(1, 10, 0, 1), DataFile(2, 10)}


def test_a_table_that_is_not_there_is_the_callers_mistake(lake, store):
    for address in (
        lake.address("nothing"),
        parse_table(lake.address("x").text.replace("db.", "no.")),
    ):
        with pytest.raises(InvalidInput, match="there is no Iceberg table"):
            measure_table(address, lake.store, 0.0)
    with pytest.raises(InvalidInput, match="_delta_log"):
        measure_table(DELTA, store, 0.0)


def test_a_table_that_moved_on_is_measured_again_later(lake):
    table = lake.create("events", SCHEMA)
    lake.name(table, [Named(1)])
    listed = table.metadata.current_snapshot().manifest_list
    lake.store.remove(BUCKET, listed.removeprefix(f"s3://{BUCKET}/"))
    with pytest.raises(TransientStoreError, match="measure again"):
        measured(lake)


# Delta.


def write(place: Path, kinds: list[str | None], days: list[date | None], **given: Any) -> None:
    table = pa.table(
        {
            "id": pa.array(range(len(kinds)), pa.int64()),
            "kind": pa.array(kinds, pa.string()),
            "day": pa.array(days, pa.date32()),
            "at": pa.array(
                [datetime(2023, 11, 1, 6, tzinfo=UTC)] * len(kinds), pa.timestamp("us", "UTC")
            ),
        }
    )
    write_deltalake(place, table, mode="append", **given)


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A table of delta-rs with partitions of every odd kind."""
    place = tmp_path / "written"
    days = [date(2023, 11, 1), None]
    for _ in range(4):
        write(place, ["a/b=c é", None], days, partition_by=["kind", "day"])
    write(place, ["plain"], [date(2023, 11, 2)])
    DeltaTable(place).delete("kind = 'plain'")
    return place


def by_delta_rs(place: Path) -> Counter[tuple[int, int | None]]:
    actions = pa.table(DeltaTable(place).get_add_actions(flatten=True))
    columns = [actions.column(name).to_pylist() for name in ("size_bytes", "num_records")]
    return Counter(zip(*columns, strict=True))


def sizes_and_rows(found: TableMeasure) -> Counter[tuple[int, int | None]]:
    return Counter((file.size, file.rows) for one in found.partitions for file in one.files)


def test_a_delta_log_says_what_delta_rs_finds_in_it(written, store):
    shelve(written, store, "events/")
    read = keys_read(store)
    found = measure_table(DELTA, store, 5.0)
    assert sizes_and_rows(found) == by_delta_rs(written)
    assert (found.files, found.rows, found.version, found.versions) == (8, 8, "5", 6)
    assert found.metadata_files == 6
    assert len(found.commits) == 6
    assert found.target_bytes == GIB
    assert {key.rpartition("/")[0] for key in read} == {"events/_delta_log"}
    assert len(found.superseded) == 1


def test_a_checkpoint_says_the_same_as_the_entries_before_it(written, store, tmp_path):
    shelve(written, store, "events/")
    before = measure_table(DELTA, store, 5.0)
    DeltaTable(written).create_checkpoint()
    write(written, ["a/b=c é"], [date(2023, 11, 1)])
    shelve(written, store, "events/")
    read = keys_read(store)
    after = measure_table(DELTA, store, 5.0)
    assert sorted(read) == [
        f"events/_delta_log/{5:020}.checkpoint.parquet",
        f"events/_delta_log/{6:020}.json",
    ]
    assert (after.files, after.metadata_files, after.versions) == (before.files + 1, 1, 7)
    assert [one.name for one in after.partitions] == [one.name for one in before.partitions]
    for one, other in zip(after.partitions, before.partitions, strict=True):
        assert Counter(other.files) <= Counter(one.files)
    assert sizes_and_rows(after) == by_delta_rs(written)


def test_delta_partitions_are_recognised_by_the_texts_of_the_log(written, store):
    shelve(written, store, "events/")
    nulls, named = measure_table(DELTA, store, 5.0).partitions
    assert named.name == "kind=a%2Fb%3Dc é/day=2023-11-01"
    assert named.where == (
        PartitionValue("kind", "identity", "a/b=c é"),
        PartitionValue("day", "identity", "2023-11-01"),
    )
    assert nulls.name == "kind=__HIVE_DEFAULT_PARTITION__/day=__HIVE_DEFAULT_PARTITION__"
    assert {one.value for one in nulls.where} == {None}


def test_a_deletion_vector_is_counted_without_being_read(store):
    log = DeltaLines(store)
    log.commit(added("a", 100), added("b", 200))
    log.commit({"remove": {"path": "a", "deletionTimestamp": 5_000}}, added("a", 100, deleted=4))
    found = measure_table(DELTA, store, 0.0)
    assert [set(one.files) for one in found.partitions] == [
        {DataFile(200, 10), DataFile(100, 10, 4, 1)}
    ]
    assert (found.delete_files, found.deleted, found.superseded) == (1, 4, [5.0])


def test_a_partition_of_a_delta_table_changed_with_the_last_version_that_touched_it(store):
    log = DeltaLines(store, "events/", ["k"])
    # Some writers leave no time.
    log.commit(added("a", 1, partitionValues={"k": "a"}, modificationTime=0), at=100.0)
    log.commit(added("b", 1, partitionValues={"k": "b"}, modificationTime=50_000), at=200.0)
    gone = {"path": "c", "deletionTimestamp": 300_000, "partitionValues": {"k": "b"}}
    log.commit({"remove": gone}, at=300.0)
    found = measure_table(DELTA, store, 0.0)
    assert {one.name: one.changed for one in found.partitions} == {"k=a": 100.0, "k=b": 300.0}


def test_what_a_vacuum_took_is_superseded_no_more(store):
    log = DeltaLines(store)
    log.commit({"remove": {"path": "a", "deletionTimestamp": 5_000}})
    log.commit({"commitInfo": {"operation": "VACUUM END"}})
    log.commit({"remove": {"path": "b", "deletionTimestamp": 9_000}})
    assert measure_table(DELTA, store, 0.0).superseded == [9.0]


DAY_MILLIS = 86_400_000


def vacuum(operation: str, at: int, **parameters: Any) -> dict[str, Any]:
    """As Spark writes it; delta-rs writes numbers as text."""
    told = {"timestamp": at, "operation": f"VACUUM {operation}", "operationParameters": parameters}
    return {"commitInfo": told}


@pytest.mark.parametrize("number", [int, str])
def test_what_a_vacuum_was_asked_to_keep_stays_superseded(store, number):
    log = DeltaLines(store)
    for day in (1, 5, 9):
        log.commit({"remove": {"path": f"of{day}", "deletionTimestamp": day * DAY_MILLIS}})
    kept = {"specifiedRetentionMillis": number(3 * DAY_MILLIS)}
    kept["defaultRetentionMillis"] = number(7 * DAY_MILLIS)
    log.commit(vacuum("START", 10 * DAY_MILLIS, **kept))
    log.commit(vacuum("END", 11 * DAY_MILLIS, status="FAILED"))
    assert len(measure_table(DELTA, store, 0.0).superseded) == 3
    log.commit(vacuum("START", 10 * DAY_MILLIS, **kept))
    log.commit(vacuum("END", 11 * DAY_MILLIS, status="COMPLETED"))
    assert measure_table(DELTA, store, 0.0).superseded == [9 * DAY_MILLIS / 1_000]


def test_a_vacuum_that_began_before_the_checkpoint_kept_what_delta_keeps(store):
    log = DeltaLines(store)
    for day in (1, 5):
        log.commit({"remove": {"path": f"of{day}", "deletionTimestamp": day * DAY_MILLIS}})
    log.commit(vacuum("END", 10 * DAY_MILLIS, status="COMPLETED"))
    assert measure_table(DELTA, store, 0.0).superseded == [5 * DAY_MILLIS / 1_000]


@pytest.mark.parametrize(
    ("text", "size"), [("134217728", 128 * MIB), ("128mb", 128 * MIB), ("1 GB", GIB), ("much", GIB)]
)
def test_the_size_that_a_delta_table_asks_for_is_reported(store, text, size):
    DeltaLines(store, **{"delta.targetFileSize": text})
    assert measure_table(DELTA, store, 0.0).target_bytes == size


def test_columns_that_are_mapped_are_reported_by_their_names(store):
    log = DeltaLines(store, "events/", ["k"])
    schema = (
        '{"type":"struct","fields":[{"name":"k","type":"string","nullable":true,"metadata":'
        '{"delta.columnMapping.physicalName":"col-1"}}]}'
    )
    log.commit({"metaData": {"id": "0", "schemaString": schema, "partitionColumns": ["k"]}})
    log.commit(added("a", 1, partitionValues={"col-1": "x"}))
    (only,) = measure_table(DELTA, store, 0.0).partitions
    assert only.where == (PartitionValue("k", "identity", "x"),)


def test_a_log_with_a_gap_is_refused(store):
    log = DeltaLines(store)
    log.commit(added("a", 1))
    log.commit(added("b", 1))
    store.remove(BUCKET, f"events/_delta_log/{1:020}.json")
    with pytest.raises(IntegrityError, match="no version 1"):
        measure_table(DELTA, store, 0.0)


def test_a_log_whose_versions_are_elsewhere_is_refused(store):
    DeltaLines(store, features="catalogManaged")
    with pytest.raises(InvalidInput, match="whose versions are all in"):
        measure_table(DELTA, store, 0.0)


@pytest.mark.parametrize(
    ("protocol", "told"),
    [
        ({"minReaderVersion": 4, "minWriterVersion": 7}, "minReaderVersion 4"),
        (
            {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": ["v2Checkpoint", "adaptiveMetadata-preview"],
                "writerFeatures": ["v2Checkpoint", "adaptiveMetadata-preview"],
            },
            "as adaptiveMetadata-preview",
        ),
    ],
)
def test_a_log_that_asks_more_of_its_readers_than_is_known_is_refused(store, protocol, told):
    DeltaLines(store).commit({"protocol": protocol})
    with pytest.raises(InvalidInput, match=told):
        measure_table(DELTA, store, 0.0)


def test_a_damaged_version_is_named(store):
    DeltaLines(store)
    store.seed(BUCKET, f"events/_delta_log/{1:020}.json", b"{", last_modified=1.0)
    with pytest.raises(IntegrityError, match=f"{1:020}.json is damaged"):
        measure_table(DELTA, store, 0.0)


def test_a_version_that_went_meanwhile_is_measured_again_later(store):
    log = DeltaLines(store)
    log.commit(added("a", 1))
    key = f"events/_delta_log/{1:020}.json"

    def clean_up(call: Call) -> None:
        if call.key == key:
            store.hooks.before.remove(clean_up)
            store.remove(BUCKET, key)

    store.hooks.before.append(clean_up)
    with pytest.raises(TransientStoreError, match="look at the table again"):
        measure_table(DELTA, store, 0.0)
