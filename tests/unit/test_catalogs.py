"""Tables by the real libraries: Iceberg in a catalog of this machine and in Glue, and Delta."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from socket import socket
from typing import Any

import pyarrow as pa
import pytest
import requests

from compactor.errors import IntegrityError, InvalidInput, TableConflict, TransientStoreError
from compactor.log.entries import Output
from compactor.log.log import CommitLog
from compactor.model import Partition
from compactor.outputs.publish import is_published
from compactor.ports import ObjectStore
from compactor.sinks.table_catalog import TableFile
from compactor.sinks.table_entries import TableLogState
from compactor.sinks.table_log import Draft, TableLog
from compactor.sinks.unnamed_outputs import leftovers
from compactor.table_formats.answers import translated
from compactor_tables.metadata.measuring import measure_table
from tests.support.parquet_outputs import parquet
from tests.support.table_places import Place, lake_on_aws

pytest.importorskip("pyiceberg")
pytest.importorskip("deltalake")

from deltalake import Field
from deltalake.schema import PrimitiveType
from pyiceberg.types import StringType

A, B = (Partition("source", f"logs/{name}/", f"{name}/") for name in "ab")
LAKE = "lake"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with lake_on_aws() as url:
        yield url


@pytest.fixture
def make(endpoint: str, tmp_path: Path, request: pytest.FixtureRequest) -> Callable[[str], Place]:
    name = f"{abs(hash(request.node.name)):x}"[:12]
    return lambda kind: Place(kind, endpoint, name, tmp_path)


@pytest.fixture(params=["sql", "delta"])
def place(request: pytest.FixtureRequest, make: Callable[[str], Place]) -> Place:
    return make(request.param)


def test_outputs_of_several_partitions_and_runs_are_in_the_table_once(place):
    place.commit(A, id=[1, 2])
    place.commit(B, id=[3])
    first = place.publish()
    assert (first.outputs, first.rows, first.commits, first.last) == (2, 3, 1, 1)
    place.commit(A, id=[4])
    assert place.publish().outputs == 1
    assert place.publish().outputs == 0
    assert place.rows() == Counter([1, 2, 3, 4])
    state = place.state()
    assert (state.last, state.fault) == (2, "")


@pytest.mark.parametrize("kind", ["sql", "glue", "delta"])
def test_a_table_is_measured_as_it_was_published(make, kind):
    place = make(kind)
    place.commit(A, id=[1, 2])
    place.commit(B, id=[3])
    place.publish()
    address = place.settings.table_address
    assert address is not None
    found = measure_table(address, place.store, 0.0)
    assert (found.files, found.rows, found.format) == (
        2,
        3,
        "delta" if kind == "delta" else "iceberg",
    )
    assert place.state().version.endswith(found.version)
    assert [one.changed for one in found.partitions] == [found.last_commit]


def test_a_commit_on_a_table_that_moved_on_is_refused(place):
    place.commit(A, id=[1])
    place.publish()
    file = place.put("more", pa.table({"id": [2]}))
    catalog, other = place.catalog, place.catalog
    state, stale = catalog.load(place.log_id), other.load(place.log_id)
    assert state is not None
    assert stale is not None
    catalog.append(state, [file], 2, evolve=False)
    with pytest.raises(TableConflict):
        other.append(stale, [file], 2, evolve=False)
    with pytest.raises(TableConflict):
        catalog.append(state, [file], 3, evolve=False)
    assert place.rows() == Counter([1, 2])


@pytest.mark.parametrize("kind", ["sql", "glue", "delta"])
def test_concurrent_publishers_bring_everything_in_once(make, kind):
    place = make(kind)
    for number in range(6):
        place.commit(A, id=[number])
    place.publish()
    for number in range(6, 12):
        place.commit(B, id=[number])

    def work(_: int) -> Any:
        return place.publish(entry_outputs=1, commit_outputs=1)

    with ThreadPoolExecutor(3) as pool:
        assert {one.status for one in pool.map(work, range(3))} == {"done"}
    assert place.rows() == Counter(range(12))


def replace_commit(place: Place, sequence: int) -> None:
    """A worker has found the upload of a commit lost, and has published the same output again."""
    log = CommitLog(place.store, place.settings, A)
    (commit,) = (one for one in log.every_commit() if one.sequence == sequence)
    log.append(log.load(), replace(commit, commit_id="replacement", replaces=sequence))


def test_a_commit_that_is_replaced_while_a_publisher_looks_is_in_the_table_once(place, monkeypatch):
    place.commit(A, id=[1, 2])

    def replaced(output: Output, store: ObjectStore) -> bool:
        monkeypatch.undo()
        replace_commit(place, 1)
        return is_published(output, store)

    monkeypatch.setattr("compactor.sinks.unnamed_outputs.is_published", replaced)
    place.publish()
    place.commit(A, id=[3])
    assert place.publish().faults == []
    assert place.rows() == Counter([1, 2, 3])


def test_of_a_commit_and_its_replacement_that_two_publishers_name_one_is_in(place, monkeypatch):
    place.commit(A, id=[1, 2])
    older = list(leftovers(TableLogState(), place.settings, place.store))
    replace_commit(place, 1)
    append = TableLog.append

    def overtaken(log: TableLog, state: TableLogState, draft: Draft) -> bool:
        monkeypatch.undo()
        with monkeypatch.context() as patch:
            patch.setattr("compactor.sinks.table_publisher.leftovers", lambda *_: older)
            place.publish()
        return append(log, state, draft)

    monkeypatch.setattr(TableLog, "append", overtaken)
    assert place.publish().faults == []
    assert TableLog(place.store, place.settings, place.log_id).load().outputs == 1
    assert place.rows() == Counter([1, 2])


def test_a_table_that_is_made_by_two_concurrently_is_one(place):
    place.commit(A, id=[1])
    file = place.put("first", pa.table({"id": [1]}))
    place.catalog.create([file])
    with pytest.raises(TableConflict):
        place.catalog.create([file])


def test_columns_that_a_table_has_not_are_refused_or_added(place):
    place.commit(A, id=[1])
    place.publish()
    place.commit(B, id=[2], name=["x"], place=[{"lat": 1.5}])
    (fault,) = place.publish().faults
    assert "column name (string)" in fault
    log = TableLog(place.store, place.settings, place.log_id)
    assert log.load().last == 1
    place.settings = replace(place.settings, schema_evolution="add_columns")
    assert place.publish().outputs == 1
    assert place.rows() == Counter([1, 2])
    assert place.rows("name") == Counter([None, "x"])


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ({"id": ["text"]}, "column id is string"),
        ({"ID": [1]}, "called id"),
        ({"id": [1], "at": pa.array([1], pa.time64("us"))}, "at"),
        ({"id": [1], "big": pa.array([1], pa.uint64())}, "big"),
    ],
)
def test_a_column_of_another_type_is_reported_with_its_types(place, column, said):
    place.commit(A, id=[1])
    place.publish()
    place.settings = replace(place.settings, schema_evolution="add_columns")
    place.commit(B, **column)
    if place.kind != "delta" and said == "at":
        # Iceberg has times of day.
        assert place.publish().outputs == 1
        return
    (fault,) = place.publish().faults
    assert said in fault
    assert place.rows() == Counter([1])


def test_types_of_every_kind_come_into_a_table_that_is_made_of_them(place):
    columns = {
        "id": pa.array([1], pa.int32()),
        "small": pa.array([1], pa.int16()),
        "day": pa.array([date(2026, 1, 2)]),
        "at": pa.array([1_800_000_000_000_000], pa.timestamp("us", "UTC")),
        "price": pa.array([Decimal("1.50")], pa.decimal128(9, 2)),
        "ratio": pa.array([0.5], pa.float32()),
        "yes": pa.array([True]),
        "raw": pa.array([b"x"]),
        "tags": pa.array([["a", "b"]]),
        "map": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
        "inner": pa.array([{"a": {"b": ["c"]}}]),
    }
    place.commit(A, **columns)
    place.publish()
    assert place.rows() == Counter([1])
    assert place.rows("price") == Counter([Decimal("1.50")])


def test_an_output_that_is_no_parquet_is_reported(place):
    place.commit(A, id=[1])
    place.publish()
    key = f"{place.settings.destination.prefix}text.parquet"
    place.store.put(place.bucket, key, b"no parquet at all, but text")
    file = TableFile(place.bucket, key, 27, None)
    found = place.catalog.unfit(place.state(), [file], evolve=False)
    assert "whose outputs are all Parquet" in found[file]


def test_an_output_with_other_rows_than_its_commit_says_is_reported(place):
    place.commit(A, id=[1])
    place.publish()
    file = place.put("more", pa.table({"id": [2, 3]}))._replace(rows=1)
    found = place.catalog.unfit(place.state(), [file], evolve=False)
    assert "has 2 rows, its commit says 1" in found[file]
    gone = file._replace(key=f"{place.settings.destination.prefix}gone.parquet")
    with pytest.raises(IntegrityError, match="is gone"):
        place.catalog.unfit(place.state(), [gone], evolve=False)


def test_outputs_that_do_not_fit_keep_no_other_out_and_come_in_once_they_do(place):
    place.commit(A, id=[1])
    place.publish()
    place.commit(A, id=["text"])
    place.commit(A, id=[2], x=["new"])
    place.commit(A, id=[3])
    place.commit(B, id=[4])
    first = place.publish()
    assert (first.status, first.outputs, len(first.faults)) == ("done", 2, 2)
    assert place.rows() == Counter([1, 3, 4])
    # Another writer adds the column that one of them has.
    handle: Any = place.state().handle
    if place.kind == "delta":
        handle.alter.add_columns([Field("x", PrimitiveType("string"))])
    else:
        with handle.update_schema() as update:
            update.add_column("x", StringType())
    second = place.publish()
    assert (second.outputs, len(second.faults)) == (1, 1)
    assert "column id is string" in second.faults[0]
    assert place.publish().outputs == 0
    assert place.rows() == Counter([1, 2, 3, 4])
    assert place.rows("x") == Counter(["new", None, None, None])


def test_outputs_with_columns_that_exclude_each_other_are_not_both_added(place):
    place.commit(A, id=[1])
    place.publish()
    place.settings = replace(place.settings, schema_evolution="add_columns")
    place.commit(A, id=[2], x=["text"])
    place.commit(B, id=[3], x=[3])
    receipt = place.publish()
    assert (receipt.outputs, len(receipt.faults)) == (1, 1)
    assert place.rows() == Counter([1, 2])


def test_an_output_with_a_footer_that_nothing_reads_keeps_no_other_out(place, monkeypatch):
    place.commit(A, id=[1])
    place.publish()

    def odd(table: pa.Table, **_: object) -> bytes:
        body = bytearray(parquet(table))
        length = int.from_bytes(body[-8:-4], "little")
        body[-8 - length : -8] = b"\xff" * length
        return bytes(body)

    with monkeypatch.context() as patch:
        patch.setattr("tests.support.parquet_outputs.parquet", odd)
        place.commit(A, id=[2])
    place.commit(A, id=[3])
    receipt = place.publish()
    assert (receipt.outputs, len(receipt.faults)) == (1, 1)
    assert "whose outputs are all Parquet" in receipt.faults[0]
    assert place.rows() == Counter([1, 3])


def test_statistics_that_a_library_cannot_read_keep_no_other_out(place, monkeypatch):
    place.commit(A, id=[1])
    place.publish()
    place.commit(A, id=[2, 22])
    place.commit(A, id=[3])
    name = {"delta": "delta.statistics_of"}.get(
        place.kind, "data_files.data_file_statistics_from_parquet_metadata"
    )
    module, _, function = name.partition(".")
    real = getattr(importlib.import_module(f"compactor.catalogs.{module}"), function)

    def reads(footer: Any, *given: Any) -> Any:
        if footer.num_rows == 2:
            raise OverflowError("date value out of range")
        return real(footer, *given)

    with monkeypatch.context() as patch:
        patch.setattr(f"compactor.catalogs.{name}", reads)
        receipt = place.publish()
    assert (receipt.outputs, len(receipt.faults)) == (1, 1)
    assert "OverflowError: date value out of range" in receipt.faults[0]
    assert place.rows() == Counter([1, 3])


def test_a_table_is_made_without_the_outputs_that_no_table_takes(place):
    place.commit(A, id=[1], big=pa.array([1], pa.uint64()))
    place.commit(B, id=[2])
    receipt = place.publish()
    assert (receipt.outputs, len(receipt.faults)) == (1, 1)
    assert "big" in receipt.faults[0]
    assert place.rows() == Counter([2])


# What others do to a table.


def test_an_iceberg_table_that_was_rolled_back_is_reported(make):
    place = make("sql")
    place.commit(A, id=[1])
    place.publish()
    before = place.state().handle.current_snapshot().snapshot_id
    place.commit(A, id=[2])
    place.publish()
    from pyiceberg.table.update import SetSnapshotRefUpdate

    handle: Any = place.state().handle
    handle.catalog.commit_table(
        handle,
        (),
        (
            SetSnapshotRefUpdate.model_validate(
                {"ref-name": "main", "type": "branch", "snapshot-id": before}
            ),
        ),
    )
    with pytest.raises(IntegrityError, match="rolled back to snapshot"):
        place.publish()


def test_an_iceberg_table_whose_snapshots_expired_is_what_it_was(make):
    place = make("sql")
    for number in range(3):
        place.commit(A, id=[number])
        place.publish()
    handle: Any = place.state().handle
    current = handle.current_snapshot().snapshot_id
    for one in handle.snapshots():
        if one.snapshot_id != current:
            handle.maintenance.expire_snapshots().by_id(one.snapshot_id).commit()
    handle.append(pa.table({"id": [99]}))
    place.commit(A, id=[3])
    assert place.publish().outputs == 1
    assert place.rows() == Counter([0, 1, 2, 3, 99])


@pytest.mark.parametrize("all_but_the_last", [True, False])
def test_a_table_of_which_pyiceberg_expired_our_snapshot_is_what_it_was(make, all_but_the_last):
    place = make("sql")
    place.commit(A, id=[0])
    place.publish()
    handle: Any = place.state().handle
    ours = handle.current_snapshot().snapshot_id
    handle.append(pa.table({"id": [98]}))
    handle.append(pa.table({"id": [99]}))
    chosen = [one.snapshot_id for one in handle.snapshots()][:-1] if all_but_the_last else [ours]
    handle.maintenance.expire_snapshots().by_ids(chosen).commit()
    place.commit(A, id=[1])
    assert place.publish().outputs == 1
    assert place.rows() == Counter([0, 1, 98, 99])


def test_a_rollback_is_reported_after_others_wrote_and_its_snapshots_expired(make):
    place = make("sql")
    for number in range(2):
        place.commit(A, id=[number])
        place.publish()
    handle: Any = place.state().handle
    before = handle.current_snapshot().parent_snapshot_id
    handle.manage_snapshots().set_current_snapshot(before).commit()
    handle.append(pa.table({"id": [99]}))
    current = handle.current_snapshot().snapshot_id
    gone = [one.snapshot_id for one in handle.snapshots() if one.snapshot_id != current]
    handle.maintenance.expire_snapshots().by_ids(gone).commit()
    with pytest.raises(IntegrityError, match="rolled back to snapshot"):
        place.publish()


def test_a_snapshot_that_expires_while_another_writer_is_about_to_commit_is_a_conflict(make):
    place = make("sql")
    place.commit(A, id=[1])
    place.publish()
    table = place.state()
    snapshot = table.handle.current_snapshot()
    # Others rewrote the data files, and expired what was before: its manifests are gone.
    bucket, _, key = snapshot.manifest_list.removeprefix("s3://").partition("/")
    place.store.remove(bucket, key)
    output = place.put("more", pa.table({"id": [2]}))
    catalog = place.catalog
    catalog.load(place.log_id)
    with pytest.raises(TableConflict):
        catalog.append(table, [output], 2, evolve=False)


def test_a_table_that_was_dropped_and_made_again_is_reported(make):
    place = make("glue")
    place.commit(A, id=[1])
    place.publish()
    handle: Any = place.state().handle
    handle.catalog.drop_table(handle.name())
    with pytest.raises(IntegrityError, match="is gone"):
        place.publish()
    place.catalog.create([place.put("x", pa.table({"id": [1]}))])
    with pytest.raises(IntegrityError, match="made again"):
        place.publish()


def test_a_delta_table_that_was_restored_is_reported(make):
    place = make("delta")
    place.commit(A, id=[1])
    place.publish()
    place.commit(A, id=[2])
    place.publish()
    handle: Any = place.state().handle
    handle.restore(1)
    place.commit(A, id=[3])
    with pytest.raises(IntegrityError, match="restored it to version 1"):
        place.publish()


def test_what_pyiceberg_wrote_for_a_commit_that_was_refused_is_not_deleted(make):
    """The refusal may be that of a second try of an HTTP client, whose first one is in."""
    place = make("glue")
    place.commit(A, id=[1])
    place.publish()
    place.commit(A, id=[2])
    catalog: Any = place.catalog
    inner = catalog._catalog
    update = inner._update_glue_table

    def twice(**given: Any) -> None:
        update(**given)
        update(**given)

    inner._update_glue_table = twice
    receipt = place.publish(catalog=catalog)
    assert (receipt.outputs, receipt.conflicts) == (0, 1)
    assert place.rows() == Counter([1, 2])


def test_the_librarys_own_retry_is_off(make):
    """It would add the files a second time on top of whoever was first."""
    place = make("sql")
    place.commit(A, id=[1])
    place.publish()
    handle: Any = place.state().handle
    with handle.transaction() as transaction:
        transaction.set_properties({"commit.retry.num-retries": "7"})
    file = place.put("more", pa.table({"id": [2]}))
    catalog = place.catalog
    stale = catalog.load(place.log_id)
    assert stale is not None
    place.catalog.append(place.state(), [file], 2, evolve=False)
    with pytest.raises(TableConflict):
        catalog.append(stale, [file], 2, evolve=False)
    properties = handle.catalog.load_table(handle.name()).properties
    assert properties["commit.retry.num-retries"] == "7"


def test_a_delta_table_has_no_partitions(make):
    place = make("delta")
    place.settings = replace(place.settings, table_partitioning=("day",))
    place.commit(A, id=[1], day=["mon"])
    with pytest.raises(InvalidInput, match="an empty list for a Delta table"):
        place.publish()


def test_a_database_that_is_not_there_is_reported(make):
    place = make("glue")
    place.settings = replace(place.settings, table="glue:nowhere.events")
    place.commit(A, id=[1])
    with pytest.raises(InvalidInput, match="that is there"):
        place.publish()


def test_a_catalog_that_cannot_be_reached_is_named_by_its_address() -> None:
    with socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{closed.getsockname()[1]}"
        with pytest.raises(TransientStoreError) as raised, translated("rest:db.t"):
            requests.get(f"http://{address}/v1/config", timeout=5)
    assert str(raised.value) == f"rest:db.t: {address} does not answer"
