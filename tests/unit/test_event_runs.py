"""Runs that take what events named: once each, marked after the commit, and nothing forgotten."""

from __future__ import annotations

import pytest

from compactor.errors import InvalidInput, TransientStoreError
from compactor.model import Partition, SkipReason
from compactor.partition.events import open_pending
from compactor.partition.receipts import Counts
from compactor.partition.run import compact_partition
from compactor.registry.items import ItemState
from compactor.registry.starting import HELD_SECONDS
from tests.support.event_world import EventWorld
from tests.support.memory_store import Crashed


def test_objects_are_compacted_as_their_events_come_and_marked_after_the_commit() -> None:
    world = EventWorld()
    told = [world.put(f"a/{n}.json") for n in range(3)] + [world.put("b/1.json")]
    found = world.deliver(*told, told[0])
    assert (found.new, found.known, found.failed) == (4, 1, {})
    world.store.calls.clear()

    assert world.sweep().started is not None
    receipts = world.run_started()

    assert [(one.path, one.counts.objects_in, one.counts.marked) for one in receipts] == [
        ("a/", 3, 3),
        ("b/", 1, 1),
    ]
    assert world.lists_of_the_source() == 0
    world.must_be_finished()


def test_an_event_that_comes_after_its_object_was_compacted_changes_nothing() -> None:
    world = EventWorld()
    told = [world.put("a/1.json"), world.put("a/2.json")]
    world.deliver(*told)
    world.sweep()
    world.run_started()
    assert world.deliver(*told).known == 2
    world.must_be_finished()
    # Also when the table has forgotten it: the log has not.
    world.registry.items.clear()
    world.clock.advance(60)
    assert world.deliver(*told).new == 2
    assert world.sweep().started is not None
    (receipt,) = world.run_started()
    assert (receipt.counts.objects_in, receipt.counts.marked) == (0, 2)
    world.must_be_finished()


def test_a_prefix_with_much_that_is_done_costs_no_more_than_what_is_new() -> None:
    world = EventWorld(objects=1)
    world.deliver(*(world.put(f"a/{n:04}.json", 1) for n in range(300)))
    world.sweep()
    world.run_started()
    world.clock.advance(60)
    world.deliver(world.put("a/new.json", 1))
    world.store.calls.clear()
    world.sweep()
    (receipt,) = world.run_started()
    assert receipt.counts.objects_in == 1
    assert world.store.count("list_objects", bucket="source") == 0
    # Of each level a page or two, and what a table would have behind them.
    assert world.store.count("list_level", bucket="source") <= 12
    assert sum(one.name != "list_level" for one in world.store.calls if one.bucket == "source") <= 5
    world.must_be_finished()


def test_what_is_not_settled_waits_and_is_not_due() -> None:
    world = EventWorld(objects=2, settle_seconds=600, seconds=1_000)
    world.deliver(world.put("a/1.json"), world.put("a/2.json"))
    assert world.sweep().started is None
    world.clock.advance(3_599)
    world.deliver(world.put("b/3.json"))
    world.clock.advance(2)
    looked = world.sweep()
    assert looked.started is not None
    assert looked.waiting.fresh_objects == 2
    receipts = world.run_started()
    assert sum(receipt.counts.objects_in for receipt in receipts) == 2
    assert list(world.open_items()) == ["logs/b/3.json"]
    # Its partition is open.
    world.clock.advance(3_500)
    assert world.sweep().started is None
    world.clock.advance(1_000)
    assert world.sweep().started is not None
    world.run_started()
    world.must_be_finished()


def test_an_open_partition_waits_until_it_closes_or_fills_an_output() -> None:
    world = EventWorld(objects=2, settle_seconds=600, seconds=3_000)
    world.deliver(world.put("a/1.json"), world.put("a/2.json"))
    world.clock.advance(1_800)
    world.deliver(world.put("a/3.json"))
    world.clock.advance(1_900)
    # Also by the object that is newest when others are marked meanwhile.
    assert world.sweep().started is None
    world.clock.advance(1_800)
    assert world.sweep().started is not None
    world.run_started()
    world.must_be_finished()


