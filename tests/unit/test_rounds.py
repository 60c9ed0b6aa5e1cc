"""Reconciling by several calls, and by an inventory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from compactor import layout
from compactor.clock import NoDeadline
from compactor.errors import IntegrityError, InvalidInput, TransientStoreError
from compactor.inventory.inventory_listing import InventoryListing
from compactor.inventory.pages import DirectoryShelf, RunShelf
from compactor.inventory.taking import take_inventory, take_on
from compactor.orchestration.reconcile import Reconciled, Reconciliation, reconcile
from compactor.orchestration.reconcile_rounds import Round, go_on, read_round
from compactor.registry.streams import inventoried as inventoried_as
from tests.support.document_tables import table_of
from tests.support.event_world import EventWorld
from tests.support.inventory import BUCKET, PLACE, URI, inventory_of

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


# Several calls.


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
    stored = world.store.get(*layout.reconcile_key(world.settings, "logs"))
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
    place = layout.reconcile_key(world.settings, "logs")
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
    place = layout.reconcile_key(world.settings, "logs")
    world.store.put(*place, b"no JSON")
    with pytest.raises(IntegrityError, match=r"reconcile/logs\.json is damaged: delete it"):
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


# An inventory.


def inventoried(world: EventWorld, directory: Path) -> Callable[..., Reconciled]:
    """Reconciles by an inventory of what is there now."""
    world.store.add_bucket(BUCKET)
    listed = [one for page in world.store.list_objects("source", "") for one in page]
    inventory_of(listed, world.clock.now()).deliver(world.store)
    asked = replace(world.settings, listing=f"inventory:{URI}")
    listing = take_inventory(asked, world.store, DirectoryShelf(directory))

    def work(**more: Any) -> Reconciled:
        return reconcile(given(world, inventory=listing, **more))

    return work


def test_an_inventory_has_what_list_has_and_is_asked_instead(
    world: EventWorld, tmp_path: Path
) -> None:
    work = inventoried(world, tmp_path)
    world.store.calls.clear()
    assert work() == Reconciled(objects=BATCH + 9, registered=BATCH + 9)
    assert world.lists_of_the_source() == 0
    assert work() == Reconciled(objects=BATCH + 9, known=BATCH + 9)
    world.sweep()
    world.run_started()
    world.must_be_finished()


def test_an_inventory_is_gone_through_by_several_calls(world: EventWorld, tmp_path: Path) -> None:
    work = inventoried(world, tmp_path)
    found, registered = work(stop=lambda: True), 0
    while not found.complete:
        registered += found.registered
        found = work(stop=lambda: True, start_after=found.start_after)
    assert registered + found.registered == BATCH + 9


def test_what_happened_since_the_inventory_is_not_taken_back(tmp_path: Path) -> None:
    world = EventWorld()
    told = [world.put(f"a/{name}.json") for name in ("deleted", "written-again", "lost", "gone")]
    world.clock.advance(3_600)
    work = inventoried(world, tmp_path)
    world.clock.advance(60)
    # Of two of them events tell what became of them; of another none does.
    told += [world.remove("a/deleted.json"), world.put("a/written-again.json")]
    world.deliver(told[0], told[1], told[4], told[5])
    world.remove("a/gone.json")
    world.put("a/newer.json")
    world.clock.advance(3_600)
    before = dict(world.registry.items)
    assert work() == Reconciled(objects=4, known=2, registered=2)
    assert {key: world.registry.items[key] for key in before} == before
    world.sweep()
    world.run_started()
    # The run finds that one of them is gone; and so it stays, whatever the inventory says.
    assert world.open_items() == {}
    assert work() == Reconciled(objects=4, compacted=1, known=3)
    # What the inventory does not know is found by a later one, or by LIST.
    assert reconcile(given(world)).registered == 1


def test_an_inventory_brings_back_what_was_put_again_after_a_deletion(tmp_path: Path) -> None:
    world = EventWorld()
    told = [world.put("a/1.json"), world.remove("a/1.json")]
    world.deliver(*told)
    world.clock.advance(10)
    world.put("a/1.json")
    world.clock.advance(3_600)
    assert inventoried(world, tmp_path)().registered == 1


class Daily:
    """Rounds by the newest inventory that is delivered, as the sweep has them."""

    def __init__(self, world: EventWorld) -> None:
        self.world = world
        world.store.add_bucket(BUCKET)
        self.days = 0
        self.time: Any = NoDeadline()

    def deliver(self) -> None:
        """What is there now."""
        self.days += 1
        listed = [one for page in self.world.store.list_objects("source", "") for one in page]
        made = inventory_of(listed, self.world.clock.now())
        made.deliver(self.world.store, f"2027-01-{self.days:02}T01-00Z")

    def go_on(self, *, begin: bool = False, **more: Any) -> Reconciled | None:
        asked = inventoried_as(self.world.settings, f"s3://{BUCKET}/{PLACE}")

        def take(run_id: str) -> InventoryListing | None:
            shelf = RunShelf(asked, run_id, self.world.store)
            return take_on(asked, self.world.store, shelf, self.time)

        return go_on(given(self.world, **more), 60, begin=begin, take=take)


class Once:
    """Time for one thing."""

    def remaining_seconds(self) -> float:
        return 1.0


def test_each_round_takes_the_newest_inventory_and_all_its_calls_the_same(
    world: EventWorld,
) -> None:
    daily = Daily(world)
    daily.deliver()
    world.store.calls.clear()
    found = daily.go_on(begin=True, stop=lambda: True)
    assert found is not None
    assert (found.complete, found.registered) == (False, 2)
    # One that is delivered amid a round is for the next.
    world.put("a/0.json")
    world.clock.advance(3_600)
    daily.deliver()
    counts = [found.registered]
    while (found := daily.go_on(stop=lambda: True)) is not None:
        counts.append(found.registered)
    assert sum(counts) == BATCH + 9
    world.store.calls.clear()
    found = daily.go_on(begin=True)
    assert found == Reconciled(objects=BATCH + 10, known=BATCH + 9, registered=1)
    assert world.lists_of_the_source() == 0
    runs = world.store.contents("lake", "_compactor/compacted/runs/")
    assert len({key.split("/")[3] for key in runs}) == 2


def test_an_inventory_may_take_several_calls_before_anything_is_compared(
    world: EventWorld,
) -> None:
    daily = Daily(world)
    daily.deliver()
    daily.time = Once()
    found = daily.go_on(begin=True)
    assert found == Reconciled(complete=False)
    calls = 1
    while (found := daily.go_on()) is not None:
        calls += 1
        if found.complete:
            break
    assert found == Reconciled(objects=BATCH + 9, registered=BATCH + 9)
    assert calls > 1
    assert daily.go_on() is None


def test_a_round_whose_inventory_cannot_be_taken_restarts_the_next_day(
    world: EventWorld,
) -> None:
    daily = Daily(world)
    with pytest.raises(InvalidInput, match="delivered"):
        daily.go_on(begin=True)
    one = read_round(world.settings, world.store)
    assert one is not None
    assert one.cause.startswith("InvalidInput")
    assert daily.go_on() is None
    world.clock.advance(86_400)
    daily.deliver()
    found = daily.go_on(begin=True)
    assert found == Reconciled(objects=BATCH + 9, registered=BATCH + 9)
    one = read_round(world.settings, world.store)
    assert one is not None
    assert one.begun_at == world.clock.now()
