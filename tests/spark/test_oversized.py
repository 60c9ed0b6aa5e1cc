"""The driver's part in every order of events, on the strict store: no Spark is needed for that."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from compactor.errors import InvalidInput, TransientStoreError
from compactor.limits import WorkerLimits
from compactor.log.encoding import decode_commit, encode_commit
from compactor.log.log import CommitLog
from compactor.model import QuarantineReason
from compactor.partition.receipts import Receipt
from compactor_spark import oversized
from compactor_spark.oversized import Budget, OversizedPartition
from tests.spark.driver_world import DriverWorld, answer_to
from tests.support.examples import PARTITION, columns
from tests.support.memory_store import Call, Crashed, MemoryStore
from tests.support.world import LOG_LINE, World

PAGES = MemoryStore.__init__.__kwdefaults__ or {}


def driver_world(seed: int = 0, **given: object) -> DriverWorld:
    made = DriverWorld(seed, **given)
    made.add_variety()
    return made


def calls_of_a_run() -> int:
    made = driver_world()
    made.run()
    return len(made.store.calls)


CALLS = calls_of_a_run()


def at_call(number: int, action: Callable[[], object]) -> Callable[[Call], None]:
    """A hook that acts once, at the given request."""
    seen = 0

    def hook(call: Call) -> None:
        nonlocal seen
        seen += 1
        if seen == number:
            action()

    return hook


def die_at(made: DriverWorld, number: int) -> None:
    """A run whose driver and tasks all die at this request."""
    dead = False

    def die() -> None:
        nonlocal dead
        dead = True

    def stay_dead(call: Call) -> None:
        if dead:
            raise Crashed(f"dead at {call}")

    made.store.hooks.before += [at_call(number, die), stay_dead]
    with pytest.raises(Crashed):
        made.run()
    made.store.hooks.clear()


def told(world: World) -> list[dict[str, Any]]:
    """What the commit log says, but for the order of commits, times, ids and uploads."""
    log = CommitLog(world.store, world.settings, PARTITION)
    commits = [
        replace(
            commit,
            sequence=0,
            commit_id="",
            log_id="",
            created_at=0.0,
            output=commit.output and replace(commit.output, upload_id=""),
        )
        for commit in log.every_commit()
    ]
    return sorted(map(vars_of, commits), key=str)


def vars_of(commit: Any) -> dict[str, Any]:
    return {name: getattr(commit, name) for name in commit.__slots__}


def counted(receipt: Receipt) -> tuple[object, ...]:
    """A receipt without its time and requests, which differ between engines."""
    counts = replace(receipt.counts, seconds=0.0, requests={})
    skipped = {reason: (one.objects, one.bytes) for reason, one in receipt.skipped.items()}
    return receipt.path, receipt.status, counts, skipped, receipt.error


def add_many(world: World, sources: int) -> None:
    """Sources of two formats by key, many of which are something else inside."""
    for number in range(sources):
        if number % 5 == 3:
            world.put(f"{number:03}.json", LOG_LINE.format(f"record-{9_000 + number}").encode())
            world.records.add(9_000 + number)
        elif number % 7 == 6:
            world.add(f"{number:03}.csv", '{{"id": "{}"}}', 2)
        else:
            world.add(f"{number:03}.json", '{{"id": "{}"}}', number % 4)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("window", [3, 7, 50_000])
def test_driver_and_lambda_write_the_same_bytes_keys_and_commits(seed, window, monkeypatch):
    limits = WorkerLimits(window_objects=window)
    monkeypatch.setattr(MemoryStore.__init__, "__kwdefaults__", {**PAGES, "page_size": 5})
    alone = World(limits=limits)
    monkeypatch.setattr(MemoryStore.__init__, "__kwdefaults__", {**PAGES, "page_size": 4})
    driven = DriverWorld(seed, limits=limits)
    driven.round_sources = 11
    driven.twice = seed % 2 == 0
    for world in (alone, driven):
        world.add_variety()
        add_many(world, 25)
    one, other = alone.run(), driven.run()
    assert driven.store.contents("lake", "compacted/") == alone.store.contents("lake", "compacted/")
    assert told(driven) == told(alone)
    assert counted(other) == counted(one)
    assert other.counts.objects_out > 5
    driven.must_be_finished()


def test_the_driver_holds_no_listing_while_tasks_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemoryStore.__init__, "__kwdefaults__", {**PAGES, "page_size": 4})
    world = DriverWorld(limits=WorkerLimits(window_objects=3))
    add_many(world, 25)
    listings: list[Any] = []
    real = world.store.list_objects

    def list_objects(*given: Any, **named: Any) -> Any:
        pages = real(*given, **named)
        listings.extend([pages] if given[0] == PARTITION.bucket else [])
        return pages

    monkeypatch.setattr(world.store, "list_objects", list_objects)
    partition = OversizedPartition(world.partition_run("run-1"))
    assert partition.plan(Budget(4))
    assert partition.has_more
    assert {inspect.getgeneratorstate(one) for one in listings} == {inspect.GEN_CLOSED}


@pytest.mark.parametrize("number", range(1, CALLS + 1))
def test_a_driver_that_dies_at_any_request_is_made_good_by_the_next(number):
    made = driver_world(seed=number)
    die_at(made, number)
    made.check()
    made.store.hooks.after.append(made.check)
    made.run()
    made.must_be_finished()
    assert made.store.unfinished_uploads("lake") == {}


@pytest.mark.parametrize("number", range(1, CALLS + 1))
def test_a_lost_answer_to_any_request_of_the_driver_or_a_task_is_made_good(number):
    made = driver_world(seed=number)
    made.store.hooks.after.append(made.check)

    def lose() -> None:
        raise TransientStoreError("the answer was lost")

    made.store.hooks.after.append(at_call(number, lose))
    try:
        made.run()
    except TransientStoreError:
        made.check()
    made.run()
    made.must_be_finished()


@pytest.mark.parametrize("number", range(1, CALLS + 1, 2))
def test_another_run_may_do_everything_between_two_requests(number):
    made = driver_world(seed=number)
    made.store.hooks.after.append(made.check)

    def intrude() -> None:
        made.add("aa.json", LOG_LINE)
        World.run(made)

    made.store.hooks.before.append(at_call(number, intrude))
    made.run()
    made.run()
    made.must_be_finished()
    assert made.store.unfinished_uploads("lake") == {}


def test_uploads_of_tasks_that_ran_twice_are_aborted_at_the_end():
    made = driver_world()
    made.twice = True
    receipt = made.run()
    assert receipt.status == "done"
    assert receipt.counts.conflicts == 0
    assert made.store.unfinished_uploads("lake") == {}


def test_uploads_for_keys_that_no_reader_sees_yet_are_left_alone():
    made = driver_world()
    prefix = "compacted/2026/01/02/compacted-"
    other = made.store.create_upload("lake", f"{prefix}of-another-worker.json")
    made.run()
    assert set(made.store.unfinished_uploads("lake")) == {other}


def test_a_group_that_fails_for_good_stops_no_other_and_fails_the_partition():
    made = driver_world()

    def deny(call: Call) -> None:
        if call.name == "read_source" and call.key.endswith("/d.csv"):
            raise InvalidInput("permission", call.key, "a role that allows this request")

    made.store.hooks.before.append(deny)
    receipt = made.run()
    assert (receipt.status, receipt.error) == ("failed", "InvalidInput")
    assert "d.csv" in receipt.cause
    assert receipt.counts.objects_in == 5, "the three of the same kind are left"
    made.check()
    made.store.hooks.before.clear()
    assert made.run().counts.objects_in == 3
    made.must_be_finished()


def test_a_store_that_does_not_answer_is_asked_in_three_rounds():
    made = driver_world()
    reads = 0

    def silent(call: Call) -> None:
        nonlocal reads
        if call.name == "read_source" and call.key.endswith("/a.json"):
            reads += 1
            raise TransientStoreError("no answer")

    made.store.hooks.before.append(silent)
    receipt = made.run()
    assert (receipt.status, receipt.error, reads) == (
        "failed",
        "TransientStoreError",
        oversized.MAX_TRIES,
    )
    made.store.hooks.before.clear()
    made.run()
    made.must_be_finished()


def test_a_source_that_keeps_changing_ends_the_partition_after_many_rounds():
    made = DriverWorld(formats=columns(header=False))
    made.add("a.json", LOG_LINE)
    made.add("b.csv", "10.0.0.1,{}")
    versions = iter(range(10_000, 20_000))

    def change(call: Call) -> None:
        if call.name == "read_source" and call.key.endswith("/a.json"):
            made.put("a.json", b"2026-01-02T03:04:05Z record-%d" % next(versions))

    made.store.hooks.before.append(change)
    receipt = made.run()
    assert (receipt.status, receipt.error) == ("failed", "TransientStoreError")
    assert "planned 20 times" in receipt.cause
    assert receipt.counts.objects_in == 1


def test_what_was_stored_for_a_partition_that_has_ended_is_dropped():
    made = driver_world()
    partition = OversizedPartition(made.partition_run("run-1"))
    first, *others = partition.plan(Budget(1_000))
    answers = [answer_to(one) for one in (first, *others)]
    # Somebody took away the second entry of the log.
    one = replace(decode_commit(answers[0].draft), output=None, rows=(), quarantined=())
    for sequence in (1, 3):
        key = f"_compactor/compacted/partitions/{PARTITION.path}commits/{sequence:020d}.json.gz"
        made.store.put("lake", key, encode_commit(replace(one, sequence=sequence)))
    for planned, answer in zip((first, *others), answers, strict=True):
        partition.take(planned, answer)
    receipt = partition.finish()
    assert (receipt.status, receipt.error) == ("failed", "IntegrityError")
    assert made.store.contents("lake", "compacted/") == {}
    assert made.store.unfinished_uploads("lake") == {}
    commits = made.store.count("create", prefix="_compactor/compacted/partitions/")
    assert commits == 1, "the commit that found the damage"


# Sources that may not be read, and sources that came again.


def many(sources: int) -> DriverWorld:
    made = DriverWorld()
    for number in range(sources):
        made.add(f"{number:03}.json", '{{"id": "{}"}}')
    return made


def deny(made: DriverWorld, *numbers: int) -> None:
    for number in numbers:
        key = f"{PARTITION.prefix}{number:03}.json"
        made.store.unreadable["source", key] = QuarantineReason.ACCESS_DENIED


def test_a_denied_source_stops_no_task_and_is_tried_again():
    made = many(101)
    deny(made, *range(100))
    first, idle = made.run(), made.run()
    assert [(one.status, one.counts.quarantined) for one in (first, idle)] == [("done", 100)] * 2
    assert (first.counts.objects_in, idle.counts.objects_in) == (1, 0)
    made.store.unreadable.clear()
    made.run()
    made.must_be_finished()


def test_a_denied_prefix_ends_its_partition_with_one_line():
    made = many(50)
    deny(made, *range(50))
    receipt = made.run()
    assert (receipt.status, receipt.error) == ("failed", "InvalidInput")
    assert "permission" in receipt.cause
    assert "\n" not in receipt.cause