@pytest.mark.parametrize("settle_seconds", [0, 8])
def test_a_stream_that_never_rests_is_due_after_its_seconds(settle_seconds: int) -> None:
    world = EventWorld(objects=1_000, seconds=300, settle_seconds=settle_seconds)
    for minute in range(5):
        world.deliver(world.put(f"a/{minute}.json"))
        assert world.sweep().started is None
        world.clock.advance(60)
    world.clock.advance(settle_seconds)
    looked = world.sweep()
    assert looked.started is not None
    assert looked.waiting.fresh_objects == 5
    world.run_started()
    world.must_be_finished()


def test_a_partition_is_open_by_its_newest_object_even_if_that_is_not_pending() -> None:
    world = EventWorld(objects=1, settle_seconds=600)
    world.deliver(world.put("a/1.json"))
    world.clock.advance(3_700)
    world.deliver(world.put("a/2.json"))
    world.registry.items.pop(("logs", "a/", "2.json"))
    (item,) = world.begin("run-x")
    receipt = world.compact("run-x", item)
    assert receipt.counts.objects_in == 0
    assert receipt.skipped[SkipReason.OPEN_PARTITION.value].objects == 1


def test_what_comes_while_a_run_goes_on_is_for_the_next_and_holds_up_nothing() -> None:
    world = EventWorld(objects=1, settle_seconds=0)
    world.deliver(world.put("a/1.json"))
    (item,) = world.begin("run-x")
    run = world.run_of("run-x", item)
    world.clock.advance(1)
    world.deliver(world.put("a/2.json"))
    receipt = compact_partition(run, Counts())
    assert (receipt.counts.objects_in, receipt.skipped) == (1, {})
    assert list(world.open_items()) == ["logs/a/2.json"]
    world.sweep()
    world.run_started()
    world.must_be_finished()


def test_what_is_gone_is_skipped_counted_and_noted() -> None:
    world = EventWorld()
    told = [world.put(f"a/{n}.json") for n in range(4)]
    world.deliver(*told)
    # No event tells of it, or not yet.
    world.remove("a/1.json")
    overwritten = world.put("a/2.json")
    world.sweep()
    (receipt,) = world.run_started()
    assert (receipt.counts.objects_in, receipt.counts.changed) == (2, 1)
    assert receipt.skipped[SkipReason.GONE.value].objects == 2
    assert world.lists_of_the_source() == 0
    assert world.states()["logs/a/1.json"] == "GONE"
    # Its late event finds what is there now.
    world.deliver(overwritten)
    world.clock.advance(1_000)
    world.sweep()
    world.run_started()
    world.must_be_finished()


def test_a_withdrawn_object_is_not_even_asked_for() -> None:
    world = EventWorld()
    told = [world.put("a/1.json"), world.put("a/2.json"), world.put("a/3.json")]
    gone = world.remove("a/3.json")
    found = world.deliver(gone, *told)
    assert found.failed == {}
    world.sweep()
    (receipt,) = world.run_started()
    assert (receipt.counts.objects_in, receipt.counts.changed) == (2, 0)
    world.must_be_finished()


def test_what_cannot_be_read_is_left_and_starts_no_run_again() -> None:
    world = EventWorld(objects=1, seconds=100)
    told = [world.put("a/1.json"), world.write("a/2.json", b"\x1f\x8b broken")]
    told.append(world.write("b/3.json", b""))
    world.deliver(*told)
    world.sweep()
    world.run_started()
    world.check()
    left = {key: item.state for key, item in world.open_items().items()}
    assert left == {"logs/a/2.json": ItemState.LEFT, "logs/b/3.json": ItemState.LEFT}
    world.clock.advance(10_000)
    assert world.sweep().started is None
    # Discovery passes the partition over, unless it is asked to try again.
    assert list(world.begin("run-x")) == []
    listing = open_pending(world.settings, world.clock.now(), world.table)
    assert len(next(iter(listing.of(Partition("source", "logs/a/", "a/"))("")))) == 1


