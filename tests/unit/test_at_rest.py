"""Partitions at rest: what brings one back, and that nothing is ever left to do in one."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any
from unittest.mock import patch

import pytest

from compactor import layout
from compactor.discovery.discover import Discovery, discover
from compactor.discovery.work_items import WorkItem
from compactor.errors import TransientStoreError
from compactor.formats import Declaration
from compactor.limits import WorkerLimits
from compactor.log import resting as at_rest
from compactor.log.entries import Commit
from compactor.log.log import CommitLog
from compactor.log.resting import RestRecord, read_rest
from compactor.model import PASSING_REASONS, QuarantineReason, Skipped
from compactor.orchestration.discovery_step import committed_in
from compactor_cli.commands.plan import forecast
from tests.support.examples import NOW, PARTITION, columns, settings
from tests.support.memory_store import Call
from tests.support.world import LOG_LINE, World

COMMITS = f"_compactor/compacted/partitions/{PARTITION.path}commits/"
RECORD = f"_compactor/compacted/partitions/{PARTITION.path}at-rest.json"
ITEM = WorkItem(PARTITION.path, PARTITION.bucket, PARTITION.prefix, 1, 1)
DAY = 86_400.0


def world(**given: Any) -> World:
    made = World(depth=3, **given)
    made.add("a.json", '{{"id": "{}"}}')
    made.add("b.json", '{{"id": "{}"}}')
    made.add("c.json", '{{"id": "{}"}}')
    return made


def compacted(**given: Any) -> World:
    made = world(**given)
    assert made.run().counts.objects_in == 3
    return made


def found(here: World, now: float | None = None, **given: Any) -> Discovery:
    wanted = replace(here.settings, **given)
    at = here.clock.now() if now is None else now
    return discover(wanted, here.store, at, committed=committed_in(wanted, here.store))


def rests(here: World, now: float | None = None, **given: Any) -> bool:
    """The partition is at rest; else it is an item."""
    discovery = found(here, now, **given)
    assert len(discovery.items) + discovery.resting.partitions == 1
    return not discovery.items


def source_of(here: World, name: str) -> Any:
    pages = here.store.list_objects("source", PARTITION.prefix + name)
    return next(one for page in pages for one in page)


def seed(here: World, name: str, body: bytes, **given: Any) -> None:
    here.store.seed("source", PARTITION.prefix + name, body, **given)


def again(here: World, name: str, **given: Any) -> None:
    """The same bytes once more, at the time they had unless another is given."""
    body = here.store.contents("source")[PARTITION.prefix + name]
    seed(here, name, body, **{"last_modified": NOW - DAY, **given})


def test_a_partition_that_was_just_compacted_is_at_rest_and_counted() -> None:
    here = compacted()
    discovery = found(here)
    size = sum(map(len, here.store.contents("source").values()))
    assert not discovery.items
    assert (discovery.resting.partitions, discovery.resting.objects) == (1, 3)
    assert discovery.resting.bytes == size
    assert discovery.resting.skipped == {"already_committed": Skipped(3, size)}


def test_what_is_left_alone_in_it_is_reported_by_reason() -> None:
    here = world(exclude=["*.tmp"])
    seed(here, "d.json", b"", last_modified=NOW - DAY)
    seed(here, "e.tmp", b"half", last_modified=NOW - DAY)
    seed(here, "f.txt", b"no format at all", last_modified=NOW - DAY)
    here.run()
    skipped = found(here).resting.skipped
    # The empty one is compacted with the others.
    assert {reason: one.objects for reason, one in skipped.items()} == {
        "already_committed": 4,
        "excluded": 1,
        "quarantined": 1,
    }


def test_it_costs_a_get_the_lists_of_the_source_and_one_of_the_log() -> None:
    here = compacted()
    before = here.store.count("list_objects", bucket="lake", prefix=COMMITS)
    gets = here.store.count("get", bucket="lake", prefix=COMMITS)
    assert rests(here)
    assert here.store.count("list_objects", bucket="lake", prefix=COMMITS) == before + 1
    assert here.store.count("get", bucket="lake", prefix=COMMITS) == gets
    assert here.store.count("get", bucket="lake", prefix=RECORD) == 1


def test_a_first_run_asks_for_no_record() -> None:
    here = world()
    assert not rests(here)
    assert here.store.count("get", bucket="lake", prefix=RECORD) == 0


def other_size(here: World) -> None:
    seed(here, "a.json", b'{"id": "other"}\n', last_modified=NOW - DAY)


def an_old_version_comes_back(here: World) -> None:
    """As a delete of the newer version by its id: count, size and newest time stay."""
    body = here.store.contents("source")[PARTITION.prefix + "a.json"]
    seed(here, "a.json", body[::-1], last_modified=NOW - 2 * DAY)


def renamed(here: World) -> None:
    here.store.remove("source", PARTITION.prefix + "a.json")
    body = here.store.contents("source")[PARTITION.prefix + "b.json"]
    seed(here, "z.json", body, last_modified=NOW - DAY)


def another_run_commits(here: World) -> None:
    log = CommitLog(here.store, here.settings, PARTITION)
    state = log.load()
    log.append(state, Commit.of_returned((), "other", NOW, "source"))


def seed_state(here: World, name: str, body: bytes = b"") -> None:
    here.store.seed("lake", COMMITS + name, body)


def lose(here: World, name: str) -> None:
    here.store.remove("lake", COMMITS + name)


ENTRY, WITNESS, CHECKPOINT = (
    f"{1:020d}.{end}" for end in ("json.gz", "witness.json", "checkpoint.json.gz")
)

CHANGES: dict[str, Callable[[World], object]] = {
    "a new object": lambda here: here.add("d.json", '{{"id": "{}"}}'),
    "a new object before all others": lambda here: here.add("0.json", '{{"id": "{}"}}'),
    "other content of the same size": lambda here: here.put("a.json", b"x" * 48),
    "other content of another size": other_size,
    "an older version": an_old_version_comes_back,
    "another ETag alone": partial(again, name="a.json", etag=f"{1:032x}-1"),
    "the same content, put again": partial(again, name="a.json", last_modified=NOW),
    "the same content, with an older time": partial(
        again, name="a.json", last_modified=NOW - 3 * DAY
    ),
    "another storage class": partial(again, name="a.json", storage_class="GLACIER"),
    "a restored copy": partial(again, name="a.json", restored_until=NOW + DAY),
    "an object that went": lambda here: here.store.remove("source", PARTITION.prefix + "a.json"),
    "another name": renamed,
    "an entry of another run": another_run_commits,
    "an entry that nobody wrote a witness for": partial(seed_state, name=f"{2:020d}.json.gz"),
    "a witness of an entry that is gone": partial(seed_state, name=f"{2:020d}.witness.json"),
    "an entry that is gone": partial(lose, name=ENTRY),
    "a witness that is gone": partial(lose, name=WITNESS),
    "a checkpoint that is gone": partial(lose, name=CHECKPOINT),
    "a damaged entry": partial(seed_state, name=ENTRY, body=b"?"),
    "a damaged checkpoint": partial(seed_state, name=CHECKPOINT, body=b"?"),
    "no record": lambda here: here.store.remove("lake", RECORD),
    "a record that is damaged": lambda here: here.store.seed("lake", RECORD, b"{"),
    "a record that is none": lambda here: here.store.seed("lake", RECORD, b"[1]"),
    "a record of a later version": lambda here: changed_record(here, version=2),
    "a record of other rules": lambda here: changed_record(here, by="0" * 32),
}


def changed_record(here: World, **given: Any) -> None:
    document = json.loads(here.store.contents("lake")[RECORD])
    here.store.seed("lake", RECORD, json.dumps(document | given).encode())


@pytest.mark.parametrize("change", CHANGES)
def test_whatever_changes_brings_it_back(change: str) -> None:
    here = compacted()
    assert rests(here)
    CHANGES[change](here)
    assert not rests(here)


@pytest.mark.parametrize(
    "given",
    [
        {"exclude": ("b.*",)},
        {"retry_quarantined": True},
        {"min_objects": 2},
        {"settle_seconds": 0},
        {"formats": (Declaration("*.x", "text"),)},
        {"compression": "gzip"},
        {"limits": WorkerLimits(window_objects=2)},
    ],
)
def test_other_settings_bring_it_back(given: dict[str, Any]) -> None:
    here = compacted()
    assert rests(here)
    assert not rests(here, **given)


def test_other_rules_bring_it_back(monkeypatch: pytest.MonkeyPatch) -> None:
    here = compacted()
    with monkeypatch.context() as patched:
        patched.setattr(at_rest, "PLAN_RULES", at_rest.PLAN_RULES + 1)
        assert not rests(here)
    assert rests(here)


def test_another_window_of_dates_or_spark_beside_it_does_not() -> None:
    asked = {name: settings(date_format="%Y/%m/%d", **given) for name, given in WINDOWS.items()}
    assert len({at_rest.looked_by(one) for one in asked.values()}) == 1


WINDOWS: dict[str, dict[str, Any]] = {
    "the last days": {"duration": 3},
    "more of them": {"duration": 30},
    "some days": {"start": "2026-01-01", "end": "2026-02-01"},
    "with Spark beside it": {"duration": 3, "spark_engine": "j-ABC"},
    "by workers alone": {"duration": 3, "engine": "worker"},
}


def test_a_record_counts_for_no_time_before_it_was_written() -> None:
    here = compacted()
    assert not rests(here, NOW - 1)
    assert rests(here, NOW)


def test_an_object_that_was_too_young_is_looked_at_when_it_has_settled() -> None:
    here = world(settle_seconds=900, open_partition_seconds=0)
    seed(here, "d.json", b'{"id": 1}\n', last_modified=NOW - 300)
    here.run()
    assert found(here).resting.skipped["too_young"].objects == 1
    assert rests(here, NOW + 599)
    assert not rests(here, NOW + 600)


def test_an_open_partition_is_looked_at_when_it_is_closed() -> None:
    here = World(depth=3, open_partition_seconds=7_200)
    here.add("a.json", '{{"id": "{}"}}')
    here.add("b.json", '{{"id": "{}"}}')
    seed(here, "c.json", b'{"id": 1}\n', last_modified=NOW - 3_600)
    assert here.run().counts.objects_in == 0
    # Nothing was ever committed, so that nobody asks for a record.
    assert not rests(here)
    here.store.seed("lake", "_compactor/compacted/identity.json", identity_of(here))
    here.run()
    assert rests(here, NOW + 3_599)
    assert not rests(here, NOW + 3_600)


def identity_of(here: World) -> bytes:
    other = compacted()
    assert other.settings.s3_destination_uri == here.settings.s3_destination_uri
    return other.store.contents("lake")["_compactor/compacted/identity.json"]


def test_too_few_objects_are_at_rest_until_others_come() -> None:
    here = compacted(min_objects=3)
    here.add("d.json", '{{"id": "{}"}}')
    assert here.run().counts.objects_in == 0
    assert found(here).resting.skipped["too_few_objects"].objects == 1
    here.add("e.json", '{{"id": "{}"}}')
    assert not rests(here)


@pytest.mark.parametrize("reason", sorted(PASSING_REASONS))
def test_sources_that_every_run_tries_again_are_never_at_rest(reason: QuarantineReason) -> None:
    here = world()
    here.store.unreadable["source", PARTITION.prefix + "b.json"] = reason
    here.run()
    assert not rests(here)
    here.run()
    assert not rests(here)


def test_nor_are_archived_ones_with_a_restored_copy() -> None:
    here = compacted()
    seed(here, "d.json", b"x\n", last_modified=NOW - DAY, storage_class="GLACIER")
    here.run()
    assert found(here).resting.skipped["archived_storage_class"].objects == 1
    seed(
        here,
        "d.json",
        b"x\n",
        last_modified=NOW - DAY,
        storage_class="GLACIER",
        restored_until=NOW - 1,
    )
    here.run()
    assert not rests(here)


def test_nor_is_a_partition_with_a_commit_that_is_not_published() -> None:
    here = world()

    def die(call: Call) -> None:
        if call.name == "complete_upload":
            raise TransientStoreError("gone")

    here.store.hooks.before.append(die)
    with pytest.raises(TransientStoreError):
        here.run()
    here.store.hooks.before.clear()
    assert not rests(here)
    here.run()
    assert rests(here)


def test_what_was_put_again_since_its_commit_is_looked_at_twice() -> None:
    here = compacted()
    here.clock.advance(100)
    again(here, "a.json", last_modified=here.clock.now())
    here.clock.advance(100)
    assert not rests(here)
    here.run()
    # The note about it is in the log now; the next worker sees that nothing more is to be done.
    assert not rests(here)
    here.run()
    assert rests(here)


def test_the_run_that_left_the_record_still_counts_the_partition_as_its_own() -> None:
    here = compacted()
    record = read_rest(here.settings, PARTITION, here.store)
    assert record is not None
    for run_id, expected in (("run-1", None), ("run-2", record)):
        asked = at_rest.Rests.of(here.settings, here.store, NOW, run_id)
        assert asked.record(PARTITION) == expected


def test_the_record_of_a_late_worker_is_true_of_what_it_saw_and_of_nothing_else() -> None:
    here = compacted()
    late = here.store.contents("lake")[RECORD]
    here.add("d.json", '{{"id": "{}"}}')
    here.run()
    assert rests(here)
    here.store.seed("lake", RECORD, late)
    assert not rests(here)


def test_old_checkpoints_may_expire() -> None:
    here = compacted()
    here.add("d.json", '{{"id": "{}"}}')
    here.add("e.json", '{{"id": "{}"}}')
    here.run()
    assert rests(here)
    lose(here, CHECKPOINT)
    assert rests(here)


def test_a_store_that_does_not_answer_for_the_record_or_the_log_makes_it_an_item() -> None:
    for place in (RECORD, COMMITS):
        here = compacted()

        def fail(call: Call, place: str = place) -> None:
            if call.key.startswith(place):
                raise TransientStoreError("busy")

        here.store.hooks.before.append(fail)
        assert not rests(here)


def test_windows_of_few_objects_add_up_to_the_same() -> None:
    limits = WorkerLimits(window_objects=2, group_sources=2)
    here = World(depth=3, limits=limits)
    for number in range(7):
        here.add(f"{number}.log", LOG_LINE)
    assert here.run().counts.objects_in == 7
    discovery = found(here)
    assert (discovery.resting.objects, discovery.resting.skipped["already_committed"].objects) == (
        7,
        7,
    )


def put_one(here: World, chance: random.Random) -> None:
    name = f"{chance.randrange(12):02}.{chance.choice(['json', 'log.gz', 'tmp', 'csv'])}"
    if name.endswith("json"):
        here.add(name, '{{"id": "{}"}}', chance.randrange(1, 4))
    elif name.endswith("csv"):
        here.put(name, b"id,n\nx,1\n")
    else:
        here.add(name, LOG_LINE, packed=name.endswith("gz"))
    arrived = NOW - chance.choice([0.0, 100.0, 1_000.0, DAY])
    again(here, name, last_modified=arrived)


def happens(here: World, chance: random.Random) -> None:
    names = sorted(key.removeprefix(PARTITION.prefix) for key in here.store.contents("source"))
    match chance.randrange(9):
        case 0 if names:
            here.store.remove("source", PARTITION.prefix + chance.choice(names))
        case 1 if names:
            again(here, chance.choice(names), last_modified=here.clock.now())
        case 2 if names:
            again(here, chance.choice(names), etag=f"{chance.randrange(3):032x}-1")
        case 3:
            here.clock.advance(chance.choice([10.0, 500.0, 4_000.0]))
        case 4 | 5:
            put_one(here, chance)
        case _:
            here.run()


@pytest.mark.parametrize("block", range(12))
def test_where_one_is_at_rest_a_worker_finds_nothing_and_plan_says_so(block: int) -> None:
    assert (
        sum(times_at_rest(random.Random(number)) for number in range(5 * block, 5 * block + 5)) > 5
    )


def times_at_rest(chance: random.Random) -> int:
    limits = WorkerLimits(window_objects=chance.choice([2, 5, 1000]), group_sources=1000)
    given = {
        "min_objects": chance.choice([1, 2, 4]),
        "settle_seconds": chance.choice([0, 900]),
        "open_partition_seconds": chance.choice([0, 3_600]),
        "exclude": chance.choice([[], ["*.tmp"]]),
        # Sources that wait for more of their data set would let nothing rest.
        "formats": columns(),
    }
    here = World(depth=3, limits=limits, **given)
    put_one(here, chance)
    times = 0
    for _ in range(25):
        happens(here, chance)
        discovery = found(here)
        if discovery.resting.partitions:
            times += 1
            must_be_at_rest(here, discovery)
    return times


def must_be_at_rest(here: World, discovery: Discovery) -> None:
    with patch("time.time", here.clock.now):
        (planned,) = forecast([ITEM], here.settings, here.store)
    assert not planned.plan.groups
    assert {reason.value: one.objects for reason, one in planned.plan.skipped.items()} == {
        reason: one.objects for reason, one in discovery.resting.skipped.items()
    }
    before = here.store.contents("lake")
    receipt = here.run()
    assert receipt.counts.objects_in == receipt.counts.repaired == 0
    assert without_runs(here.store.contents("lake")) == without_runs(before)


def without_runs(contents: dict[str, bytes]) -> dict[str, bytes]:
    return {key: one for key, one in contents.items() if "/runs/" not in key and key != RECORD}


def test_the_record_lies_beside_the_log_and_says_what_was_seen() -> None:
    here = compacted()
    assert layout.rest_key(here.settings, PARTITION) == ("lake", RECORD)
    record = read_rest(here.settings, PARTITION, here.store)
    assert isinstance(record, RestRecord)
    assert (record.at, record.until, record.sources.objects) == (NOW, None, 3)
