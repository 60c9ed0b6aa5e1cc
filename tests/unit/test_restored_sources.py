"""Sources of archive classes are compacted while their restored copies can be read."""

from __future__ import annotations

import pytest

from tests.support.examples import NOW, PARTITION
from tests.support.world import World

DAY = 86_400


def archive(world: World, name: str, restored_until: float = 0.0) -> None:
    key = PARTITION.prefix + name
    body = world.store.contents("source")[key]
    world.store.seed(
        "source",
        key,
        body,
        last_modified=NOW - DAY,
        storage_class="DEEP_ARCHIVE",
        restored_until=restored_until,
    )


@pytest.fixture
def world() -> World:
    made = World()
    for name in ("a.json", "b.json", "c.json"):
        made.add(name, '{{"id": "{}"}}')
    archive(made, "b.json")
    return made


def test_a_restored_source_is_compacted_by_the_next_run(world: World) -> None:
    receipt = world.run()
    assert receipt.skipped["archived_storage_class"].objects == 1
    assert set(world.destination()) == world.records - {3, 4, 5}
    archive(world, "b.json", restored_until=world.clock.now() + DAY)
    receipt = world.run()
    assert receipt.counts.objects_in == 1
    world.must_be_finished()


def test_once_its_copy_is_gone_it_is_left_alone_again(world: World) -> None:
    archive(world, "b.json", restored_until=world.clock.now() + DAY)
    world.clock.advance(DAY)
    receipt = world.run()
    assert receipt.skipped["archived_storage_class"].examples == (PARTITION.prefix + "b.json",)
    assert receipt.counts.objects_in == 2
