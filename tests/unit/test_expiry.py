"""What a state needs no more expires; nothing else of it is ever deleted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.cleaning.expiry import Expiry, expire
from compactor.clock import NoDeadline
from compactor.discovery.discover import discover
from compactor.log.log import CommitLog
from compactor.orchestration.discovery_step import begin
from compactor.settings.settings import Settings
from compactor_cli.chosen import Wish, search
from compactor_cli.commands.verify import check
from compactor_cli.restored_files import Targets
from compactor_cli.restoring import restore_all
from tests.support.cleaning import DAY, LINE, left
from tests.support.examples import NOW, PARTITION
from tests.support.examples import settings as settings_of
from tests.support.format_document import told_keys
from tests.support.memory_store import Crashed, ManualClock, MemoryStore
from tests.support.world import World

STATE = "_compactor/compacted/"
DOCUMENT = Path(__file__).parents[2] / "docs" / "format.md"
DISCOVERY = b'{"version": 1, "unpartitioned": {"objects": 0, "bytes": 0, "examples": []}}'


def numbered(name: str, number: int) -> str:
    return name.replace("<number>", f"{number:020d}")


def old_settings(**given: Any) -> Settings:
    return settings_of(**{"clean_up": "delete", **given})


def dropped(
    store: MemoryStore, settings: Settings | None = None, now: float = NOW, run_id: str = "this"
) -> set[str]:
    """Names below the state that an expiry takes away."""
    before = set(store.contents("lake", STATE))
    expiry = expire(settings or old_settings(), store, now, NoDeadline(), run_id=run_id)
    gone = before - set(store.contents("lake", STATE))
    assert expiry == Expiry(len(gone))
    return {key.removeprefix(STATE) for key in gone}


def state_of(names: Mapping[str, float], **bodies: bytes) -> MemoryStore:
    """A state with these objects, by how many days ago they were written."""
    store = MemoryStore(ManualClock(NOW))
    store.seed("lake", f"{STATE}identity.json", b"{}", last_modified=NOW - 999 * DAY)
    for name, days in names.items():
        body = DISCOVERY if name.endswith("/discovery.json") else b"x"
        body = bodies.get(name.rpartition("/")[2].partition(".")[0], body)
        store.seed("lake", STATE + name, body, last_modified=NOW - days * DAY)
    return store


# Every kind of object that docs/format.md tells of, and whether it goes once it is old enough.
KINDS = {
    "identity.json": False,
    "schemes/<number>.json": False,
    "scheme-copies/<number>.json": False,
    "parquet-schemas/<number>.json": False,
    "partitions/<path>commits/<number>.json.gz": False,
    "partitions/<path>commits/<number>.witness.json": False,
    # The newest; of replaced ones see below.
    "partitions/<path>commits/<number>.checkpoint.json.gz": False,
    # One a partition, written over.
    "partitions/<path>at-rest.json": False,
    "partitions/<path>cleaned/<number>.json": False,
    "partitions/<path>rejects/<group id>-<digest>.json": False,
    "reconcile/<stream>.json": False,
    # The last 30, written over.
    "run-history.json": False,
    "table/<number>.json": False,
    "table/<number>.witness.json": False,
    "table/<number>.published.json": False,
    "table/<number>.checkpoint.json": False,
    "table/hint.json": False,
    # Summed up by maintenance itself, and dropped after VACUUM.
    "tables/<table id>/history/<time>-<run id>+<kind>.json": False,
    "tables/<table id>/history/<time>~sum.json": False,
    "tables/<table id>/lease.json": False,
    "tables/<table id>/optimizers.json": False,
    "tables/<table id>/superseded/<run id>.json": False,
    # Small, one a switch; clean-up counts its grace from them.
    "readers/switches/<partition id>/<random>.json": False,
    "readers/table.json": False,
    "csv-dialects/<data set id>/<delimiter>-<columns>.json": False,
    "partitions/<path>commits/<number>.published.json": False,
    "probes/<digest>.json": False,
    "probes/<random>/<rest>": False,
    "runs/<run id>/<rest>": False,
    "runs/<run id>/discovery.json": True,
    "runs/<run id>/settings.json": True,
    "runs/<run id>/items.json": True,
    "runs/<run id>/oversized.json": True,
    "runs/<run id>/receipts/<partition id>.json": True,
    "runs/<run id>/tables/<table id>.outcome.json": False,
    "runs/<run id>/tables-report.json": False,
    "runs/<run id>/tables.json.results/": False,
    "runs/<run id>/tables/<table id>.receipt.json": False,
    "runs/<run id>/clean-up.json": True,
    "runs/<run id>/clean-ups/<partition id>.json": True,
    "runs/<run id>/table.json": True,
    "runs/<run id>/report.json": True,
    "runs/<run id>/report-so-far.json": True,
    "runs/<run id>/spark-result.json": True,
    "runs/<run id>/spark-error.json": True,
    # Of maintenance runs, whose state is another one.
    "runs/<run id>/maintenance-request.json": False,
    "runs/<run id>/tables.json": False,
    "runs/<run id>/tables/<table id>.order.json": False,
    "runs/<run id>/results/<rest>": True,
    "runs/<run id>/discovery/partitions.json": True,
    "runs/<run id>/discovery/pieces/<piece>.json": True,
}


def example(kind: str) -> str:
    """A key of this kind."""
    parts = {"path": "a/b/", "run id": "run-1", "number": f"{3:020d}"}
    return re.sub(r"<([a-z ]+)>", lambda found: parts.get(found[1], found[1].split()[0]), kind)


def test_it_is_decided_of_every_kind_of_object_whether_it_expires() -> None:
    keys = told_keys(DOCUMENT.read_text("utf-8"))
    assert {one.key for one in keys} == set(KINDS)
    assert {one.key for one in keys if one.deleted == "expiry"} == {
        key for key, goes in KINDS.items() if goes
    }


def test_of_an_old_state_only_what_a_run_wrote_for_itself_goes() -> None:
    store = state_of({example(kind): 400 for kind in KINDS})

    assert dropped(store) == {example(kind) for kind, goes in KINDS.items() if goes}


def test_nothing_of_a_run_goes_while_one_of_its_files_is_younger() -> None:
    for kind in (kind for kind, goes in KINDS.items() if goes):
        ages = {example(other): 400.0 for other in KINDS} | {example(kind): 89.9}
        assert dropped(state_of(ages)) == set(), kind


def test_a_run_ends_to_exist_after_ninety_days() -> None:
    names = {"runs/a/discovery.json": 89.0, "runs/b/discovery.json": 91.0}

    assert dropped(state_of(names)) == {"runs/b/discovery.json"}


def test_a_run_that_asks_keeps_its_own_files() -> None:
    assert dropped(state_of({"runs/this/discovery.json": 400})) == set()


def test_what_only_looks_like_a_run_stays() -> None:
    names = {
        # Somebody's own, where the state was put beside it.
        "runs/experiment/results/figures.csv": 400.0,
        "runs/experiment/report.json": 400.0,
        "runs/other/discovery.json": 400.0,
        "runs/ no run/discovery.json": 400.0,
        "runs/discovery.json": 400.0,
        "runs.json": 400.0,
        "old/runs/a/discovery.json": 400.0,
    }
    store = state_of(names, report=b'{"run_id": "another"}')
    store.seed("lake", f"{STATE}runs/other/discovery.json", b"[1]", last_modified=NOW - 400 * DAY)

    assert dropped(store) == set()


def test_a_run_of_a_later_version_stays() -> None:
    store = state_of({})
    later = DISCOVERY.replace(b'"version": 1', b'"version": 2')
    store.seed("lake", f"{STATE}runs/a/discovery.json", later, last_modified=NOW - 400 * DAY)

    assert dropped(store) == set()


def test_of_a_run_whose_discovery_failed_the_report_goes() -> None:
    names = {"runs/a/report.json": 400.0, "runs/a/items.json": 400.0}

    assert dropped(state_of(names, report=b'{"run_id": "a"}')) == set(names)


def test_a_checkpoint_goes_once_a_newer_one_has_been_there_for_the_time() -> None:
    name = "partitions/a/commits/<number>.checkpoint.json.gz"
    ages = {1: 400, 5: 300, 9: 200, 12: 100, 20: 80, 21: 70}
    names = {numbered(name, number): float(days) for number, days in ages.items()}

    # 12 was replaced 80 days ago, and whoever read the log then may still hold its listing.
    assert dropped(state_of(names)) == {numbered(name, number) for number in (1, 5, 9)}


def test_a_checkpoint_that_is_younger_than_the_one_that_replaces_it_stays() -> None:
    name = "partitions/commits/<number>.checkpoint.json.gz"

    assert dropped(state_of({numbered(name, 1): 5.0, numbered(name, 2): 400.0})) == set()


def test_nothing_expires_unless_clean_up_is_wanted() -> None:
    store = state_of({example(kind): 400 for kind in KINDS})

    assert dropped(store, old_settings(clean_up="keep")) == set()
    assert store.calls == []


def test_a_place_without_the_marker_of_a_state_is_left_as_it_is() -> None:
    store = state_of({example(kind): 400 for kind in KINDS})
    store.remove("lake", f"{STATE}identity.json")

    assert dropped(store) == set()


def test_a_clock_that_jumped_drops_nothing() -> None:
    store = state_of({example(kind): 80 for kind in KINDS})

    assert dropped(store, now=NOW + 1_000 * DAY) == set()


def test_a_call_without_time_says_so_and_drops_nothing() -> None:
    class Soon:
        def remaining_seconds(self) -> float:
            return 59.0

    store = state_of({example(kind): 400 for kind in KINDS})
    before = store.contents("lake", STATE)

    assert expire(old_settings(), store, NOW, Soon(), run_id="b") == Expiry(0, "time ran out")
    assert store.contents("lake", STATE) == before


def test_what_the_store_does_not_delete_is_reported_and_ends_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = state_of({"runs/a/discovery.json": 400})
    delete = store.delete_sources

    def changed(sources: Any) -> Any:
        for one in sources:
            store.seed("lake", one.key, b"put anew", last_modified=NOW)
        return delete(sources)

    monkeypatch.setattr(store, "delete_sources", changed)
    expiry = expire(old_settings(), store, NOW, NoDeadline(), run_id="b")

    assert expiry == Expiry(0, f"{STATE}runs/a/discovery.json: PreconditionFailed")
    assert store.contents("lake", f"{STATE}runs/")


def test_a_run_that_is_half_dropped_is_dropped_by_the_next_call() -> None:
    wanted = {example(kind) for kind, goes in KINDS.items() if goes}
    for deletes in range(len(wanted)):
        store = state_of(dict.fromkeys(wanted, 400))
        store.hooks.crash("before", "delete_source", nth=deletes + 1)
        with pytest.raises(Crashed):
            expire(old_settings(), store, NOW, NoDeadline(), run_id="b")
        store.hooks.clear()
        there = {key.removeprefix(STATE) for key in store.contents("lake", f"{STATE}runs/")}
        # What tells of which version the rest is goes last.
        assert "runs/run-1/discovery.json" in there
        assert dropped(store) == there
        assert not store.contents("lake", f"{STATE}runs/")


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
    world = World(clean_up="delete", retention_days=300, second_reading="none")
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


def runs(world: World) -> set[str]:
    keys = world.store.contents("lake", f"{STATE}runs/")
    return {key.removeprefix(f"{STATE}runs/").partition("/")[0] for key in keys}


def test_a_log_whose_checkpoints_expired_is_the_same_to_every_reader(tmp_path: Path) -> None:
    world = compacted_for_long()
    log = CommitLog(world.store, world.settings, PARTITION)
    before, entries = log.load(), [one.commit_id for one in log.every_commit()]
    numbers = checkpoints(world)
    sources = world.store.contents("source")
    destination = world.store.contents("lake", "compacted/")

    expiry = expire(world.settings, world.store, world.clock.now(), NoDeadline(), run_id="now")

    # 150, 120, 90, 60, 30 and 0 days ago: the third replaced two, the fourth is too young for it.
    assert checkpoints(world) == numbers[2:]
    assert runs(world) == {"run-4", "run-5", "run-6"}
    assert not expiry.fault
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
    found = discover(
        world.settings, world.store, world.clock.now(), committed=lambda _: after.committed
    )
    assert found.items
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
    assert list(restore_all(found, Targets(directory), world.store))
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
