"""Reconcile: what no event named is registered, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from compactor.errors import InvalidInput
from compactor.orchestration.reconcile import Reconciled, Reconciliation, reconcile
from tests.support.event_world import EventWorld


def reconciled(world: EventWorld, **given: Any) -> Reconciled:
    at = world.clock.now()
    whole = Reconciliation(world.settings, world.store, at, world.table, workers=1)
    return reconcile(replace(whole, **given))


def test_what_no_event_named_is_registered_and_compacted() -> None:
    world = EventWorld()
    told = [world.put("a/1.json"), world.put("a/2.json"), world.put("b/1.json")]
    world.put("a/lost.json")
    world.put("c/lost.json")
    world.deliver(*told)
    world.sweep()
    world.run_started()
    world.clock.advance(3_600)
    found = reconciled(world)
    assert found == Reconciled(objects=5, compacted=3, registered=2)
    assert reconciled(world) == Reconciled(objects=5, compacted=3, known=2)
    world.sweep()
    world.run_started()
    world.must_be_finished()
    assert reconciled(world) == Reconciled(objects=5, compacted=5)


def test_the_event_of_a_young_object_may_still_be_on_its_way() -> None:
    world = EventWorld()
    late = world.put("a/1.json")
    world.clock.advance(899)
    assert reconciled(world) == Reconciled(objects=1, younger=1)
    world.deliver(late)
    world.clock.advance(2)
    assert reconciled(world) == Reconciled(objects=1, known=1)


def test_an_object_that_is_there_again_comes_back() -> None:
    world = EventWorld()
    told = [world.put("a/1.json"), world.put("a/2.json")]
    world.deliver(*told, world.remove("a/1.json"))
    world.clock.advance(10)
    world.put("a/1.json")
    world.clock.advance(3_600)
    assert reconciled(world).registered == 1
    world.sweep()
    world.run_started()
    world.must_be_finished()


@pytest.mark.parametrize("body", [None, b'{"id": "other"}\n'], ids=["unchanged", "overwritten"])
def test_what_is_put_at_a_committed_key_needs_no_run(body: bytes | None) -> None:
    world = EventWorld(objects=1)
    world.deliver(world.put("a/1.json"))
    world.sweep()
    world.run_started()
    (before,) = world.store.contents("source", "logs/a/").values()
    world.store.seed("source", "logs/a/1.json", body or before, last_modified=world.clock.now())
    world.clock.advance(3_600)
    assert reconciled(world) == Reconciled(objects=1, compacted=1)


def test_what_lies_in_no_partition_or_is_left_alone_by_its_key_is_not_registered() -> None:
    world = EventWorld(exclude=["*.tmp"], s3_source_uri="s3://source/logs/a*/")
    world.write("above.json", b"{}\n")
    world.write("a1/x/a.tmp", b"{}\n")
    world.write("b1/x/a.json", b"{}\n")
    world.put("a1/x/a.json")
    world.clock.advance(3_600)
    found = reconciled(world)
    assert (found.objects, found.registered) == (2, 1)


def test_one_partition_for_the_whole_source_is_listed_once() -> None:
    world = EventWorld(depth=0)
    for name in ("1.json", "a/2.json", "b/3.json"):
        world.put(name)
    world.clock.advance(3_600)
    world.store.calls.clear()
    assert reconciled(world) == Reconciled(objects=3, registered=3)
    assert world.lists_of_the_source() <= 2
    world.sweep()
    world.run_started()
    world.must_be_finished()


def test_when_time_runs_out_it_says_so_and_what_is_registered_stays() -> None:
    world = EventWorld()
    for name in ("a/1.json", "b/1.json", "c/1.json"):
        world.put(name)
    world.clock.advance(3_600)
    times = iter([False, True, True])
    found = reconciled(world, stop=lambda: next(times))
    assert not found.complete
    assert found.registered == 1
    assert reconciled(world).registered == 2


def test_another_source_than_the_streams_is_refused() -> None:
    world, other = EventWorld(), EventWorld(s3_source_uri="s3://source/other/")
    other.registry = world.registry
    with pytest.raises(InvalidInput, match="listing"):
        reconciled(other)
