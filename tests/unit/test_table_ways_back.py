"""Tables of the real libraries after others went back: accepted, and read by others than us."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa
import pytest

from compactor.clock import NoDeadline, SystemClock
from compactor.errors import IntegrityError, InvalidInput
from compactor.model import Partition
from compactor.sinks.accept import Look, accept, look_at
from compactor.sinks.table_publisher import Publishing
from tests.support.table_places import Place, lake_on_aws

pytest.importorskip("pyiceberg")
pytest.importorskip("deltalake")
pytest.importorskip("duckdb")

A, B = (Partition("source", f"logs/{name}/", f"{name}/") for name in "ab")


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


def working(place: Place) -> Publishing:
    return Publishing(
        place.settings,
        place.store,
        place.catalog,
        SystemClock(),
        NoDeadline(),
        "acceptance",
        pause=lambda _: None,
    )


def look(place: Place) -> Look:
    return look_at(working(place))


def add_missing(place: Place) -> Look:
    work = working(place)
    return accept(work, look_at(work), adds=True, releases=False)


def current(place: Place) -> Any:
    handle: Any = place.state().handle
    return handle.version() if place.kind == "delta" else handle.current_snapshot().snapshot_id


def go_back(place: Place, to: Any) -> None:
    handle: Any = place.state().handle
    if place.kind == "delta":
        handle.restore(to)
        return
    from pyiceberg.table.update import SetSnapshotRefUpdate

    update = {"ref-name": "main", "type": "branch", "snapshot-id": to}
    handle.catalog.commit_table(handle, (), (SetSnapshotRefUpdate.model_validate(update),))


def rewrite(place: Place) -> None:
    """All rows into one file of the table's own."""
    handle: Any = place.state().handle
    if place.kind == "delta":
        handle.optimize.compact()
    else:
        handle.overwrite(handle.scan().to_arrow())


def append_foreign(place: Place, *ids: int) -> None:
    handle: Any = place.state().handle
    rows = pa.table({"id": list(ids)})
    if place.kind == "delta":
        from deltalake import write_deltalake

        write_deltalake(handle, rows, mode="append")
    else:
        handle.append(rows)


def must_have(place: Place, tmp_path: Path, *ids: int) -> None:
    assert place.rows() == Counter(ids)
    assert place.rows_by_duckdb(tmp_path) == Counter(ids)


def test_what_a_rollback_took_out_is_added_once(place, tmp_path):
    place.commit(A, id=[1])
    place.publish()
    before = current(place)
    place.commit(A, id=[2])
    place.publish()
    go_back(place, before)
    append_foreign(place, 99)
    with pytest.raises(IntegrityError, match="compactor repair table"):
        place.publish()
    found = look(place)
    assert (found.present, [one.rows for one in found.absent]) == (1, [1])
    assert (found.others, found.other_rows) == (1, 1)
    done = add_missing(place)
    assert (done.fault, done.lacking) == ("", {})
    must_have(place, tmp_path, 1, 2, 99)
    place.commit(B, id=[3])
    assert place.publish().outputs == 1
    must_have(place, tmp_path, 1, 2, 3, 99)


def test_a_table_is_taken_as_it_is(place, tmp_path):
    place.commit(A, id=[1])
    place.publish()
    before = current(place)
    place.commit(A, id=[2])
    place.publish()
    go_back(place, before)
    work = working(place)
    done = accept(work, look_at(work), adds=False, releases=False)
    assert (done.fault, len(done.absent)) == ("", 1)
    place.commit(B, id=[3])
    assert place.publish().outputs == 1
    must_have(place, tmp_path, 1, 3)
    add_missing(place)
    must_have(place, tmp_path, 1, 2, 3)


def test_rows_that_were_rewritten_before_a_rollback_are_not_added(place, tmp_path):
    place.commit(A, id=[1])
    place.commit(B, id=[2])
    place.publish()
    rewrite(place)
    before = current(place)
    place.commit(A, id=[3])
    place.publish()
    go_back(place, before)
    found = look(place)
    assert (found.present, found.passed, len(found.absent)) == (0, 2, 1)
    add_missing(place)
    must_have(place, tmp_path, 1, 2, 3)


