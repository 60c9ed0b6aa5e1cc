"""What is done at stores that do not honour everything: the same records, and nothing unseen."""

from __future__ import annotations

import pytest

from compactor.errors import IntegrityError
from compactor.limits import WorkerLimits
from compactor.outputs.verify import check_bytes, check_commit
from compactor.ports import Deletes, StoreTraits
from compactor.s3.deletes import NO_SAFE_DELETE
from tests.support.cleaning import commits, left, old_world
from tests.support.memory_store import Call
from tests.support.server_differences import Condition
from tests.support.world import World

TARGET = 5 * 1024 * 1024
NO_COPIES = StoreTraits(copies=False)


def lines(size: int, letter: bytes) -> bytes:
    whole = size // 100 - 1
    line = b'{"id": "%b"}\n'
    return line % (letter * 89) * whole + line % (letter * (size - 100 * whole - 11))


def copied_world() -> World:
    """A source that is copied whole."""
    world = World(delete_after="7d", small_object_bytes=TARGET)
    world.put("1.log", lines(TARGET + 12_345, b"b"))
    return world


def take(world: World, traits: StoreTraits) -> None:
    world.store = world.store.with_traits(traits)


def the_output(world: World) -> bytes:
    (body,) = world.store.contents("lake", "compacted/").values()
    return body


def test_where_copies_are_not_safe_the_same_bytes_pass_through_the_worker() -> None:
    world, other = copied_world(), copied_world()
    world.run()
    take(other, NO_COPIES)
    other.run()
    assert the_output(other) == the_output(world)
    assert world.store.count("copy_part") == 1
    assert other.store.count("copy_part") == 0
    (commit,) = commits(other)
    assert commit.output is not None
    assert commit.output.crc32 is not None
    check_commit(commit, other.store)


def test_a_source_that_is_copied_whole_passes_through_the_worker_unchanged() -> None:
    worlds = [World(target_bytes=TARGET, small_object_bytes=TARGET) for _ in range(2)]
    for world, traits in zip(worlds, (StoreTraits(), NO_COPIES), strict=True):
        world.put("large.bin.gz", b"\x1f\x8bno gzip, but copied as it is" * 250_000)
        take(world, traits)
        world.run()
    whole, passed = worlds
    assert passed.store.contents("lake", "compacted/") == whole.store.contents("lake", "compacted/")
    assert passed.store.count("copy_part") == 0
    (commit,) = commits(passed)
    assert commit.output is not None
    assert commit.output.copied
    assert commit.output.crc32 is not None
    check_commit(commit, passed.store)


def test_a_source_that_changes_while_it_passes_through_is_planned_again() -> None:
    world = World(target_bytes=TARGET, small_object_bytes=TARGET)
    key = "large.log"
    world.put(key, lines(2 * TARGET, b"a"))
    take(world, NO_COPIES)
    fresh = lines(2 * TARGET, b"c")

    def overwrite(call: Call) -> None:
        if call.name == "create_upload" or (call.name == "read_source" and world.runs == 1):
            world.store.hooks.before.remove(overwrite)
            world.put(key, fresh)

    world.store.hooks.before.append(overwrite)
    world.run()
    assert the_output(world) == fresh
    assert world.store.unfinished_uploads("lake") == {}


def test_a_store_that_publishes_wrong_bytes_is_found_out_by_reading_them_back() -> None:
    world = World()
    world.add("a.json", '{{"id": "{}"}}')
    world.store.ignores = {Condition.WHOLE_CHECKSUM}
    take(world, StoreTraits(checks_crc32=False))
    world.run()
    before = world.store.count("open")

    def spoil(call: Call) -> None:
        if call.name == "complete_upload":
            for upload in world.store._buckets["lake"].uploads.values():
                for number, part in upload.parts.items():
                    spoiled = bytes([part.body[0] ^ 1]) + part.body[1:]
                    upload.parts[number] = part._replace(body=spoiled)

    world.add("b.json", '{{"id": "{}"}}')
    world.store.hooks.before.append(spoil)
    with pytest.raises(IntegrityError, match=r"is damaged: it has \d+ bytes and CRC32"):
        world.run()
    assert world.store.count("open") == before + 1
    assert before == 1


def test_content_written_after_the_commit_is_not_deleted_one_by_one() -> None:
    world = old_world()
    world.put("a.json", b'{"id": "written after"}\n')
    world.store.ignores = {Condition.DELETE_MANY}
    take(world, StoreTraits(deletes=Deletes.SINGLE))
    receipt = world.clean_up()
    assert left(world) == ["a.json"]
    assert (receipt.counts.deleted, receipt.counts.changed) == (1, 1)


def test_without_any_conditional_delete_clean_up_keeps_the_sources_and_says_why() -> None:
    world = old_world()
    world.store.ignores = {Condition.DELETE_MANY, Condition.DELETE_ONE}
    take(world, StoreTraits(deletes=Deletes.NONE))
    receipt = world.clean_up()
    assert left(world) == ["a.json", "b.json"]
    assert {one.reason for one in receipt.refusals} == {NO_SAFE_DELETE}
    assert receipt.counts.deleted == 0


def test_too_large_a_source_for_this_way_is_left_alone() -> None:
    limits = WorkerLimits(most_parts=1, part_bytes=TARGET)
    world = World(target_bytes=TARGET, small_object_bytes=TARGET, limits=limits)
    world.put("large.log", lines(TARGET + 1, b"a"))
    take(world, NO_COPIES)
    receipt = world.run()
    assert receipt.counts.quarantined == 1
    assert world.store.unfinished_uploads("lake") == {}


def test_bytes_without_a_committed_crc32_are_not_taken_for_proven() -> None:
    world = World()
    world.store.seed("lake", "compacted/x", b"bytes")
    with pytest.raises(IntegrityError, match="nothing proves its bytes"):
        check_bytes("lake", "compacted/x", 5, None, world.store)
