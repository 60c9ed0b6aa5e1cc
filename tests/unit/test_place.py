"""Further calls of a run begin where the call before came to, and lose nothing by it."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest

from compactor.limits import WorkerLimits
from compactor.partition import receipts
from compactor.partition.inputs import PartitionRun
from compactor.partition.receipts import Counts, Cursor, Receipt
from compactor.partition.run import compact_partition
from tests.support.examples import PARTITION
from tests.support.world import World
from tests.unit.test_receipts import Groups, call, carried, comparable

WINDOW = 10
LIMITS = WorkerLimits(window_objects=WINDOW, group_sources=4)


def many(objects: int, limits: WorkerLimits = LIMITS) -> World:
    world = World(limits=limits, exclude=["*.tmp"])
    world.store.page_size = 5
    for number in range(objects):
        name = f"{number:04}.json"
        if number % 7 == 3:
            world.put(f"{number:04}.tmp", b"x")
        else:
            world.add(name, '{{"id": "{}"}}')
    return world


def to_its_end(world: World, groups: int = 8, run_id: str = "calls-1") -> list[Receipt]:
    made = [Receipt("", "", "more")]
    while made[-1].status == "more":
        made.append(call(world, carried(made[-1].counts), groups, run_id))
        assert len(made) < 100, "it does not get on"
    return made[1:]


def listed(world: World) -> int:
    return world.store.count("list_objects", bucket="source", prefix=PARTITION.prefix)


def test_calls_of_one_run_list_what_is_left_and_not_what_is_done() -> None:
    world = many(200)
    made = to_its_end(world)
    assert len(made) > 5
    # A page has five keys, and each window is listed twice: by its plan, and by that which finds
    # nothing left. Each call lists the window in which the one before stopped once more.
    assert listed(world) <= 2 * (200 / 5) + len(made) * 3 * (WINDOW / 5)
    again = many(200)
    with patch.object(receipts, "read", return_value=None):
        to_its_end(again)
    assert listed(world) < listed(again) / 2
    world.must_be_finished()


def told(receipt: Receipt) -> dict[str, Any]:
    document = comparable(receipt)
    # Where a call ends amid a window, the next one cuts its groups otherwise.
    document["counts"].pop("objects_out")
    document["sizes"].pop("after")
    for one in document["skipped"].values():
        one.pop("examples")
    return document


@pytest.mark.parametrize("groups", [1, 3, 8, 12, 20])
def test_the_receipt_of_many_calls_says_what_that_of_one_says(groups: int) -> None:
    whole = call(many(120), Counts(), None, "calls-1")
    last = to_its_end(many(120), groups)[-1]
    assert last.status == "done"
    assert last.cursor == Cursor()
    assert told(last) == told(whole)
    assert whole.skipped["excluded"].objects == 17


def test_a_receipt_shows_how_far_a_call_came() -> None:
    world = many(60)
    cursors = [one.cursor for one in to_its_end(world)]
    assert cursors[-1] == Cursor()
    after = [one.after for one in cursors[:-1]]
    assert after == sorted(after)
    assert after[-1] > f"{PARTITION.prefix}0010"


def test_what_comes_before_the_place_of_a_run_is_found_by_the_next_one() -> None:
    world = many(100)
    made = Receipt("", "", "more")
    late: list[str] = []
    while made.status == "more":
        made = call(world, carried(made.counts), 6, "calls-1")
        if made.cursor.after and len(late) < 4:
            name = f"{len(late):04}-late.json"
            late.append(name)
            world.add(name, '{{"id": "{}"}}')
    assert len(late) == 4
    committed = made.counts.objects_in
    world.clock.advance(7_200)
    found = call(world, Counts(), None, "calls-2")
    assert found.counts.objects_in == len(late)
    assert committed + len(late) == len(world.records) / 3
    world.must_be_finished()


def test_another_run_begins_at_the_first_key() -> None:
    world = many(60)
    call(world, Counts(), 12, "calls-1")
    other = PartitionRun(
        PARTITION, world.settings, world.store, world.clock, Groups(world.store, 99), "calls-2"
    )
    assert compact_partition(other, replace(Counts(), calls=1)).status == "done"
    world.must_be_finished()


def test_whatever_comes_goes_and_dies_between_calls_nothing_is_lost_or_doubled() -> None:
    for seed in range(30):
        chance = random.Random(seed)
        window, sources = chance.choice([3, 10]), chance.choice([1, 4])
        world = many(60, WorkerLimits(window_objects=window, group_sources=sources))
        made = Receipt("", "", "more")
        for number in range(60):
            counts = carried(made.counts)
            made = call(world, counts, chance.choice([1, 5, 12]), "calls-1")
            if made.status == "done":
                break
            if chance.random() < 0.3:
                world.add(f"{chance.randrange(60):04}-{number}.json", '{{"id": "{}"}}')
            if chance.random() < 0.2:
                # Its answer is lost, and what was counted before is given once more.
                made = replace(made, counts=counts)
        assert made.status == "done"
        world.clock.advance(7_200)
        call(world, Counts(), None, "calls-2")
        world.must_be_finished()
