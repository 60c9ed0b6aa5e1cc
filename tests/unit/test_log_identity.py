"""A log knows itself: what is gone is never taken for what never was.

Each test is something that once happened: records were doubled or sources deleted, while the run
reported success.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from compactor.clock import NoDeadline
from compactor.discovery.discover import discover
from compactor.discovery.work_list import write_work
from compactor.errors import IntegrityError, InvalidInput
from compactor.log.encoding import decode_commit, encode_commit
from compactor.log.log import CommitLog
from compactor.log.log_reader import all_logs, one_log
from compactor.model import Partition
from compactor.partition.inputs import PartitionRun
from compactor.partition.receipts import Counts, Receipt
from compactor.partition.run import compact_partition
from compactor.settings.settings import Settings
from compactor_cli.commands.plan import forecast, headline_of
from tests.support.cleaning import DAY, LINE, left, old_world, one_key
from tests.support.examples import NOW, PARTITION, settings
from tests.support.memory_store import Crashed
from tests.support.world import World

STATE = "_compactor/compacted/"
MARKER = f"{STATE}identity.json"


def compacted(names: str = "ab", **given: Any) -> World:
    """A world with a commit for each source."""
    world = World(**given)
    world.store.add_bucket("source")
    for name in names:
        world.add(f"{name}.json", LINE)
        world.run()
    return world


def take_away(world: World, *parts: str) -> None:
    """Delete the objects of the state in whose keys one of these stands."""
    for key in world.store.contents("lake", "_compactor/"):
        if any(part in key for part in parts):
            world.store.remove("lake", key)


def discovered(world: World, **given: Any) -> None:
    discover(replace(world.settings, **given), world.store, world.clock.now())


def must_stop(world: World, match: str) -> None:
    """The partition stops, and nothing is doubled, deleted or committed."""
    before = world.store.contents("lake", "compacted/"), world.store.contents("source")
    world.store.hooks.after.append(world.check)
    entries = one_log(world.settings.state, PARTITION.path, world.store).entries
    with pytest.raises(IntegrityError, match=match):
        world.run()
    assert (world.store.contents("lake", "compacted/"), world.store.contents("source")) == before
    assert one_log(world.settings.state, PARTITION.path, world.store).entries == entries
    assert world.store.unfinished_uploads("lake") == {}


# The marker.


def test_the_first_run_leaves_a_marker_that_every_commit_and_output_names() -> None:
    world = compacted("ab")
    marker = json.loads(world.store.contents("lake")[MARKER])
    log = CommitLog(world.store, world.settings, PARTITION)
    commits = [*log.every_commit()]
    assert len(marker["log_id"]) == 32
    assert (marker["destination"], marker["source_root"]) == (
        "s3://lake/compacted/",
        "s3://source/logs/",
    )
    assert marker["segments"] == world.settings.depth
    assert {one.log_id for one in commits} == {marker["log_id"]}
    for commit in commits:
        assert commit.output is not None
        head = world.store.head("lake", commit.output.key)
        assert head is not None
        assert head.metadata == {
            "compactor-log": marker["log_id"],
            "compactor-group": commit.group_id,
        }


def test_a_copied_output_names_its_log_as_well() -> None:
    world = World(small_object_bytes=10)
    world.add("a.json", LINE)
    world.run()
    (key,) = world.store.contents("lake", "compacted/")
    head = world.store.head("lake", key)
    assert head is not None
    assert head.metadata["compactor-log"]


def test_two_destinations_have_different_markers() -> None:
    one, two = compacted("a"), compacted("a")
    assert one.store.contents("lake")[MARKER] != two.store.contents("lake")[MARKER]


def test_a_log_without_its_marker_stops_the_partition() -> None:
    world = compacted()
    take_away(world, "identity.json")
    world.add("c.json", LINE)
    must_stop(world, r"identity\.json is missing.*docs/operations\.md")


def test_a_marker_of_another_log_stops_the_partition() -> None:
    world = compacted()
    world.store.seed("lake", MARKER, compacted("a").store.contents("lake")[MARKER])
    world.add("c.json", LINE)
    must_stop(world, "says that this is log")


def test_a_damaged_marker_stops_the_partition() -> None:
    world = compacted()
    for body in (b"", b"{}", b'{"version": 2}', b'{"version": 1, "log_id": 1}'):
        world.store.seed("lake", MARKER, body)
        world.add("c.json", LINE)
        with pytest.raises(IntegrityError, match=r"identity\.json"):
            world.run()
        with pytest.raises(IntegrityError, match=r"identity\.json"):
            discovered(world)


def test_a_run_that_has_only_to_publish_looks_at_the_marker_first() -> None:
    world = compacted("a")
    world.add("b.json", LINE)
    world.store.hooks.crash("before", "complete_upload")
    with suppress(Crashed):
        world.run()
    world.store.hooks.clear()
    take_away(world, "identity.json")
    must_publish_nothing = world.store.contents("lake", "compacted/")
    with pytest.raises(IntegrityError, match=r"identity\.json is missing"):
        world.run()
    assert world.store.contents("lake", "compacted/") == must_publish_nothing


def test_a_run_with_nothing_to_do_gets_its_checkpoint_and_nothing_else() -> None:
    world = compacted("ab")
    before = world.store.count("get")
    receipt = world.run()
    assert receipt.counts.objects_in == 0
    assert world.store.count("get") - before == 1


def test_the_state_of_another_destination_is_refused() -> None:
    world = compacted()
    given = {"s3_state_uri": f"s3://lake/{STATE}", "s3_destination_uri": "s3://lake/other/"}
    with pytest.raises(InvalidInput, match=r"s3_state_uri.*belongs to s3://lake/compacted/"):
        discovered(world, **given)


# A log that is gone.


def test_a_deleted_state_is_not_taken_for_a_first_run() -> None:
    world = compacted()
    take_away(world, "_compactor/")
    must_stop(world, r"is empty, and s3://lake/compacted/.* exists.*docs/operations\.md")


def test_discovery_refuses_outputs_whose_log_is_gone() -> None:
    world = compacted()
    take_away(world, "_compactor/")
    with pytest.raises(IntegrityError, match="is empty, and s3://lake/compacted/"):
        discovered(world)


def test_a_first_run_that_another_one_overtakes_is_not_refused() -> None:
    world = World()
    world.add("a.json", LINE)

    def other_run(call: Any) -> None:
        if (call.name, call.key) == ("list_objects", "compacted/"):
            world.store.hooks.clear()
            world.run()

    world.store.hooks.before.append(other_run)
    discovered(world)
    assert world.destination()


def test_another_state_for_the_same_destination_is_refused() -> None:
    world = compacted()
    with pytest.raises(IntegrityError, match="another s3_state_uri has it"):
        discovered(world, s3_state_uri="s3://lake/state/")
    world.settings = replace(world.settings, s3_state_uri="s3://lake/state/")
    must_stop(world, "another s3_state_uri has it")


def test_names_that_only_resemble_outputs_stop_nothing() -> None:
    world = World()
    world.add("a.json", LINE)
    here = "compacted/2026/01/02/"
    for name in (
        "compacted-notes.json",
        f"other-{'0' * 32}.json",
        f"compacted-{'0' * 32}/a.json",
        f"x/compacted-{'0' * 32}",
    ):
        world.store.seed("lake", here + name, b"")
    assert world.run().status == "done"


def test_an_empty_log_beside_outputs_stops_its_partition() -> None:
    world = compacted("ab")
    take_away(world, "/commits/")
    must_stop(world, r"is empty, and s3://lake/compacted/2026/01/02/compacted-")


def test_a_checkpoint_that_names_later_entries_than_there_are_stops_everything() -> None:
    world = compacted("ab", delete_after="7d")
    take_away(world, f"{2:020d}.json.gz")
    must_stop(world, "no entry 2, but was 2 entries long")
    world.clock.advance(8 * DAY)
    with pytest.raises(IntegrityError, match="no entry 2"):
        world.clean_up()
    assert left(world) == ["a.json", "b.json"]


def test_a_first_entry_that_is_gone_stops_everything_also_below_a_checkpoint() -> None:
    world = compacted("ab", delete_after="7d")
    take_away(world, f"{1:020d}.json.gz", f"{1:020d}.checkpoint")
    world.add("c.json", LINE)
    must_stop(world, r"no entry 1, but was 2 entries long.*docs/operations\.md")
    world.clock.advance(8 * DAY)
    with pytest.raises(IntegrityError, match="no entry 1"):
        world.clean_up()
    assert left(world) == ["a.json", "b.json", "c.json"]


def test_checkpoints_of_other_entries_and_of_other_partitions_are_damage() -> None:
    world = compacted("ab")
    log = f"{STATE}partitions/{PARTITION.path}commits/"
    first, second = (f"{log}{number:020d}.checkpoint.json.gz" for number in (1, 2))
    body = world.store.contents("lake")[second]
    world.store.seed("lake", second, world.store.contents("lake")[first])
    with pytest.raises(IntegrityError, match="it says that it sums up 1 entries"):
        world.run()
    world.store.seed("lake", second, body)
    other = replace(PARTITION, path="other/")
    for number in (1, 2):
        name = f"commits/{number:020d}.json.gz"
        entry = world.store.contents("lake")[f"{STATE}partitions/{PARTITION.path}{name}"]
        world.store.seed("lake", f"{STATE}partitions/other/{name}", entry)
    with pytest.raises(IntegrityError, match="no output of this partition"):
        CommitLog(world.store, world.settings, other).load()
    world.store.seed("lake", second.replace(PARTITION.path, "other/"), body)
    with pytest.raises(IntegrityError, match="of partition 2026/01/02/"):
        CommitLog(world.store, world.settings, other).load()


def test_an_output_that_another_worker_commits_meanwhile_stops_nothing() -> None:
    world = World()
    world.add("b.json", LINE)
    world.add("c.log", "2026-01-02T03:04:05Z {}")

    def other_run(call: Any) -> None:
        if call.name == "list_level" and call.bucket == "lake":
            world.store.hooks.clear()
            world.settings = replace(world.settings, include=("*.log",))
            world.run()
            world.settings = replace(world.settings, include=())

    world.store.hooks.before.append(other_run)
    assert world.run().status == "done"
    world.must_be_finished()


def test_a_run_with_nothing_to_do_does_not_list_outputs() -> None:
    world = compacted()
    before = world.store.count(bucket="lake", prefix="compacted/")
    world.run()
    assert world.store.count(bucket="lake", prefix="compacted/") == before


def test_all_entries_of_a_log_name_the_same_one() -> None:
    world = compacted("ab")
    key = one_key(2)
    entry = decode_commit(world.store.contents("lake")[key])
    take_away(world, ".checkpoint")
    for log_id in ("", "f" * 32):
        world.store.seed("lake", key, encode_commit(replace(entry, log_id=log_id)))
        with pytest.raises(IntegrityError, match=r"entry 2 of the commit log names"):
            world.run()


# Clean-up touches no other log's sources.


def test_clean_up_keeps_the_sources_of_entries_that_name_another_log() -> None:
    world = old_world()
    world.store.seed("lake", MARKER, compacted("a").store.contents("lake")[MARKER])
    with pytest.raises(IntegrityError, match="says that this is log"):
        world.clean_up()
    assert len(left(world)) == 2


# Source and destination.


def swapped(world: World) -> Settings:
    return replace(
        world.settings,
        s3_source_uri=world.settings.s3_destination_uri,
        s3_destination_uri=world.settings.s3_source_uri,
        s3_state_uri="s3://source/_compactor/logs/",
    )


def test_source_and_destination_swapped_are_refused() -> None:
    world = compacted()
    with pytest.raises(InvalidInput, match=r"s3_source_uri.*holds the outputs of the log"):
        discover(swapped(world), world.store, NOW)


def a_day_later(world: World, partition: Partition, given: Settings) -> Receipt:
    """Of a run over a partition of the lake."""
    world.clock.advance(DAY)
    turned = PartitionRun(partition, given, world.store, world.clock, NoDeadline(), "turned")
    return compact_partition(turned, Counts())


def test_outputs_are_no_sources_wherever_the_state_of_their_log_is() -> None:
    world = World(s3_state_uri="s3://state/x/")
    world.store.add_bucket("state")
    world.add("a.json", LINE)
    world.run()
    outputs = replace(PARTITION, bucket="lake", prefix="compacted/2026/01/02/")
    receipt = a_day_later(world, outputs, swapped(world))
    assert (receipt.counts.objects_in, receipt.counts.objects_out) == (0, 0)
    assert receipt.skipped["own_state_or_output"].objects == 1
    assert not [key for key in world.store.contents("source") if "/commits/" in key]
    assert len(world.store.contents("source", "logs/")) == 1


def test_the_log_of_another_destination_is_no_source_and_so_is_never_cleaned_up() -> None:
    world = World()
    world.add("a.json", LINE)
    world.run()
    state = world.store.contents("lake", "_compactor/")
    whole = settings(s3_source_uri="s3://lake/", s3_destination_uri="s3://source/all/")
    logs = replace(PARTITION, bucket="lake", prefix="_compactor/", path="")
    receipt = a_day_later(world, logs, whole)
    assert (receipt.counts.objects_in, receipt.counts.quarantined) == (0, 0)
    assert receipt.skipped["own_state_or_output"].objects == len(state)
    assert world.store.contents("lake", "_compactor/") == state


def test_sources_that_are_only_called_like_outputs_are_compacted() -> None:
    world = World()
    world.add(f"app-{'ab' * 16}.json", LINE)
    assert world.run().counts.objects_in == 1


# How a source is divided.


def test_a_first_run_that_matches_nothing_leaves_nothing_that_refuses_the_next() -> None:
    world = World()
    world.add("a.json", LINE)
    mistaken = settings(date_format="%Y/%m/%d/%H", window="2026-01-02..2026-01-03")
    found = discover(mistaken, world.store, NOW)
    write_work(found, mistaken, "run-0", world.store)
    assert not found.partitions
    right = settings(date_format="%Y/%m/%d", window="2026-01-02..2026-01-03")
    found = discover(right, world.store, NOW)
    assert len(found.partitions) == 1
    world.settings = right
    assert world.run().counts.objects_in == 1
    assert MARKER in world.store.contents("lake")
    with pytest.raises(InvalidInput, match="date_format"):
        discover(mistaken, world.store, NOW)


def test_a_run_that_commits_nothing_leaves_no_identity() -> None:
    world = World(min_objects=2)
    world.add("a.json", LINE)
    world.run()
    assert not [key for key in world.store.contents("lake") if "/runs/" not in key]


def test_of_two_first_runs_that_contradict_one_has_no_commit() -> None:
    world = World(depth=3)
    world.add("a.json", LINE)
    coarse = replace(PARTITION, prefix="logs/2026/", path="2026/")

    def other_first(call: Any) -> None:
        if call.name == "create" and call.key == MARKER:
            world.store.hooks.clear()
            log = CommitLog(world.store, settings(depth=1), coarse)
            log.claim(log.load())

    world.store.hooks.before.append(other_first)
    with pytest.raises(InvalidInput, match="depth"):
        world.run()
    assert all_logs(world.settings.state, world.store) == []
    assert world.store.unfinished_uploads("lake") == {}
    assert world.destination() == {}


# Levels that name columns.

LEVELS: Mapping[str, tuple[dict[str, Any], str]] = {
    "a date": (
        {"date_format": "dt=%Y-%m-%d", "window": "2026-01-02..2026-01-03"},
        "logs/dt=2026-01-02/region=eu/a.json",
    ),
    "no depth": ({}, "logs/dt=2026-01-02/a.json"),
    "a depth": ({"depth": 1}, "logs/dt=2026-01-02/h=1/region=eu/a.json"),
}


@pytest.mark.parametrize(("given", "key"), LEVELS.values(), ids=LEVELS)
def test_sources_whose_outputs_would_lose_a_column_are_left_alone_and_the_depth_is_named(
    given: dict[str, Any], key: str
) -> None:
    world = World()
    world.store.seed("source", key, b'{"id": 1}\n')
    found = discover(settings(**given), world.store, NOW)
    planned = forecast(found.partitions, settings(**given), world.store)
    assert [one.plan.groups for one in planned] == [()]
    assert "depth" in headline_of(settings(**given), found, planned)


@pytest.mark.parametrize("given", [{}, {"exclude": ["*"]}])
def test_what_no_run_takes_is_no_reason_to_refuse(given: dict[str, Any]) -> None:
    world = World()
    name = "a.json" if given else "_a.json"
    world.store.seed("source", f"logs/d/region=eu/{name}", b'{"id": 1}\n')
    discover(settings(depth=1, **given), world.store, NOW)


def test_a_few_keys_in_such_levels_are_left_alone_and_stop_nothing() -> None:
    world = World()
    world.add("a.json", LINE)
    world.put("region=eu/b.json", b'{"id": 1}\n')
    assert discover(settings(depth=3), world.store, NOW).partitions
    receipt = world.run()
    assert receipt.counts.objects_in == 1
    assert receipt.skipped["in_a_named_level_below_its_partition"].objects == 1


# Any one object.


def after_two_runs() -> World:
    return compacted("ab", delete_after="7d")


def of_state(world: World) -> list[str]:
    return [key for key in world.store.contents("lake", "_compactor/") if "/runs/" not in key]


def go_on(world: World) -> None:
    """Whatever comes next: more sources, runs and clean-ups; nothing is doubled or lost."""
    world.add("c.json", LINE)
    for step in (world.run, world.clean_up, world.run):
        with suppress(IntegrityError):
            step()
        world.check()
        world.clock.advance(8 * DAY)


STATE_KEYS = of_state(after_two_runs())


@pytest.mark.parametrize("key", STATE_KEYS)
def test_any_object_of_the_state_may_be_deleted(key: str) -> None:
    world = after_two_runs()
    world.store.remove("lake", key)
    world.clock.advance(8 * DAY)
    world.store.hooks.after.append(world.check)
    go_on(world)


@pytest.mark.parametrize("key", STATE_KEYS)
def test_any_two_objects_of_the_state_may_be_swapped(key: str) -> None:
    for other in STATE_KEYS:
        world = after_two_runs()
        bodies = world.store.contents("lake")
        world.store.seed("lake", key, bodies[other])
        world.store.seed("lake", other, bodies[key])
        world.clock.advance(8 * DAY)
        go_on(world)
