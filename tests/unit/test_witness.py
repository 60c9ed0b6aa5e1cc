"""The witness of an entry: a number of a log is given once, even if its entry is deleted."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from compactor import layout
from compactor.clock import NoDeadline
from compactor.errors import IntegrityError
from compactor.log.log import CommitLog
from compactor.log.log_reader import one_log
from compactor.outputs.publish import publish
from compactor.runs.partition_run import PartitionRun
from compactor.verification.adopt import Adoption, adopt
from tests.support.examples import PARTITION
from tests.support.memory_hooks import Call, Crashed
from tests.support.world import World

LINE = '{{"id": "{}"}}'


def world_of(*names: str, **given: object) -> World:
    world = World(**given)
    for name in names:
        world.add(name, LINE)
    return world


def log_of(world: World) -> CommitLog:
    return CommitLog(world.store, world.settings, PARTITION)


def entry_of(world: World, number: int) -> str:
    return layout.commit_key(world.settings, PARTITION, number)[1]


def witness_of(world: World, number: int) -> str:
    return layout.witness_key(world.settings, PARTITION, number)[1]


def body_of(world: World, key: str) -> bytes:
    return world.store.contents("lake")[key]


def die(world: World, name: str, nth: int = 1, prefix: str = "") -> None:
    """Run up to the first request of this name, which is never made."""
    world.store.hooks.crash("before", name, nth=nth, prefix=prefix)
    with pytest.raises(Crashed):
        world.run()
    world.store.hooks.clear()


def after(world: World, key: str, action: Callable[[], object]) -> None:
    """Act once an object was created."""

    def hook(call: object) -> None:
        if getattr(call, "name", "") == "create" and getattr(call, "key", "") == key:
            world.store.hooks.after.remove(hook)
            action()

    world.store.hooks.after.append(hook)


def another_takes_its_number(world: World) -> None:
    """Somebody deletes the first entry, and another run of other groups gets its number."""
    world.store.remove("lake", entry_of(world, 1))
    world.add("c.json", LINE)
    world.run()


def adopted(world: World, *, dry_run: bool = False) -> Adoption:
    run = PartitionRun(
        PARTITION, world.settings, world.store, world.clock, NoDeadline(), "adopting"
    )
    return adopt(run, dry_run=dry_run)


def test_each_entry_gets_a_witness_before_its_output_can_be_read() -> None:
    world = world_of("a.json", "b.json")
    die(world, "complete_upload")
    (commit,) = log_of(world).every_commit()
    witness = json.loads(body_of(world, witness_of(world, 1)))
    assert witness == {"version": 1, "commit_id": commit.commit_id, "log_id": commit.log_id}


def test_of_two_workers_with_one_number_the_one_with_the_witness_publishes() -> None:
    world = world_of("a.json", "b.json")
    world.store.hooks.after.append(world.check)
    after(world, entry_of(world, 1), lambda: another_takes_its_number(world))
    with pytest.raises(IntegrityError, match=r"was deleted, or put back over another one"):
        world.run()
    assert sorted(world.destination()) == sorted(world.records), "each once"
    assert world.run().status == "done"
    world.must_be_finished()


def at(hooks: list[Callable[[Any], None]], name: str, key: str, act: Callable[[], object]) -> None:
    """Act at the next request of this name for a key that begins so."""

    def hook(call: Call) -> None:
        if call.name == name and call.key.startswith(key):
            hooks.remove(hook)
            act()

    hooks.append(hook)


def test_an_entry_found_in_a_lost_race_keeps_its_number() -> None:
    """One entry is deleted, and three workers commit: the model of the protocol found this."""
    world = world_of("a.json", "b.json")
    hooks = world.store.hooks

    def worker_of(*names: str) -> None:
        world.settings = replace(world.settings, include=names)

    def dies() -> None:
        raise Crashed("here")

    def before_its_witness() -> None:
        world.add("c.json", LINE)
        worker_of("*c.json")
        at(hooks.before, "create", witness_of(world, 1), dies)
        with pytest.raises(Crashed):
            world.run()

    def after_a_lost_race() -> None:
        world.add("d.json", LINE)
        worker_of("*a.json", "*d.json")
        at(hooks.before, "create", entry_of(world, 1), before_its_witness)
        at(hooks.after, "complete_upload", "", dies)
        with pytest.raises(Crashed):
            world.run()
        world.store.remove("lake", entry_of(world, 1))

    at(hooks.before, "create", entry_of(world, 1), after_a_lost_race)
    hooks.after.append(world.check)
    with pytest.raises(IntegrityError, match=r"was deleted, or put back over another one"):
        world.run()


def test_a_deleted_entry_whose_witness_is_there_stops_everybody_else() -> None:
    world = world_of("a.json", "b.json", clean_up="delete", retention_days=7)
    world.store.hooks.after.append(world.check)

    def delete() -> None:
        world.store.remove("lake", entry_of(world, 1))
        world.add("c.json", LINE)
        with pytest.raises(IntegrityError, match=r"has no entry 1, but was 1 entries long"):
            world.run()

    after(world, witness_of(world, 1), delete)
    world.run()
    assert one_log(world.settings.state, PARTITION.path, world.store).missing == [1]


def test_a_worker_that_died_between_the_two_is_no_special_case() -> None:
    world = world_of("a.json", "b.json")
    die(world, "create", prefix=witness_of(world, 1))
    assert entry_of(world, 1) in world.store.contents("lake")
    assert world.run().counts.repaired == 1
    assert witness_of(world, 1) in world.store.contents("lake")
    world.must_be_finished()


def test_entries_of_versions_without_witnesses_get_theirs_before_they_are_published() -> None:
    world = world_of("a.json", "b.json")
    die(world, "complete_upload")
    world.store.remove("lake", witness_of(world, 1))
    world.run()
    assert witness_of(world, 1) in world.store.contents("lake")
    world.must_be_finished()


def test_a_run_with_nothing_to_do_asks_for_no_witness() -> None:
    world = world_of("a.json", "b.json")
    world.run()
    before = world.store.count("get", prefix=witness_of(world, 1)), world.store.count("create")
    world.run()
    assert world.store.count("get", prefix=witness_of(world, 1)) == before[0]


def test_an_entry_that_was_put_back_over_another_one_is_not_read_on() -> None:
    world = world_of("a.json", "b.json")
    first: list[bytes] = []

    def change() -> None:
        first.append(body_of(world, entry_of(world, 1)))
        another_takes_its_number(world)

    after(world, entry_of(world, 1), change)
    with pytest.raises(IntegrityError):
        world.run()
    world.store.seed("lake", entry_of(world, 1), first[0])
    with pytest.raises(IntegrityError, match=r"witness\.json says that this entry"):
        list(log_of(world).every_commit())


@pytest.mark.parametrize(
    ("body", "told"),
    [(b"", "is damaged"), (b'{"version": 1}', "is damaged"), (b'{"version": 2}', "has version 2")],
)
def test_a_witness_that_cannot_be_read_stops_its_partition(body: bytes, told: str) -> None:
    world = world_of("a.json", "b.json")
    die(world, "complete_upload")
    world.store.seed("lake", witness_of(world, 1), body)
    with pytest.raises(IntegrityError, match=told):
        world.run()
    assert not world.destination()


# A log that is built anew.


def test_the_number_of_an_entry_that_is_gone_is_given_again_when_its_output_is_adopted() -> None:
    world = world_of("a.json", "b.json")
    world.run()
    for key in (entry_of(world, 1), entry_of(world, 1).replace(".json", ".checkpoint.json")):
        world.store.remove("lake", key)
    lost = body_of(world, witness_of(world, 1))
    assert len(adopted(world, dry_run=True).proven) == 1
    assert body_of(world, witness_of(world, 1)) == lost
    assert len(adopted(world).proven) == 1
    assert body_of(world, witness_of(world, 1)) != lost
    world.must_be_finished()


def disputed() -> World:
    """The first entry is not the one whose witness is there, and whose output can be read."""
    world = world_of("a.json", "b.json", "c.json")

    def change() -> None:
        world.store.remove("lake", entry_of(world, 1))
        wanted = world.settings
        world.settings = replace(wanted, include=("*a.json", "*b.json"))
        die(world, "create", prefix=witness_of(world, 1))
        world.settings = wanted
        world.store.hooks.crash("after", "complete_upload")

    after(world, entry_of(world, 1), change)
    with pytest.raises(Crashed):
        world.run()
    world.store.hooks.clear()
    return world


def test_an_entry_that_is_not_the_witnessed_one_is_made_void_and_the_output_adopted() -> None:
    world = disputed()
    with pytest.raises(IntegrityError, match=r"witness\.json says"):
        world.run()
    adoption = adopted(world)
    assert (adoption.error, len(adoption.proven)) == ("", 1)
    assert world.run().status == "done"
    assert sorted(world.destination()) == sorted(world.records), "each once"
    world.must_be_finished()


def test_an_output_that_can_be_read_is_what_its_number_stands_for() -> None:
    world = world_of("a.json", "b.json")
    world.run()
    world.store.remove("lake", entry_of(world, 1).replace(".json", ".checkpoint.json"))
    world.store.seed(
        "lake", witness_of(world, 1), b'{"version": 1, "commit_id": "other", "log_id": ""}'
    )
    with pytest.raises(IntegrityError, match=r"witness\.json says"):
        world.run()
    assert adopted(world).error == ""
    assert world.run().status == "done"
    world.must_be_finished()


def test_nothing_is_published_beside_an_output_that_no_entry_names() -> None:
    """Two objects of the log are deleted while a worker sleeps between witness and publication."""
    world = world_of("a.json", "b.json")
    die(world, "complete_upload")
    (asleep,) = log_of(world).every_commit()
    for key in (entry_of(world, 1), witness_of(world, 1)):
        world.store.remove("lake", key)
    world.add("c.json", LINE)
    die(world, "complete_upload")
    publish(asleep, world.store)
    world.store.hooks.after.append(world.check)
    with pytest.raises(IntegrityError, match="ends with entry 1, and does not name s3://lake/"):
        world.run()
    assert len(world.destination()) == 6
    output = asleep.output
    assert output is not None
    world.store.remove("lake", output.key)
    world.run()
    world.must_be_finished()


# A checkpoint.


def overtaken(world: World) -> None:
    """A run begins to write entry 1; another does, and sums it up; somebody deletes that entry."""

    def another(call: object) -> None:
        if getattr(call, "key", "") == entry_of(world, 1):
            world.store.hooks.before.remove(another)
            world.settings = replace(world.settings, include=("*c.json",))
            world.add("c.json", LINE)
            world.run()
            world.settings = replace(world.settings, include=())
            for key in (entry_of(world, 1), witness_of(world, 1)):
                world.store.remove("lake", key)

    world.store.hooks.before.append(another)


def test_a_run_whose_entry_another_one_is_summed_up_for_is_reported() -> None:
    world = world_of("a.json", "b.json")
    overtaken(world)
    with pytest.raises(IntegrityError, match=r"checkpoint.json.gz sums up commit \w+ as entry 1"):
        world.run()
    world.check()


def test_a_checkpoint_of_another_entry_stops_its_partition_before_anything_is_stored() -> None:
    world = world_of("a.json", "b.json")
    overtaken(world)
    world.store.hooks.crash("before", "complete_upload", nth=2)
    with pytest.raises(Crashed):
        world.run()
    world.store.hooks.clear()
    before = world.store.contents("lake", "compacted/")
    with pytest.raises(IntegrityError, match=r"sums up commit \w+ as entry 1"):
        world.run()
    assert world.store.contents("lake", "compacted/") == before
    assert len(one_log(world.settings.state, PARTITION.path, world.store).entries) == 1


def test_without_that_checkpoint_the_log_is_rebuilt() -> None:
    world = world_of("a.json", "b.json")
    overtaken(world)
    with pytest.raises(IntegrityError, match="sums up commit"):
        world.run()
    world.store.remove("lake", layout.checkpoint_key(world.settings, PARTITION, 1)[1])
    with pytest.raises(IntegrityError, match="does not name"):
        world.run()
    world.settings = replace(world.settings, include=("*c.json",))
    done = adopted(world)
    assert (len(done.proven), done.left) == (1, [])
    world.settings = replace(world.settings, include=())
    world.must_be_finished()
