"""Checkpoints that were replaced long ago are dropped; nothing depends on them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from compactor.cleaning.clean_up_list import drop_replaced_checkpoints
from compactor.clock import NoDeadline
from compactor.discovery.discover import discover
from compactor.log.log import CommitLog
from compactor.orchestration.discovery_step import begin
from compactor_cli.commands.verify import check
from compactor_cli.restore_files import FileTargets
from compactor_cli.restore_search import Wish, search
from compactor_cli.restore_targets import restore_all
from tests.support.cleaning import DAY, LINE, left
from tests.support.examples import NOW, PARTITION
from tests.support.examples import settings as settings_of
from tests.support.memory_store import ManualClock, MemoryStore
from tests.support.world import World

STATE = "_compactor/compacted/"


def numbered(name: str, number: int) -> str:
    return name.replace("<number>", f"{number:020d}")


REPLACED = {
    numbered("partitions/a/commits/<number>.checkpoint.json.gz", number): 400.0 for number in (1, 2)
}


def dropped(store: MemoryStore, now: float = NOW) -> set[str]:
    """Names below the state that are dropped."""
    before = set(store.contents("lake", STATE))
    count = drop_replaced_checkpoints(settings_of(delete_after="30d"), store, now, NoDeadline())
    gone = before - set(store.contents("lake", STATE))
    assert count == len(gone)
    return {key.removeprefix(STATE) for key in gone}


def state_of(names: Mapping[str, float]) -> MemoryStore:
    """A state with these objects, by how many days ago they were written."""
    store = MemoryStore(ManualClock(NOW))
    store.seed("lake", f"{STATE}identity.json", b"{}", last_modified=NOW - 999 * DAY)
    for name, days in names.items():
        store.seed("lake", STATE + name, b"x", last_modified=NOW - days * DAY)
    return store


def test_a_checkpoint_goes_once_a_newer_one_has_been_there_for_the_time() -> None:
    name = "partitions/a/commits/<number>.checkpoint.json.gz"
    ages = {1: 400, 5: 300, 9: 200, 12: 100, 20: 80, 21: 70}
    names = {numbered(name, number): float(days) for number, days in ages.items()}

    # 12 was replaced 80 days ago, and whoever read the log then may still hold its listing.
    assert dropped(state_of(names)) == {numbered(name, number) for number in (1, 5, 9)}


def test_a_checkpoint_that_is_younger_than_the_one_that_replaces_it_stays() -> None:
    name = "partitions/commits/<number>.checkpoint.json.gz"

    assert dropped(state_of({numbered(name, 1): 5.0, numbered(name, 2): 400.0})) == set()


def test_a_place_without_the_marker_of_a_state_is_left_as_it_is() -> None:
    store = state_of(REPLACED)
    store.remove("lake", f"{STATE}identity.json")

    assert dropped(store) == set()


def test_a_clock_that_jumped_drops_nothing() -> None:
    store = state_of(dict.fromkeys(REPLACED, 80.0))

    assert dropped(store, now=NOW + 1_000 * DAY) == set()


def test_a_call_without_time_drops_nothing() -> None:
    class Soon:
        def remaining_seconds(self) -> float:
            return 59.0

    store = state_of(REPLACED)
    before = store.contents("lake", STATE)

    assert drop_replaced_checkpoints(settings_of(delete_after="30d"), store, NOW, Soon()) == 0
    assert store.contents("lake", STATE) == before


NAMES = st.sampled_from(["", "a/", "commits/", "a/commits/", "cleaned/", "runs/", "x.checkpoint/"])
LOGS = st.dictionaries(
    st.tuples(NAMES, st.integers(1, 6), st.sampled_from([".checkpoint.json.gz", ".json.gz"])),
    st.integers(0, 400),
    max_size=30,
)


@given(LOGS)
def test_whatever_partitions_are_called_each_keeps_its_entries_and_newest_checkpoint(
    logs: dict[tuple[str, int, str], int],
) -> None:
    names = {
        f"partitions/{path}commits/{number:020d}{end}": float(days)
        for (path, number, end), days in logs.items()
    }
    gone = dropped(state_of(names))
    for (path, number, end), age in logs.items():
        if f"partitions/{path}commits/{number:020d}{end}" in gone:
            newer = {n: logs[path, n, end] for p, n, e in logs if (p, e) == (path, end)}
            assert end.startswith(".checkpoint")
            assert age >= 90
            assert any(n > number and days >= 90 for n, days in newer.items())


def compacted_for_long() -> World:
    """Six runs a month apart, each with a commit and a checkpoint."""
    world = World(delete_after="90d")
    for number in range(6):
        world.add(f"{number}-a.json", LINE)
        world.add(f"{number}-b.log", "2026-01-02T03:04:05Z {}")
        world.clock.advance(30 * DAY)
        begin(world.settings, f"run-{world.runs + 1}", world.store, world.clock.now())
        world.run()
    return world


def checkpoints(world: World) -> list[int]:
    keys = world.store.contents("lake", f"{STATE}partitions/")
    return [int(key[-39:-19]) for key in keys if key.endswith(".checkpoint.json.gz")]


def test_a_log_whose_checkpoints_were_dropped_is_the_same_to_every_reader(tmp_path: Path) -> None:
    world = compacted_for_long()
    log = CommitLog(world.store, world.settings, PARTITION)
    before, entries = log.load(), [one.commit_id for one in log.every_commit()]
    numbers = checkpoints(world)
    sources = world.store.contents("source")
    destination = world.store.contents("lake", "compacted/")

    drop_replaced_checkpoints(world.settings, world.store, world.clock.now(), NoDeadline())

    # 150, 120, 90, 60, 30 and 0 days ago: the third replaced two, the fourth is too young for it.
    assert checkpoints(world) == numbers[2:]
    after = log.load()
    assert set(after.committed) == set(before.committed)
    assert (after.last, after.checkpoint, after.outputs) == (
        before.last,
        before.checkpoint,
        before.outputs,
    )
    assert [one.commit_id for one in log.every_commit()] == entries
    log.require_whole(after)
    # Plan and run: nothing is compacted again, and what is new is.
    found = discover(world.settings, world.store, world.clock.now())
    assert found.partitions
    world.must_be_finished()
    assert world.store.contents("lake", "compacted/") == destination
    world.add("new.json", LINE)
    world.clock.advance(DAY)
    assert world.run().counts.objects_in == 1
    world.check()
    # Verify, restore, clean up.
    checked = check(world.settings, world.store, sources=True, deep=True)
    assert (checked.findings, checked.commits) == ([], len(entries) + 1)
    restored(world, sources, tmp_path)
    world.clock.advance(301 * DAY)
    receipt = world.clean_up()
    assert (receipt.status, receipt.unsafe, left(world)) == ("done", [], [])
    world.check()


def restored(world: World, sources: Mapping[str, bytes], directory: Path) -> None:
    found = search(Wish(prefix=PARTITION.prefix), world.settings.state, world.store)
    assert list(restore_all(found, FileTargets(directory), world.store))
    there = {path.name: path.read_bytes() for path in directory.rglob("*.*") if path.is_file()}
    for key, body in sources.items():
        assert there[key.rpartition("/")[2]] == body


def test_a_log_without_any_checkpoint_is_the_same_too() -> None:
    # The entries alone are the log: no checkpoint tells anything that they do not.
    world = compacted_for_long()
    log = CommitLog(world.store, world.settings, PARTITION)
    before = log.load()
    for key in list(world.store.contents("lake", f"{STATE}partitions/")):
        if key.endswith(".checkpoint.json.gz"):
            world.store.remove("lake", key)

    after = log.load()

    assert set(after.committed) == set(before.committed)
    assert (after.last, after.outputs) == (before.last, before.outputs)
    world.must_be_finished()