def test_other_settings_look_at_what_was_left_again() -> None:
    world = EventWorld(objects=1)
    world.deliver(world.write("a/1.json", b"\x1f\x8b broken"))
    world.sweep()
    world.run_started()
    assert list(world.begin("run-x")) == []
    other = EventWorld(objects=1, format="text")
    other.registry, other.store = world.registry, world.store
    assert [item.path for item in other.begin("run-y")] == ["a/"]


def test_two_concurrent_sweeps_start_one_execution() -> None:
    world = EventWorld()
    world.deliver(world.put("a/1.json"), world.put("a/2.json"))
    inner: list[bool] = []

    def meanwhile(step: str) -> None:
        if step == "advance" and not inner:
            inner.append(True)
            world.sweep()

    world.registry.hook = meanwhile
    world.sweep()
    assert inner
    assert len(world.executions.order) == 1
    assert world.registry.batch("logs").number == 2


@pytest.mark.parametrize("ended", [False, True])
def test_a_sweep_that_dies_after_a_start_starts_no_second_run_of_the_batch(*, ended: bool) -> None:
    world = EventWorld(seconds=300)
    world.deliver(world.put("a/1.json"), world.put("a/2.json"))

    def die(step: str) -> None:
        if step == "advance":
            raise Crashed

    world.registry.hook = die
    with pytest.raises(Crashed):
        world.sweep()
    world.registry.hook = lambda step: None
    (name,) = world.executions.order
    if ended:
        world.run(name)
        world.deliver(world.put("a/3.json"), world.put("a/4.json"))
    world.clock.advance(10)
    looked = world.sweep()
    # The same name says that it goes on; or that it is over, and what waits is another batch.
    assert looked.started is not None
    assert len(world.executions.order) == (2 if ended else 1)
    world.run_started()
    world.must_be_finished()


def test_while_a_run_goes_on_no_other_is_started() -> None:
    world = EventWorld()
    world.deliver(world.put("a/1.json"), world.put("a/2.json"))
    world.sweep()
    world.clock.advance(10)
    world.deliver(world.put("a/3.json"), world.put("a/4.json"))
    assert world.sweep().busy
    world.run_started()
    assert len(world.executions.order) == 1
    # All four were pending when it looked.
    world.must_be_finished()
    assert world.sweep().started is None


def test_a_stream_of_another_destination_is_refused() -> None:
    world = EventWorld()
    other = EventWorld(s3_destination_uri="s3://lake/elsewhere/")
    other.registry = world.registry
    with pytest.raises(InvalidInput, match="listing"):
        list(other.begin("run-x"))


@pytest.mark.parametrize("step", ["query", "mark", "mark done", "rest", "head"])
def test_a_crash_around_the_marks_leaves_them_to_the_next_run(step: str) -> None:
    world = EventWorld(seconds=100)
    world.deliver(world.put("a/1.json"), world.put("a/2.json"))
    world.sweep()
    (name,) = world.executions.order
    (item,) = world.begin(name)
    after_commit = []

    def die(now: str) -> None:
        committed = world.store.contents("lake", "compacted/")
        if committed and now == step:
            after_commit.append(now)
            raise Crashed

    world.registry.hook = die
    with pytest.raises(Crashed):
        world.compact(name, item)
    assert after_commit
    world.registry.hook = lambda now: None
    world.check()
    world.executions.end(name)
    world.clock.advance(200)
    world.sweep()
    world.run_started()
    world.must_be_finished()


def test_when_the_table_does_not_answer_after_the_commit_the_partition_is_tried_again() -> None:
    world = EventWorld()
    world.deliver(world.put("a/1.json"), world.put("a/2.json"))
    world.sweep()
    (name,) = world.executions.order
    (item,) = world.begin(name)

    def slow(step: str) -> None:
        if step == "mark":
            raise TransientStoreError("slow down")

    world.registry.hook = slow
    with pytest.raises(TransientStoreError):
        world.compact(name, item)
    world.registry.hook = lambda step: None
    receipt = world.compact(name, item)
    assert (receipt.status, receipt.counts.objects_in, receipt.counts.marked) == ("done", 2, 2)
    world.must_be_finished()