def test_rows_that_were_given_back_and_rewritten_after_a_rollback_are_not_added(place, tmp_path):
    """Somebody went back, then forward again, and the table was compacted."""
    place.commit(A, id=[1])
    place.publish()
    before = current(place)
    place.commit(A, id=[2])
    place.publish()
    after = current(place)
    go_back(place, before)
    go_back(place, after)
    rewrite(place)
    assert look(place).fault == ""
    place.commit(B, id=[3])
    place.publish()
    must_have(place, tmp_path, 1, 2, 3)


def test_outputs_that_users_deleted_before_a_rollback_stay_deleted(place, tmp_path):
    place.commit(A, id=[1])
    place.commit(B, id=[2])
    place.publish()
    handle: Any = place.state().handle
    handle.delete("id = 2")
    before = current(place)
    place.commit(A, id=[3])
    place.publish()
    go_back(place, before)
    assert [one.rows for one in look(place).absent] == [1]
    add_missing(place)
    must_have(place, tmp_path, 1, 3)


def test_a_rollback_after_the_expiry_of_older_snapshots_is_undecided(make, tmp_path):
    place = make("sql")
    place.commit(A, id=[1])
    place.publish()
    rewrite(place)
    handle: Any = place.state().handle
    rewritten = current(place)
    place.commit(B, id=[2])
    place.publish()
    go_back(place, rewritten)
    handle = place.state().handle
    for one in handle.snapshots():
        if one.snapshot_id != rewritten:
            handle.maintenance.expire_snapshots().by_id(one.snapshot_id).commit()
    found = look(place)
    # pyiceberg has taken the expired parent out of the snapshot, which looks like a first one.
    assert place.state().handle.current_snapshot().parent_snapshot_id is None
    assert (len(found.doubtful), found.absent) == (2, [])
    add_missing(place)
    must_have(place, tmp_path, 1)
    place.commit(B, id=[3])
    place.publish()
    must_have(place, tmp_path, 1, 3)


def test_a_delta_log_whose_older_versions_are_gone_leaves_it_undecided(make, tmp_path):
    place = make("delta")
    place.commit(A, id=[1])
    place.commit(B, id=[2])
    place.publish()
    rewrite(place)
    before = current(place)
    place.commit(B, id=[3])
    place.publish()
    handle: Any = place.state().handle
    handle.create_checkpoint()
    go_back(place, before)
    for version in range(before + 1):
        key = f"events/_delta_log/{version:020}.json"
        boto3.client("s3").delete_object(Bucket=place.bucket, Key=key)
    found = look(place)
    assert (len(found.doubtful), found.absent) == (3, [])
    add_missing(place)
    must_have(place, tmp_path, 1, 2)


def drop_and_make(place: Place, **columns: Any) -> None:
    if place.kind == "delta":
        client = boto3.client("s3")
        listed = client.list_objects_v2(Bucket=place.bucket, Prefix="events/_delta_log/")
        for one in listed["Contents"]:
            client.delete_object(Bucket=place.bucket, Key=one["Key"])
    else:
        handle: Any = place.state().handle
        handle.catalog.drop_table(handle.name())
    place.catalog.create([place.put("columns", pa.table(columns))])


@pytest.mark.parametrize("kind", ["sql", "glue", "delta"])
def test_a_table_that_was_dropped_and_made_again_is_filled_again(make, kind, tmp_path):
    place = make(kind)
    place.commit(A, id=[1])
    place.publish()
    place.commit(B, id=[2])
    place.publish()
    drop_and_make(place, id=[0])
    assert len(look(place).absent) == 2
    add_missing(place)
    must_have(place, tmp_path, 1, 2)
    place.commit(B, id=[3])
    place.publish()
    must_have(place, tmp_path, 1, 2, 3)


def test_outputs_that_do_not_fit_the_table_that_was_made_again_are_named(place):
    place.commit(A, id=[1])
    place.publish()
    drop_and_make(place, id=["text"])
    before = look(place).log.last
    with pytest.raises(InvalidInput, match="column id is long"):
        add_missing(place)
    assert look(place).log.last == before
