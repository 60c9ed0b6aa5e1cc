"""Reconciling by several calls."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from compactor.errors import IntegrityError, TransientStoreError
from compactor.orchestration.reconcile import Reconciled, Reconciliation, reconcile
from compactor.orchestration.reconcile_rounds import Round, go_on, read_round
from tests.support.document_tables import table_of
from tests.support.event_world import EventWorld

# Of one batch of objects, after which the time is looked at.
BATCH = 10


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> EventWorld:
    """Nothing that events told of; objects in three partitions, one with more than a batch."""
    monkeypatch.setattr("compactor.orchestration.reconcile._BATCH", BATCH)
    made = EventWorld()
    for name in ("a/1.json", "a/2.json", "c/1.json", "c/2.json"):
        made.put(name)
    for number in range(BATCH + 5):
        made.write(f"b/{number:05}.json", b"{}\n")
    made.clock.advance(3_600)
    return made


def given(world: EventWorld, **more: Any) -> Reconciliation:
    at = world.clock.now()
    whole = Reconciliation(world.settings, world.store, at, world.table, workers=1)
    return replace(whole, **more)


def after(looks: int) -> Callable[[], bool]:
    """Time that runs out after so many looks."""
    left = iter([False] * looks)
    return lambda: next(left, True)


def calls(world: EventWorld, **more: Any) -> Iterator[Reconciled]:
    """As many calls as it takes, each of which does the least that it does."""
    begin = True
    while (found := go_on(given(world, stop=lambda: True, **more), 60, begin=begin)) is not None:
        begin = False
        yield found


def test_calls_that_go_on_find_together_what_one_finds(world: EventWorld) -> None:
    found = list(calls(world))
    assert [one.start_after for one in found] == [
        "logs/a/2.json",
        f"logs/b/{BATCH - 1:05}.json",
        f"logs/b/{BATCH + 4:05}.json",
        "",
    ]
    assert [one.complete for one in found] == [False, False, False, True]
    assert sum(one.objects for one in found) == BATCH + 9
    assert sum(one.registered for one in found) == BATCH + 9
    assert {item.name for item in world.open_items().values()} >= {"1.json", "2.json", "00000.json"}
    assert len(world.open_items()) == BATCH + 9
    last = read_round(world.settings, world.store)
    assert last is not None
    assert (last.calls, last.objects, last.ended_at) == (4, BATCH + 9, world.clock.now())
    stored = world.store.get(*world.settings.layout.reconcile("logs"))
    assert set(json.loads(stored)) == set(table_of("Round"))


@pytest.mark.parametrize("workers", [1, 4])
def test_a_call_may_begin_after_any_key(world: EventWorld, workers: int) -> None:
    listed = sorted(world.store.contents("source"))
    for number in (0, 1, 2, 7, BATCH + 6, BATCH + 8):
        found = reconcile(given(world, start_after=listed[number], workers=workers))
        assert found.objects == len(listed) - number - 1
        assert (found.complete, found.start_after) == (True, "")


@pytest.mark.parametrize("looks", range(12))
def test_wherever_a_call_stops_nothing_is_passed_over(world: EventWorld, looks: int) -> None:
    found = reconcile(given(world, stop=after(looks), workers=3))
    rest = reconcile(given(world, start_after=found.start_after)) if not found.complete else None
    assert found.complete or found.start_after
    assert found.objects + (rest.objects if rest else 0) == BATCH + 9
    assert found.registered + (rest.registered if rest else 0) == BATCH + 9
    assert len(world.open_items()) == BATCH + 9


def test_nothing_is_begun_while_another_call_is_at_work_or_by_a_call_that_may_not(
    world: EventWorld,
) -> None:
    assert go_on(given(world), 60, begin=False) is None
    found = go_on(given(world, stop=lambda: True), 60, begin=True)
    assert found is not None
    one = read_round(world.settings, world.store)
    assert one is not None
    busy = b'{"version":1,"begun_at":1.0,"busy_until":%d,"start_after":"logs/a/2.json"}'
    place = world.settings.layout.reconcile("logs")
    world.store.put(*place, busy % (world.clock.now() + 30))
    assert go_on(given(world), 60, begin=True) is None
    # It died.
    world.clock.advance(31)
    found = go_on(given(world), 60, begin=False)
    assert found is not None
    assert (found.objects, found.complete) == (BATCH + 7, True)
    assert go_on(given(world), 60, begin=False) is None
    # The next round begins at the beginning.
    again = go_on(given(world), 60, begin=True)
    assert again is not None
    assert (again.objects, again.known) == (BATCH + 9, BATCH + 9)


def test_a_round_that_failed_is_resumed_by_the_next_that_begins_one(
    world: EventWorld,
) -> None:
    assert go_on(given(world, stop=lambda: True), 60, begin=True) is not None

    def fail(_: str) -> Any:
        raise TransientStoreError("the table is away")

    with pytest.raises(TransientStoreError):
        go_on(given(world, at=fail), 60, begin=False)
    one = read_round(world.settings, world.store)
    assert one is not None
    assert one.cause == "TransientStoreError: the table is away"
    assert go_on(given(world), 60, begin=False) is None
    found = go_on(given(world), 60, begin=True)
    assert found is not None
    assert found.objects == BATCH + 7


def test_a_damaged_round_says_so(world: EventWorld) -> None:
    place = world.settings.layout.reconcile("logs")
    world.store.put(*place, b"no JSON")
    with pytest.raises(IntegrityError, match=r"reconcile/logs\.json is damaged: .*; delete it"):
        go_on(given(world), 60, begin=True)
    world.store.put(*place, b'{"version":2,"begun_at":1.0}')
    with pytest.raises(IntegrityError, match="2"):
        go_on(given(world), 60, begin=True)


def test_a_state_with_nothing_but_a_round_is_a_new_one(world: EventWorld) -> None:
    assert go_on(given(world), 60, begin=True) is not None
    world.sweep()
    world.run_started()
    assert isinstance(read_round(world.settings, world.store), Round)
    assert world.open_items() == {}
