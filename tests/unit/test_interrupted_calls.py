"""A run whose calls are killed, fail or lose their answers counts as one whole call does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest

from compactor.errors import InvalidInput, TransientStoreError
from compactor.limits import WorkerLimits
from compactor.model import QuarantineReason
from compactor.partition import steps, work
from compactor.partition.inputs import PartitionRun
from compactor.partition.receipts import Counts, Receipt
from compactor.partition.run import compact_partition
from compactor.rows import groups as row_groups
from tests.support.event_world import EventWorld
from tests.support.examples import PARTITION, Looks
from tests.support.memory_store import Call
from tests.support.world import World
from tests.unit.test_place import many, told
from tests.unit.test_receipts import SMALL_GROUPS, Groups, call, carried

CUT_GZIP = b"\x1f\x8b\x08 cut"


class Killed(BaseException):
    """Nothing of the product runs after it."""


def kill_after(world: World, creates: int) -> None:
    """Let the process die at each request once so many objects were created from now on."""
    end = world.store.count("create") + creates

    def kill(_: Call) -> None:
        if world.store.count("create") >= end:
            raise Killed

    world.store.hooks.before.append(kill)


def kill_at(world: World, name: str) -> None:
    def kill(request: Call) -> None:
        if request.name == name:
            raise Killed

    world.store.hooks.before.append(kill)


def killed(world: World, counts: Counts) -> None:
    with pytest.raises(Killed):
        call(world, counts, None, "calls-1")
    world.store.hooks.before.clear()


def in_calls(world: World, groups: int | None) -> Receipt:
    receipt = Receipt("", "", "more")
    while receipt.status == "more":
        receipt = call(world, carried(receipt.counts), groups, "calls-1")
        assert receipt.counts.calls < 60
    return receipt


def killed_second(world: World, first: Receipt) -> None:
    kill_after(world, 4)
    killed(world, carried(first.counts))


def failed_second(world: World, first: Receipt) -> None:
    end = world.store.count("create") + 4

    def fail(request: Call) -> None:
        if request.name == "create" and world.store.count("create") >= end:
            raise TransientStoreError("down")

    world.store.hooks.before.append(fail)
    with pytest.raises(TransientStoreError):
        call(world, carried(first.counts), None, "calls-1")
    world.store.hooks.before.clear()


def unanswered_second(groups: int | None) -> Callable[[World, Receipt], None]:
    def second(world: World, first: Receipt) -> None:
        call(world, carried(first.counts), groups, "calls-1")

    return second


@pytest.mark.parametrize(
    "second",
    [killed_second, failed_second, unanswered_second(4), unanswered_second(None)],
    ids=["killed", "failed", "out of time, no answer", "done, no answer"],
)
def test_a_second_call_that_is_made_again_counts_nothing_twice(
    second: Callable[[World, Receipt], None],
) -> None:
    whole = call(many(60), Counts(), None, "calls-1")
    world = many(60)
    first = call(world, Counts(), 3, "calls-1")
    assert first.status == "more"
    second(world, first)
    last = call(world, carried(first.counts), None, "calls-1")
    assert told(last)["skipped"] == told(whole)["skipped"]
    assert last.counts.objects_in == whole.counts.objects_in
    world.must_be_finished()


def test_sources_of_a_killed_call_that_are_deleted_since_are_not_subtracted() -> None:
    world = many(20)
    kill_after(world, 3)
    killed(world, Counts())
    for key in list(world.store.contents("source"))[:4]:
        world.store.remove("source", key)
    last = call(world, Counts(), None, "calls-1")
    assert all(skipped.objects > 0 for skipped in last.skipped.values())


def test_a_commit_of_a_killed_call_that_becomes_void_is_not_subtracted() -> None:
    world = many(8)
    kill_at(world, "complete_upload")
    killed(world, Counts())
    for upload in list(world.store.list_uploads("lake", "")):
        world.store.abort_upload("lake", upload.key, upload.upload_id)
    world.put("0000.json", b'{"id": "record-0"}\n')
    assert set(call(world, Counts(), None, "calls-1").skipped) == {"excluded"}


def quarantining(**given: Any) -> World:
    world = World(limits=WorkerLimits(window_objects=4, group_sources=1), **given)
    for number in range(24):
        if number % 3 == 0:
            world.put(f"{number:03}.log.gz", CUT_GZIP)
        else:
            world.add(f"{number:03}.json", '{{"id": "{}"}}')
    return world


@pytest.mark.parametrize("retried", [False, True])
def test_sources_that_a_killed_call_quarantined_are_not_skipped_as_well(retried: bool) -> None:
    world = quarantining(retry_quarantined=retried)
    first = call(world, Counts(), 3, "calls-1")
    kill_after(world, 9)
    killed(world, carried(first.counts))
    last = call(world, carried(first.counts), None, "calls-1")
    assert last.skipped == {}
    # What is retried is written down by each call.
    assert retried or last.counts.quarantined == 8


def test_an_output_among_the_sources_counts_once_over_several_calls() -> None:
    def world_with_output() -> World:
        other = World()
        other.add("a.json", '{{"id": "{}"}}')
        other.run()
        (key,) = other.store.contents("lake", "compacted/")
        output = other.store._buckets["lake"].objects[key]
        world = World(limits=SMALL_GROUPS)
        for name in "abcdef":
            world.add(f"{name}.json", '{{"id": "{}"}}')
        old = replace(output, last_modified=output.last_modified - 86_400)
        name = PARTITION.prefix + key.rpartition("/")[2]
        world.store._buckets["source"].objects[name] = old
        return world

    last = in_calls(world_with_output(), 2)
    assert last.counts.calls > 2
    assert last.skipped == in_calls(world_with_output(), None).skipped
    assert last.skipped["own_state_or_output"].objects == 1


def test_denied_sources_are_all_told_after_several_calls() -> None:
    def world_with_denied() -> World:
        world = many(60)
        for number in (1, 13, 14, 30, 50, 51):
            key = f"{PARTITION.prefix}{number:04}.json"
            world.store.unreadable["source", key] = QuarantineReason.ACCESS_DENIED
        return world

    whole, last = in_calls(world_with_denied(), None), in_calls(world_with_denied(), 3)
    assert last.counts.calls > 2
    assert last.counts.quarantined == len(last.quarantined) == 6
    assert sorted(one.key for one in last.quarantined) == sorted(
        one.key for one in whole.quarantined
    )
    assert told(last)["left_alone"] == told(whole)["left_alone"]


def test_a_rest_below_min_objects_is_counted_as_skipped() -> None:
    world = World(limits=WorkerLimits(group_sources=2), min_objects=2)
    for number in range(3):
        world.add(f"{number:03}.json", '{{"id": "{}"}}')
    last = in_calls(world, 1)
    skipped = sum(one.objects for one in last.skipped.values())
    assert last.counts.objects_in + skipped == 3


def test_events_count_nothing_of_their_own_run_as_committed_before() -> None:
    world = EventWorld()
    world.deliver(*(world.put(f"a/{n}.json") for n in range(5)), world.write("a/x.bin", b"\0\1"))
    world.sweep()
    (name,) = world.executions.running
    (partition,) = world.begin(name)
    receipt = Receipt("", "", "more")
    while receipt.status == "more":
        run = world.run_of(name, partition)
        few = replace(run.settings, limits=SMALL_GROUPS)
        run = replace(run, settings=few, deadline=Groups(world.store, 2))
        receipt = compact_partition(run, carried(receipt.counts))
    assert receipt.counts.calls > 1
    assert receipt.skipped == {}


def test_a_refused_group_is_not_forgotten_by_a_further_call() -> None:
    world = many(60)
    first = call(world, Counts(), 3, "calls-1")
    refused = f"{PARTITION.prefix}0020.json"
    store = steps.store

    def refuse(group: Any, *rest: Any) -> Any:
        if any(one.key == refused for one in group.sources):
            raise steps.RowsRefused(InvalidInput("format", "x", "", message="no such rows"))
        return store(group, *rest)

    with patch.object(work, "store", refuse):
        for _ in range(2):
            with pytest.raises(InvalidInput, match="no such rows"):
                call(world, carried(first.counts), None, "calls-1")


def test_a_lost_output_whose_rows_are_refused_is_void() -> None:
    world = World()
    for number in range(3):
        world.add(f"{number}.json", '{{"id": "{}"}}')
    kill_at(world, "complete_upload")
    killed(world, Counts())
    for upload in list(world.store.list_uploads("lake", "")):
        world.store.abort_upload("lake", upload.key, upload.upload_id)
    world.settings = replace(world.settings, output_format="parquet")

    def refuse(*_: Any) -> Any:
        raise InvalidInput("output_format", "parquet", "", message="no such rows")

    with (
        patch.object(row_groups, "store_rows", refuse),
        pytest.raises(InvalidInput, match="no such rows"),
    ):
        call(world, Counts(), None, "run-2")


def test_calls_that_only_pass_windows_without_groups_are_no_fault_of_the_target() -> None:
    limits = WorkerLimits(window_objects=2)
    world = World(limits=limits, exclude=["*.tmp"])
    for number in range(30):
        world.add(f"{number:03}.tmp", '{{"id": "{}"}}')
    receipt = Receipt("", "", "more")
    while receipt.status == "more":
        run = PartitionRun(PARTITION, world.settings, world.store, world.clock, Looks(4), "calls-1")
        receipt = compact_partition(run, carried(receipt.counts))
    assert receipt.status == "done"
    assert receipt.counts.calls > 3
