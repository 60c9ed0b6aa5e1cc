"""A group that does not fit the time of a call: what was read of it is committed, once."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import pytest

from compactor.clock import NoDeadline
from compactor.errors import TransientStoreError
from compactor.log.log import CommitLog
from compactor.outputs.group_reading import CLOSING_SECONDS, KEPT_SECONDS, ReadingTime
from compactor.partition.inputs import PartitionRun
from compactor.partition.receipts import Counts, Receipt
from compactor.partition.run import compact_partition
from compactor.ports import Deadline
from tests.support.examples import PARTITION
from tests.support.memory_store import Call, MemoryStore
from tests.support.world import World
from tests.unit.test_crashes import at_call, death

SOURCES = 8
FITTING = 3
RESERVE = 30.0


class Reads:
    """Fifteen minutes, of which a minute is left once so many sources were read."""

    def __init__(self, store: MemoryStore, reads: int) -> None:
        self._store = store
        self._end = store.count("read_source") + reads

    def remaining_seconds(self) -> float:
        return 900.0 if self._store.count("read_source") < self._end else 60.0


def world() -> World:
    made = World()
    for number in range(SOURCES):
        made.add(f"{number}.json", '{{"id": "{}"}}')
    return made


def call(made: World, reads: int, run_id: str = "run-0", counts: Counts | None = None) -> Receipt:
    """One call that has time for so many sources."""
    deadline = Reads(made.store, reads)
    run = PartitionRun(PARTITION, made.settings, made.store, made.clock, deadline, run_id)
    return compact_partition(run, counts or Counts())


def hurried(made: World) -> Receipt:
    return call(made, FITTING)


def calls_of(run: Callable[[World], object]) -> int:
    made = world()
    run(made)
    return len(made.store.calls)


HURRIED_CALLS = calls_of(hurried)
WHOLE_CALLS = calls_of(World.run)


def test_call_after_call_commits_what_it_read_and_reads_nothing_twice() -> None:
    made = world()
    made.store.hooks.after.append(made.check)
    counts, status = Counts(), "more"
    read: list[int] = []
    while status == "more":
        before = made.store.count("read_source")
        receipt = call(made, FITTING, counts=counts)
        counts, status = receipt.counts, receipt.status
        read.append(made.store.count("read_source") - before)
    assert read == [3, 3, 2]
    assert (status, counts.objects_in, counts.objects_out) == ("done", SOURCES, 3)
    assert counts.quarantined == counts.conflicts == 0
    made.must_be_finished()


def test_what_is_left_goes_on_after_the_last_source_that_was_read() -> None:
    made = world()
    hurried(made)
    (commit,) = CommitLog(made.store, made.settings, PARTITION).every_commit()
    assert [row.source.key[-6:] for row in commit.rows] == ["0.json", "1.json", "2.json"]


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("number", range(1, HURRIED_CALLS + 1))
def test_a_call_may_die_at_any_request(number: int, moment: str) -> None:
    made = world()
    with death(made, number, moment):
        hurried(made)
    made.store.hooks.after.append(made.check)
    call(made, FITTING - 1)
    made.run()
    made.must_be_finished()


@pytest.mark.parametrize("number", range(1, HURRIED_CALLS + 1))
def test_another_run_may_do_everything_at_any_request_of_a_call_that_is_short_of_time(
    number: int,
) -> None:
    made = world()
    made.store.hooks.after.append(made.check)
    made.store.hooks.before.append(at_call(number, made.run))
    hurried(made)
    made.run()
    made.must_be_finished()


@pytest.mark.parametrize("number", range(1, WHOLE_CALLS + 1))
def test_a_run_with_the_same_plan_may_be_short_of_time_at_any_request_of_another(
    number: int,
) -> None:
    made = world()
    made.store.hooks.after.append(made.check)
    made.store.hooks.before.append(at_call(number, lambda: hurried(made)))
    made.run()
    made.run()
    made.must_be_finished()


@pytest.mark.parametrize("reads", [1, FITTING - 1, FITTING])
def test_an_output_whose_upload_was_lost_is_built_again_as_far_as_the_time_allows(
    reads: int,
) -> None:
    made = world()
    committed = HURRIED_CALLS - next(
        at for at, one in enumerate(reversed(hurried_calls())) if one.name == "complete_upload"
    )
    with death(made, committed):
        hurried(made)
    drop_uploads(made)
    made.store.hooks.after.append(made.check)
    call(made, reads, "run-9")
    assert made.store.contents("lake", "compacted/")
    made.run()
    made.must_be_finished()


def test_a_publisher_that_is_late_to_publish_what_was_replaced_meanwhile_lost_a_race() -> None:
    # The same key then has other bytes: the same sources from the first one on, but fewer.
    made = world()
    made.store.hooks.after.append(made.check)
    published = 0

    def replace(one: Call) -> None:
        nonlocal published
        published += one.name == "complete_upload"
        if one.name == "complete_upload" and published == 1:
            drop_uploads(made)
            call(made, FITTING - 1, "run-9")

    made.store.hooks.before.append(replace)
    assert call(made, FITTING).counts.conflicts == 1
    made.run()
    made.must_be_finished()


def hurried_calls() -> list[Call]:
    made = world()
    hurried(made)
    return list(made.store.calls)


def drop_uploads(made: World) -> None:
    """What AbortIncompleteMultipartUpload of a lifecycle rule does."""
    for upload_id, key in made.store.unfinished_uploads("lake").items():
        made.store.abort_upload("lake", key, upload_id)


# Errors of the store.


def refuses_from(made: World, number: int, seconds: float) -> Callable[[Call], None]:
    """From this read on there is no answer, and so much time has passed."""
    seen = 0

    def hook(one: Call) -> None:
        nonlocal seen
        seen += one.name == "read_source"
        if one.name == "read_source" and seen >= number:
            if seen == number:
                made.clock.advance(seconds)
            raise TransientStoreError("SlowDown, for two minutes")

    return hook


@pytest.mark.parametrize(("seconds", "kept"), [(KEPT_SECONDS, 1), (KEPT_SECONDS - 1, 0)])
def test_what_took_five_minutes_to_read_outlives_an_error_of_the_store(
    seconds: float, kept: int
) -> None:
    made = world()
    made.store.hooks.before.append(refuses_from(made, 5, seconds))
    with pytest.raises(TransientStoreError):
        made.run()
    outputs = made.store.contents("lake", "compacted/")
    assert len(outputs) == kept
    assert not made.store.unfinished_uploads("lake")
    made.check()
    made.store.hooks.clear()
    made.run()
    made.must_be_finished()


# Headers.


@pytest.mark.parametrize("quick", [True, False])
def test_what_the_time_does_not_suffice_for_decides_nothing_about_headers(quick: bool) -> None:
    made = World()
    made.put("a.csv", b"id,value\n")
    made.put("b.csv", b"id,value\n")
    for number in range(3):
        made.put(f"c{number}.csv", b"id,value\nrecord-%d,%d\n" % (number, number))
        made.records.add(number)

    def slow(one: Call) -> None:
        if one.name == "read_source" and not quick:
            made.clock.advance(KEPT_SECONDS)

    made.store.hooks.before.append(slow)
    receipt = call(made, 2)
    assert receipt.counts.quarantined == 0
    made.store.hooks.clear()
    assert made.run().counts.quarantined == 0
    made.must_be_finished()


# The time itself.


class Left:
    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def remaining_seconds(self) -> float:
        return self.seconds


@pytest.mark.parametrize(
    ("at_first", "over_at"), [(900.0, RESERVE + CLOSING_SECONDS), (60.0, 20.0), (0.0, 0.0)]
)
def test_reading_ends_in_time_for_what_comes_after_it(at_first: float, over_at: float) -> None:
    left = Left(at_first)
    time = ReadingTime(left, world().clock, RESERVE)
    left.seconds = over_at + 1
    assert not time.over()
    left.seconds = over_at
    assert time.over()


@pytest.mark.parametrize("deadline", [NoDeadline(), Left(inf)])
def test_without_a_deadline_there_is_always_time(deadline: Deadline) -> None:
    assert not ReadingTime(deadline, world().clock, RESERVE).over()
