"""A maintenance run killed after each of its writes, and begun again: nothing lost, nothing twice.

Between two writes a kill is as good as any other: reads change nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyiceberg")
pytest.importorskip("deltalake")

from compactor_tables.lease import LEASE_SECONDS
from compactor_tables.maintenance_receipts import DONE
from compactor_tables.maintenance_report import TablesReport, read_report
from tests.support.killed_tables import (
    BUCKET,
    DAY,
    DAYS,
    FILES,
    PREFIX,
    STATE,
    TABLE,
    Interrupted,
    World,
)
from tests.support.memory_hooks import Crashed

_LAST = 200


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


def report_of(world: World, run_id: str) -> TablesReport:
    found = read_report(STATE, run_id, world.store)
    assert found is not None
    return found


def check_table(world: World) -> None:
    """Every row once, and each partition one file."""
    assert world.table.rows() == world.rows
    assert len(world.table.files()) == len(DAYS)
    days = Counter(one["partitionValues"]["day"] for one in world.table.files().values())
    assert days == Counter(DAYS)


def check_lease(world: World) -> None:
    """Nobody has the table."""
    lease = world.leases.look(TABLE)
    assert lease is not None
    assert lease.run_id == ""


def recorded(world: World) -> dict[str, int]:
    """Files that were replaced, by run, as the receipts of both runs have them."""
    receipts = [one for one in map(world.receipt, ("one", "two")) if one is not None]
    files = {one.run_id: sum(each.files for each in one.of(DONE)) for one in receipts}
    return {run_id: count for run_id, count in files.items() if count}


def check_undo(world: World, run_id: str = "") -> None:
    """The way back is known, and leads to a version with the same rows, from before the rewrite."""
    receipt = world.receipt(run_id or [*recorded(world)][-1])
    assert receipt is not None
    assert world.table.rows(receipt.undo) == world.rows
    assert receipt.undo_sql.endswith(f"TO VERSION AS OF {receipt.undo}")
    first = min(
        number
        for number, actions in world.table.entries()
        if any(one.get("commitInfo", {}).get("run") == receipt.run_id for one in actions)
    )
    assert int(receipt.undo) < first


def check_report(world: World, run_id: str) -> None:
    """It tells of what its run replaced, all of it and nothing else."""
    report = report_of(world, run_id)
    files = Counter(run for run, _ in world.table.replaced)[run_id]
    assert (report.status, report.totals.files) == ("succeeded", files)


def test_a_run_that_is_not_killed_does_all_of_it(world: World) -> None:
    assert world.run("one")["status"] == "succeeded"

    check_table(world)
    check_lease(world)
    check_undo(world)
    check_report(world, "one")
    assert recorded(world) == {"one": len(DAYS) * FILES}


def killed_worlds(monkeypatch: pytest.MonkeyPatch) -> list[World]:
    """Of each write one whose run was killed right behind it."""
    found = []
    for number in range(_LAST):
        world = World(monkeypatch)
        world.kill_after(number)
        try:
            world.run("one")
        except Crashed:
            world.store.hooks.clear()
            found.append(world)
            # Whatever was done, every row is there once.
            assert world.table.rows() == world.rows
        else:
            return found
    raise AssertionError("it does not end")


def test_begun_again_by_its_name_it_goes_on_and_all_is_recorded_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    worlds = killed_worlds(monkeypatch)
    assert len(worlds) > 15
    for world in worlds:
        world.patch()
        world.clock.advance(60)
        assert world.run("one")["status"] == "succeeded"
        check_table(world)
        check_lease(world)
        check_undo(world, "one")
        check_report(world, "one")
        assert recorded(world) == {"one": len(DAYS) * FILES}


def test_the_next_run_leaves_the_table_while_the_lease_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for world in killed_worlds(monkeypatch):
        world.patch()
        lease, version = world.leases.look(TABLE), world.table.version()
        told = world.run("two")
        assert told["status"] == "succeeded"
        if lease is not None and lease.run_id:
            assert world.table.version() == version
            assert "left" in told["line"]
            assert world.leases.look(TABLE) == lease
        else:
            check_table(world)


def test_the_next_run_after_the_lease_does_what_is_not_done_yet(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for world in killed_worlds(monkeypatch):
        world.patch()
        world.clock.advance(LEASE_SECONDS + DAY)
        assert world.run("two")["status"] == "succeeded"
        check_table(world)
        check_expired_lease(world)
        check_report(world, "two")
        # What was committed right before the kill is in no receipt: of one partition at most.
        files, replaced = recorded(world), Counter(run for run, _ in world.table.replaced)
        assert files.get("two", 0) == replaced["two"]
        assert replaced["one"] - FILES <= files.get("one", 0) <= replaced["one"]
        check_undo(world)


def check_expired_lease(world: World) -> None:
    """Nobody has the table; a run that had nothing to do left the lease of the dead one."""
    lease = world.leases.look(TABLE)
    assert lease is None or not lease.keeps_out("three", world.clock.now())


def job_writes(world: World) -> int:
    """How often the job of a run writes."""
    found = []
    world.driver = lambda job: found.append(world.writes(job))
    world.run("count")
    return found[0]


def test_a_driver_that_dies_is_reported_and_the_next_run_does_the_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    writes = job_writes(World(monkeypatch))
    assert writes > 7
    for number in range(writes):
        world = World(monkeypatch)
        world.driver = partial(die, world, number)
        assert world.run("one")["status"] == "failed"
        assert "Interrupted: driver lost" in report_of(world, "one").cause
        assert world.table.rows() == world.rows
        check_lease(world)
        world.driver = lambda job: job()
        world.clock.advance(60)
        assert world.run("two")["status"] == "succeeded"
        check_table(world)
        check_lease(world)
        check_report(world, "two")
        replaced = Counter(run for run, _ in world.table.replaced)
        assert recorded(world).get("two", 0) == replaced["two"]


def die(world: World, number: int, job: Callable[[], None]) -> None:
    """The job dies after so many writes; the state machine goes on."""
    world.kill_after(number)
    try:
        job()
    except Crashed:
        raise Interrupted("driver lost") from None
    finally:
        world.store.hooks.clear()


@pytest.mark.parametrize("stored", [True, False])
def test_a_write_whose_answer_is_an_error_is_done_once_or_reported(
    monkeypatch: pytest.MonkeyPatch, stored: bool
) -> None:
    every = World(monkeypatch)
    writes = every.writes(lambda: every.run("one"))
    failed = 0
    for number in range(1, writes + 1):
        world = World(monkeypatch)
        world.fail_at(number, stored=stored)
        told = world.run("one")
        world.store.hooks.clear()
        assert world.table.rows() == world.rows
        check_lease(world)
        if told["status"] == "succeeded":
            check_table(world)
            check_undo(world, "one")
            check_report(world, "one")
            assert recorded(world) == {"one": len(DAYS) * FILES}
            continue
        # The store of a job has no Retry behind it but its own: it says what it knows.
        failed += 1
        assert "500 InternalError" in report_of(world, "one").cause
        world.clock.advance(60)
        assert world.run("two")["status"] == "succeeded"
        check_table(world)
        check_lease(world)
        check_report(world, "two")
    assert 0 < failed <= job_writes(World(monkeypatch))


def test_what_a_killed_rewrite_left_goes_with_a_later_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    left = 0
    for world in killed_worlds(monkeypatch):
        world.patch()
        named = {path for _, actions in world.table.entries() for path in _named(actions)}
        orphans = files_of(world) - named
        left += len(orphans)
        world.clock.advance(LEASE_SECONDS + DAY)
        world.run("two")
        world.clock.advance(60 * DAY)
        for number in range(FILES):
            world.table.append("a", [f"later{number}"])
        world.rows = world.table.rows()
        world.clock.advance(DAY)
        assert world.run("three")["status"] == "succeeded"
        assert not orphans & files_of(world)
        assert world.table.rows() == world.rows
    assert left >= len(DAYS)


def files_of(world: World) -> set[str]:
    found = world.store.contents(BUCKET, f"{PREFIX}day=")
    return {key.removeprefix(PREFIX) for key in found}


def _named(actions: list[dict[str, Any]]) -> list[str]:
    return [one[kind]["path"] for one in actions for kind in ("add", "remove") if kind in one]


def test_a_job_that_outlives_its_run_touches_nothing_of_the_next_one(
    world: World,
) -> None:
    held: list[Callable[[], None]] = []
    world.driver = held.append
    world.run("one")
    world.driver = lambda job: job()
    # Given back by the end of its table; the next run takes it while the old job wakes up.
    world.clock.advance(60)
    version = world.table.version()
    world.driver = partial(wake_first, held[0], world, version)
    assert world.run("two")["status"] == "succeeded"
    check_table(world)
    check_lease(world)
    assert {run for run, _ in world.table.replaced} == {"two"}


def wake_first(
    held: Callable[[], None], world: World, version: str, job: Callable[[], None]
) -> None:
    with pytest.raises(Interrupted, match="run two has it"):
        held()
    assert world.table.version() == version
    job()
