"""Clean-up: what is deleted, what never is, and what is written down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from compactor.cleaning.clean_partition import record_clean_up
from compactor.cleaning.clean_up_list import find_due
from compactor.cleaning.clean_up_receipts import CleanUpReceipt
from compactor.log.encoding import encode_commit
from compactor.model import Format, SourceObject
from compactor.ports import Deletion, ObjectHead
from tests.support.cleaning import (
    DAY,
    LINE,
    commits,
    compact_more,
    left,
    old_world,
    one_key,
    records,
    refusing,
    rewrite,
)
from tests.support.examples import PARTITION
from tests.support.examples import settings as settings_of
from tests.support.memory_store import Call, Crashed, ManualClock
from tests.support.world import World

# What is deleted.


def test_the_sources_of_a_commit_past_retention_are_deleted_and_recorded_once() -> None:
    world = old_world()
    stored = sum(map(len, world.store.contents("source").values()))
    receipt = world.clean_up()
    assert (receipt.status, receipt.unsafe, receipt.warnings) == ("done", [], [])
    counts = receipt.counts
    assert (counts.commits, counts.deleted, counts.deleted_bytes) == (1, 2, stored)
    assert left(world) == []
    record = {"version": 1, "run_id": "run-2", "at": world.clock.now(), "deleted": 2}
    none = {"markers": 0, "changed": 0}
    assert records(world) == {1: {**record, "deleted_bytes": stored, **none}}
    before = len(world.store.calls)
    assert world.clean_up().counts.deleted == 0
    assert {call.name for call in world.store.calls[before:]} == {
        "list_objects",
        "put",
        "head",
        "list_uploads",
    }


@pytest.mark.parametrize(
    "marker",
    [
        "_delta_log/00000000000000000000.json",
        "logs/metadata/v1.metadata.json",
        "logs/2026/01/oci-layout",
        f"{PARTITION.prefix}_delta_log/00000000000000000000.json",
        f"{PARTITION.prefix}.hoodie/hoodie.properties",
    ],
)
def test_sources_stay_where_a_table_was_made_of_them_since(marker: str) -> None:
    world = old_world()
    world.store.seed("source", marker, b"{}")
    for _ in range(2):
        receipt = world.clean_up()
        assert receipt.status == "done"
        (line,) = receipt.unsafe
        assert f"s3://source/{PARTITION.prefix}a.json lies in a table" in line
        assert "compactor maintain" in line
    assert {"a.json", "b.json"} <= set(left(world))
    assert not records(world)
    world.store.remove("source", marker)
    assert world.clean_up().counts.deleted == 2


def test_a_table_beside_the_sources_keeps_none_of_them() -> None:
    world = old_world()
    for marker in ("other/_delta_log/0.json", f"{PARTITION.prefix}metadata/notes.json"):
        world.store.seed("source", marker, b"{}")
    assert world.clean_up().counts.deleted == 2


@pytest.mark.parametrize("levels", [2, 100])
@pytest.mark.parametrize("at", ["", "000/", "001/", "last/"])
def test_a_table_between_a_partition_and_its_sources_keeps_those(levels: int, at: str) -> None:
    world = old_world("")
    names = [f"{n:03}/deep/a.json" for n in range(levels)]
    compact_more(world, *names)
    at = f"{levels - 1:03}/" if at == "last/" else at
    # One sorts before, one after the keys that the commit names.
    for marker in ("_delta_log/0.json", ".hoodie/hoodie.properties"):
        world.store.seed("source", f"{PARTITION.prefix}{at}{marker}", b"{}")
        (line,) = world.clean_up().unsafe
        assert f"s3://source/{PARTITION.prefix}{at}" in line
        world.store.remove("source", f"{PARTITION.prefix}{at}{marker}")
    assert world.clean_up().counts.deleted == levels


def test_a_marker_amid_the_files_of_one_of_many_levels_keeps_the_sources() -> None:
    world = old_world("")
    compact_more(world, *(f"{n:03}/deep/a.json" for n in range(100)))
    world.store.seed("source", f"{PARTITION.prefix}050/deep/_delta_log/0.json", b"{}")
    (line,) = world.clean_up().unsafe
    assert f"s3://source/{PARTITION.prefix}050/deep/a.json" in line


@pytest.mark.parametrize(("levels", "lists"), [(1, 5), (31, 5 + 62), (32, 5 + 5), (900, 5 + 5)])
def test_looking_for_tables_takes_a_list_for_each_level_or_page(levels: int, lists: int) -> None:
    """Of four levels above the sources, and as many as there are or a page of a thousand keys."""
    world = old_world("")
    compact_more(world, *(f"{n:03}/deep/a.json" if levels > 1 else "a.json" for n in range(levels)))
    before = len(world.store.calls)
    assert world.clean_up().counts.deleted == levels
    asked = [call for call in world.store.calls[before:] if call.bucket == "source"]
    assert sum(call.name.startswith("list_") for call in asked) == lists


@pytest.mark.parametrize("amid", range(5))
def test_of_two_concurrent_clean_ups_each_counts_what_it_deleted(amid: int) -> None:
    world = old_world("abcd")
    stored = sum(map(len, world.store.contents("source").values()))
    other: list[CleanUpReceipt] = []

    def clean_up_beside(call: Call) -> None:
        deletes = sum(one.name == "delete_source" for one in world.store.calls)
        if deletes > amid or (deletes and call.name == "create"):
            world.store.hooks.clear()
            other.append(world.clean_up())

    world.store.hooks.before.append(clean_up_beside)
    first = world.clean_up().counts
    (second,) = (one.counts for one in other)
    assert (first.deleted + second.deleted, first.commits + second.commits) == (4, 1)
    assert first.deleted_bytes + second.deleted_bytes == stored
    assert second.deleted == 4 - first.deleted
    assert records(world)[1]["deleted"] == 4


@pytest.mark.parametrize(("seconds", "deleted"), [(7 * DAY - 1, 0), (7 * DAY, 2)])
def test_retention_is_counted_from_the_commit(seconds: int, deleted: int) -> None:
    world = old_world()
    world.clock.advance(seconds - 8 * DAY)
    assert world.clean_up().counts.deleted == deleted


def test_a_clock_that_jumped_a_year_ahead_deletes_nothing_early() -> None:
    world = old_world()
    world.clock.advance(-2 * DAY)
    jumped = ManualClock(world.clock.now() + 365 * DAY)
    run = world.clean_up_run(clock=jumped)
    receipt = record_clean_up(run, CleanUpReceipt(run.path, run.run_id))
    assert (receipt.status, receipt.counts.deleted, receipt.unsafe) == ("done", 0, [])
    assert (len(left(world)), records(world)) == (2, {})


@pytest.mark.parametrize(("days", "deleted"), [(6, 0), (8, 2)])
def test_a_writer_whose_clock_was_ahead_keeps_its_sources_no_longer(
    days: float, deleted: int
) -> None:
    world = old_world()
    (commit,) = commits(world)
    rewrite(world, commit, created_at=commit.created_at + 400 * DAY)
    world.clock.advance((days - 8) * DAY)
    assert world.clean_up().counts.deleted == deleted


def test_a_writer_whose_clock_was_slow_deletes_nothing_early() -> None:
    world = old_world()
    (commit,) = commits(world)
    rewrite(world, commit, created_at=0.0)
    world.clock.advance(-2 * DAY)
    assert world.clean_up().counts.deleted == 0


def test_retention_counts_from_the_checkpoint_and_without_one_does_not_begin() -> None:
    world = old_world()
    key = one_key(1).replace(".json.gz", ".checkpoint.json.gz")
    checkpoint = world.store.contents("lake")[key]
    world.store.remove("lake", key)
    assert world.clean_up().counts.deleted == 0
    world.store.seed("lake", key, checkpoint, last_modified=world.clock.now() - 6 * DAY)
    assert world.clean_up().counts.deleted == 0
    world.clock.advance(DAY)
    assert world.clean_up().counts.deleted == 2


def test_a_store_whose_clock_jumped_ahead_deletes_nothing_early() -> None:
    world = old_world()
    slow = ManualClock(world.clock.now() - 2 * DAY)
    run = world.clean_up_run(clock=slow)
    assert record_clean_up(run, CleanUpReceipt(run.path, run.run_id)).counts.deleted == 0


def test_a_store_that_sends_no_time_leaves_our_own() -> None:
    world = old_world()
    real = world.store.head

    def head(bucket: str, key: str) -> ObjectHead | None:
        found = real(bucket, key)
        return found and replace(found, answered_at=None)

    world.store.head = head  # type: ignore[method-assign] # a store without a Date
    world.clock.advance(-2 * DAY)
    assert world.clean_up().counts.deleted == 0
    world.clock.advance(2 * DAY)
    assert world.clean_up().counts.deleted == 2


def test_what_a_later_run_published_keeps_its_sources_from_then_on() -> None:
    """S3 gives an output the time at which its upload began."""
    world = World(delete_after="7d")
    world.add("a.json", LINE)
    for days in (0, 10):
        world.clock.advance(days * DAY)
        world.store.hooks.crash("before", "complete_upload")
        with pytest.raises(Crashed):
            world.run()
        world.store.hooks.clear()
    world.clock.advance(10 * DAY)
    assert world.clean_up().counts.deleted == 0
    assert world.run().counts.repaired == 1
    world.clock.advance(6 * DAY)
    assert not find_due(world.settings, world.store, world.clock.now())
    assert world.clean_up().counts.deleted == 0
    world.clock.advance(DAY)
    assert find_due(world.settings, world.store, world.clock.now())
    assert world.clean_up().counts.deleted == 1


def test_sources_without_content_go_by_the_time_of_their_entry() -> None:
    world = World(delete_after="7d")
    world.put("a.json", b"")
    world.put("b.json", b"")
    world.put("c.json.gz", b"", packed=True)
    world.run()
    named = sum(len(commit.rows) for commit in commits(world))
    assert named
    world.clock.advance(8 * DAY)
    early = world.clean_up_run(clock=ManualClock(world.clock.now() + 400 * DAY))
    world.clock.advance(-2 * DAY)
    assert record_clean_up(early, CleanUpReceipt(early.path, "early")).counts.deleted == 0
    world.clock.advance(2 * DAY)
    assert world.clean_up().counts.deleted == named


def test_a_partition_without_a_log_is_done() -> None:
    world = World(delete_after="0d")
    receipt = world.clean_up()
    assert (receipt.status, receipt.counts.deleted) == ("done", 0)
    assert world.store.count("head", "list_uploads") == 0


def test_nothing_is_deleted_where_the_settings_keep_sources() -> None:
    world = old_world(delete_after=None)
    assert world.clean_up().counts.deleted == 0
    assert records(world) == {}


def test_quarantined_sources_stay_and_their_entry_is_done_with() -> None:
    world = old_world("")
    world.clock.advance(-8 * DAY)
    world.put("g.log.gz", b"\x1f\x8b broken")
    world.run()
    world.clock.advance(8 * DAY)
    receipt = world.clean_up()
    assert (receipt.counts.commits, receipt.counts.deleted) == (0, 0)
    assert left(world) == ["g.log.gz"]
    assert [record["deleted"] for record in records(world).values()] == [0]


def test_a_replaced_commit_deletes_nothing_and_is_done_with() -> None:
    world = old_world()
    (commit,) = commits(world)
    # Void, although an output of the same name is there.
    after = replace(commit.voided("run-9"), sequence=2)
    world.clock.advance(-8 * DAY)
    key = one_key(2)
    world.store.seed("lake", key, encode_commit(after))
    world.clock.advance(8 * DAY)
    assert world.clean_up().counts.deleted == 0
    assert len(left(world)) == 2
    # The second entry has no checkpoint yet.
    assert {n: record["deleted"] for n, record in records(world).items()} == {1: 0}


@pytest.mark.parametrize(
    ("source", "deleted"),
    [
        ("s3://source/logs/", 2),
        ("s3://source/logs/2026/*/", 2),
        ("s3://source/logs/*/01/0*/", 2),
        ("s3://source/other/", 0),
        ("s3://source/logs/2026/01/", 2),
        ("s3://source/logs/2025/*/", 0),
        ("s3://source/logs/*/02/", 0),
        ("s3://source/logs/2026/01/02/*/", 0),
        ("s3://elsewhere/logs/", 0),
    ],
)
def test_only_sources_of_the_runs_own_source_are_deleted(source: str, deleted: int) -> None:
    world = old_world()
    given = {"delete_after": "7d"}
    world.settings = settings_of(**given, s3_source_uri=source)
    assert world.clean_up().counts.deleted == deleted
    assert len(records(world)) == (1 if deleted else 0), "another run may clean up the rest"


def test_a_source_that_changed_after_its_commit_stays_and_is_not_tried_again() -> None:
    world = old_world()
    world.put("a.json", b'{"id": "record-7000"}\n')
    receipt = world.clean_up()
    assert (receipt.counts.deleted, receipt.counts.changed, receipt.counts.refused) == (1, 1, 0)
    assert left(world) == ["a.json"]
    assert records(world)[1]["changed"] == 1


def test_more_sources_than_one_request_takes_are_deleted() -> None:
    world = World(delete_after="0d")
    for number in range(1_001):
        world.store.seed("source", f"{PARTITION.prefix}{number:04}.json", b"{}\n", last_modified=0)
    world.run()
    world.clock.advance(1)
    assert world.clean_up().counts.deleted == 1_001


# What the store refuses.


def test_what_the_store_refuses_is_reported_and_tried_by_the_next_run() -> None:
    world = old_world("abc")
    refusing(world, a="AccessDenied: no", b=True)
    receipt = world.clean_up()
    assert [(one.key, one.reason) for one in receipt.refusals] == [
        (f"{PARTITION.prefix}a.json", "AccessDenied: no")
    ]
    counts = receipt.counts
    assert (counts.commits, counts.deleted, counts.refused, counts.changed) == (0, 1, 1, 1)
    assert (receipt.status, records(world)) == ("done", {})
    refusing(world, a=True, b=True)
    assert world.clean_up().counts.commits == 1
    assert records(world)[1]["changed"] == 2


def test_a_thousand_refusals_are_counted_and_a_hundred_shown() -> None:
    world = World(delete_after="0d")
    for number in range(150):
        world.store.seed("source", f"{PARTITION.prefix}{number:04}.json", b"{}\n", last_modified=0)
    world.run()
    world.clock.advance(1)
    refusing(world, **{f"{number:04}": "AccessDenied: no" for number in range(150)})
    receipt = world.clean_up()
    assert (receipt.counts.refused, len(receipt.refusals)) == (150, 100)


def test_delete_markers_are_counted_and_warned_of_once() -> None:
    world = old_world()
    compact_more(world, "c.json")
    real = world.store.delete_sources

    def delete(sources: Sequence[SourceObject]) -> Deletion:
        return real(sources)._replace(markers=len(sources))

    world.store.delete_sources = delete  # type: ignore[method-assign] # a versioned bucket
    receipt = world.clean_up()
    assert (receipt.counts.markers, len(receipt.warnings)) == (3, 1)
    assert "noncurrent versions" in receipt.warnings[0]
    assert [record["markers"] for record in records(world).values()] == [2, 1]


# CloudTrail.


def test_sources_of_cloudtrail_are_warned_of_once() -> None:
    world = old_world("")
    for name in ("x", "y"):
        world.clock.advance(-8 * DAY)
        document = b'{"Records":[{"id":"record-%d"}]}' % len(world.records)
        world.records.add(len(world.records))
        world.put(f"1_CloudTrail_{name}.json", document)
        world.run()
        world.clock.advance(8 * DAY)
    assert [commit.output and commit.output.format for commit in commits(world)] == [
        Format.CLOUDTRAIL
    ] * 2
    receipt = world.clean_up()
    (line,) = receipt.warnings
    assert "aws cloudtrail validate-logs needs the originals" in line
    assert receipt.counts.deleted == 2