def test_an_item_that_comes_while_a_partition_comes_to_rest_is_not_forgotten() -> None:
    world = EventWorld(seconds=100)
    world.deliver(world.put("a/1.json"), world.put("a/2.json"))
    world.sweep()
    late = world.put("a/3.json")

    def meanwhile(step: str) -> None:
        if step == "rest":
            world.registry.hook = lambda step: None
            world.deliver(late)

    world.registry.hook = meanwhile
    world.run_started()
    assert list(world.open_items()) == ["logs/a/3.json"]
    assert [one.path for one in world.registry.heads("logs")] == ["a/"]
    world.clock.advance(200)
    world.sweep()
    world.run_started()
    world.must_be_finished()


def test_a_partition_with_too_few_objects_is_not_due() -> None:
    world = EventWorld(objects=1, seconds=100, min_objects=3)
    world.deliver(world.put("a/1.json"), world.put("a/2.json"))
    world.clock.advance(10_000)
    assert world.sweep().started is None
    world.deliver(world.put("a/3.json"))
    world.clock.advance(1)
    assert world.sweep().started is not None
    world.run_started()
    world.must_be_finished()


def test_what_lies_in_a_level_that_names_a_column_is_left_and_starts_no_run_again() -> None:
    world = EventWorld(objects=1, seconds=100)
    world.deliver(world.put("a/1.json"), world.write("a/region=eu/1.json", b"{}\n"))
    world.sweep()
    (receipt,) = world.run_started()
    assert receipt.skipped[SkipReason.DEEPER_LEVEL.value].objects == 1
    assert {key: one.state for key, one in world.open_items().items()} == {
        "logs/a/region=eu/1.json": ItemState.LEFT
    }
    world.clock.advance(10_000)
    assert world.sweep().started is None


def test_a_run_that_failed_is_made_up_for_though_nothing_is_pending() -> None:
    world = EventWorld(seconds=300)
    world.deliver(world.put("a/1.json"), world.put("a/2.json"))
    world.sweep()
    (first,) = world.executions.order
    for item in world.begin(first):
        world.compact(first, item)
    # Behind the marks, in a step that has nothing to do with objects.
    world.executions.end(first, failed=True)
    world.clock.advance(299)
    assert world.sweep().started is None
    world.clock.advance(1)
    assert world.sweep().started is not None
    world.run_started()
    world.clock.advance(1_000)
    assert world.sweep().started is None
    world.must_be_finished()


def test_a_run_under_way_holds_the_next_one_for_six_hours_at_most() -> None:
    world = EventWorld()
    world.deliver(world.put("a/1.json"), world.put("a/2.json"))
    assert world.sweep().started is not None
    world.clock.advance(60)
    world.deliver(world.put("a/3.json"), world.put("a/4.json"))
    looked = world.sweep()
    assert (looked.busy, looked.started) == (True, None)
    world.clock.advance(HELD_SECONDS - 60)
    assert world.sweep().started is not None


def test_what_is_put_over_a_compacted_object_is_left_and_read_by_no_run() -> None:
    world = EventWorld(objects=1)
    world.deliver(world.put("a/1.json"))
    world.sweep()
    world.run_started()
    world.clock.advance(60)
    world.deliver(world.write("a/1.json", b'{"id": "record-900"}\n'))
    world.sweep()
    reads = world.store.count("read_source")
    (receipt,) = world.run_started()
    assert (receipt.counts.objects_in, receipt.skipped["overwritten"].objects) == (0, 1)
    assert world.store.count("read_source") == reads
    assert world.states() == {"logs/a/1.json": "OVERWRITTEN"}
    world.clock.advance(3_600)
    assert world.sweep().started is None


def test_an_object_that_comes_back_unchanged_after_clean_up_is_marked_as_compacted() -> None:
    world = EventWorld(objects=1)
    world.deliver(world.put("a/1.json"))
    world.sweep()
    world.run_started()
    body = world.store.get("source", "logs/a/1.json")
    world.store.remove("source", "logs/a/1.json")
    world.clock.advance(60)
    world.deliver(world.write("a/1.json", body))
    world.sweep()
    (receipt,) = world.run_started()
    assert (receipt.counts.objects_in, receipt.counts.marked) == (0, 1)
    world.must_be_finished()
