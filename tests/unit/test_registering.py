"""Registering: a message is done with when all it names is stored, and its partition woken."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from compactor.errors import InvalidInput, TransientStoreError
from compactor.registry.items import Item, Removal
from compactor.registry.registry_ports import Registered, Withdrawn
from tests.support.event_world import EventWorld
from tests.support.memory_registry import MemoryRegistry
from tests.support.s3_events import notification, record

SLOW = TransientStoreError("slow down")


class Throttled(MemoryRegistry):
    """Takes no items or removals of these names, and wakes none of these partitions."""

    def __init__(self, names: Sequence[str] = (), paths: Sequence[str] = ()) -> None:
        super().__init__()
        self.names, self.paths = names, paths

    def register(self, stream: str, items: Sequence[Item]) -> Registered:
        failed = [(one, SLOW) for one in items if one.name in self.names]
        done = super().register(stream, [one for one in items if one.name not in self.names])
        return Registered(done.new, done.known, failed)

    def withdraw(self, stream: str, removals: Sequence[Removal]) -> Withdrawn:
        failed = [(one, SLOW) for one in removals if one.name in self.names]
        done = super().withdraw(stream, [one for one in removals if one.name not in self.names])
        return Withdrawn(done.done, failed)

    def touch(self, stream: str, path: str, newest: float) -> None:
        if path in self.paths:
            raise SLOW
        super().touch(stream, path, newest)


def world_with(registry: MemoryRegistry) -> EventWorld:
    world = EventWorld()
    world.registry = registry
    return world


def test_a_message_whose_object_was_not_stored_comes_again() -> None:
    world = world_with(Throttled(names=["2"]))
    done = world.deliver(world.put("a/1"), world.put("a/2"), world.put("b/1"))
    assert set(done.failed) == {"m1"}
    assert "slow down" in done.failed["m1"]
    assert done.new == 2


def test_a_message_of_several_objects_comes_again_for_one_of_them() -> None:
    registry = Throttled(names=["2"])
    world = world_with(registry)
    body = json.dumps({"Records": [record(f"logs/a/{n}") for n in range(3)]})
    assert set(world.deliver(body).failed) == {"m0"}
    registry.names = []
    done = world.deliver(body)
    assert (done.failed, done.new, done.known) == ({}, 1, 2)


def test_messages_whose_partition_was_not_woken_come_again() -> None:
    world = world_with(Throttled(paths=["a/"]))
    done = world.deliver(world.put("a/1"), world.put("b/1"), world.put("a/2"))
    assert set(done.failed) == {"m0", "m2"}
    # They are known then, and wake it.
    world.registry = registry = Throttled()
    registry.items = {}
    assert set(world.deliver(world.put("a/1")).failed) == set()
    assert [one.path for one in registry.heads("logs")] == ["a/"]


def test_a_removal_that_was_not_stored_comes_again() -> None:
    world = world_with(Throttled(names=["1"]))
    removed = notification("logs/a/1", "ObjectRemoved:Delete")
    assert set(world.deliver(removed, notification("logs/a/2", "ObjectRemoved:Delete")).failed) == {
        "m0"
    }


def test_two_events_of_a_key_in_one_batch_are_its_later_one() -> None:
    world = EventWorld()
    first, second = world.put("a/1"), world.put("a/1")
    done = world.deliver(second, first, second)
    assert (done.new, done.known) == (1, 2)
    (item,) = world.open_items().values()
    head = world.store.head("source", "logs/a/1")
    assert head is not None
    assert item.etag == head.etag


def test_what_no_run_takes_by_its_key_is_passed_over() -> None:
    world = EventWorld(exclude=["*.tmp"])
    told = [notification(f"logs/{one}") for one in ("a/x.tmp", "top", "a/")]
    told.append(notification("logs/a/1", bucket="other"))
    directory = notification("logs/a/", size=0)
    done = world.deliver(*told, directory)
    # An object whose key ends in a slash is data, unless it is empty.
    assert (done.new, done.ignored) == (1, 4)


def test_a_table_that_may_not_be_used_fails_the_whole_batch() -> None:
    world = EventWorld()

    def refuse(step: str) -> None:
        raise InvalidInput("permission", step, "a role")

    world.registry.hook = refuse
    with pytest.raises(InvalidInput):
        world.deliver(world.put("a/1"))
