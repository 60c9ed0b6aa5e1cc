"""Records that were rejected come into an output once the columns have grown, each once."""

from __future__ import annotations

from typing import Any

import pytest

from compactor.errors import CommitConflict, IntegrityError
from compactor.log.entries import Commit
from compactor.outputs.group import draft_of
from compactor.outputs.verify import check_commit
from compactor.runs.partition_progress import PartitionProgress
from compactor.runs.replays import replay_groups
from compactor.sinks.upserts import POSITION, SOURCE_KEY
from tests.rows.row_world import RowWorld
from tests.support.examples import PARTITION

NARROW, WIDE = "id BIGINT", "id BIGINT, more DOUBLE, name STRING"


def rejecting(**given: Any) -> RowWorld:
    """Three rows, and four records that the columns did not take."""
    world = RowWorld(csv_header="present", parquet_schema=NARROW, **given)
    world.put_lines("1.json", {"id": 1}, {"id": 2, "more": 0.5}, {"id": "x"})
    world.put_lines("2.json", {"id": 3}, {"id": 4, "name": "four"})
    world.put("3.csv", b"id\n5\n")
    world.put("4.csv", b'id;name\n6;"six; of them"\n')
    world.run()
    world.given["parquet_schema"] = WIDE
    return world


def ids(world: RowWorld) -> list[int]:
    """What DuckDB and pyarrow read, the same."""
    arrow = sorted(world.table()["id"].to_pylist())
    assert arrow == sorted(one["id"] for one in world.rows())
    return arrow


def waiting(world: RowWorld) -> int:
    return world.log.load().rejects.records


def test_rejects_that_fit_by_now_come_into_an_output_each_record_once() -> None:
    world = rejecting()
    assert (ids(world), waiting(world)) == ([1, 3, 5], 4)
    before = world.rejects()
    commits = world.run()
    assert all(one.replays for one in commits)
    assert ids(world) == [1, 2, 3, 4, 5, 6]
    found = [tuple(one.values()) for one in world.rows() if one["id"] in {2, 4, 6}]
    assert sorted(found) == [
        (2, 0.5, None),
        (4, None, "four"),
        (6, None, "six; of them"),
    ]
    assert [check_commit(one, world.store) for one in commits] == [3]
    assert waiting(world) == 1, "which is no number"
    totals = world.log.load().totals("run-2")
    assert (totals.sources, totals.replayed, totals.rejected) == (0, 3, 0)
    assert all(one in world.rejects() for one in before), "they are never deleted"
    assert world.run() == []
    assert not world.uploads()


def test_what_fits_no_schema_waits_on_and_leaves_nothing() -> None:
    world = RowWorld(parquet_schema=NARROW, format="json_lines")
    world.put("1.json", b'{"id": 1}\n{"id": "\xff"}\n{"id": "x"}\n')
    world.run()
    objects = len(world.rejects())
    for schema in (NARROW, WIDE, WIDE):
        world.given["parquet_schema"] = schema
        assert world.run() == []
        assert (ids(world), waiting(world)) == ([1], 2)
        assert len(world.rejects()) == objects
        assert not world.uploads()


def test_what_waits_on_comes_with_a_later_schema() -> None:
    world = RowWorld(parquet_schema=NARROW)
    world.put_lines("1.json", {"id": 1}, {"id": 2, "more": 0.5}, {"id": 3, "later": True})
    world.run()
    for schema, found in ((WIDE, [1, 2]), (f"{WIDE}, later BOOLEAN", [1, 2, 3])):
        world.given["parquet_schema"] = schema
        (commit,) = world.run()
        assert commit.replays
        assert ids(world) == found
    assert waiting(world) == 0


def test_columns_that_are_added_take_what_was_rejected_before() -> None:
    world = RowWorld()
    world.put_lines("1.json", {"id": 1})
    world.run()
    world.put_lines("2.json", {"id": 2}, {"id": 3, "more": 1})
    world.run()
    world.given["schema_evolution"] = "add_columns"
    assert [one.replays for one in world.run()] == [True]
    assert (ids(world), waiting(world)) == ([1, 2, 3], 0)


def test_a_run_that_dies_after_the_commit_leaves_each_record_once() -> None:
    """The upload is there for the next run, or lost: then the rejects are replayed again."""
    for lost in (False, True):
        world = rejecting()
        draft = draft_of_replay(world)
        world.log.append(world.log.load(), draft)
        assert waiting(world) == 1
        output = draft.output
        assert output is not None
        if lost:
            world.store.abort_upload(output.bucket, output.key, output.upload_id)
        world.run()
        assert ids(world) == [1, 2, 3, 4, 5, 6]
        assert (waiting(world), world.uploads()) == (1, [])


def test_of_two_runs_that_replay_one_commits() -> None:
    world = rejecting()
    progress = PartitionProgress(world._run(), world.log.load())
    progress.settling.settle()
    late = draft_of_replay(world)
    world.run()
    with pytest.raises(CommitConflict):
        progress.groups.commit(late)
    assert ids(world) == [1, 2, 3, 4, 5, 6]
    assert not world.uploads()


def test_rejects_that_were_changed_are_not_replayed() -> None:
    world = rejecting()
    (one, *_) = world.log.load().rejects.in_order
    body = world.store.get(one.rejects.bucket, one.rejects.key)
    world.store.put(one.rejects.bucket, one.rejects.key, body.replace(b"0.5", b"0.7"))
    with pytest.raises(IntegrityError, match="is not what its commit says"):
        world.run()
    assert ids(world) == [1, 3, 5]


def test_replayed_rows_say_which_source_they_come_from() -> None:
    world = rejecting(table="glue:lake.people", upsert_key=["id"])
    world.run()
    found = [(one["id"], one[SOURCE_KEY], one[POSITION]) for one in world.rows()]
    assert sorted(found) == [
        (1, PARTITION.prefix + "1.json", 0),
        (2, PARTITION.prefix + "1.json", 1),
        (3, PARTITION.prefix + "2.json", 0),
        (4, PARTITION.prefix + "2.json", 1),
        (5, PARTITION.prefix + "3.csv", 0),
        (6, PARTITION.prefix + "4.csv", 0),
    ]
    assert world.run() == []


def draft_of_replay(world: RowWorld) -> Commit:
    ((group, replays),) = replay_groups(world.log.load(), world.settings)
    pending = world._store(group, replays)
    draft = draft_of(pending, "run-1", world.clock.now())
    assert draft is not None
    return draft
