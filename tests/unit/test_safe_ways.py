"""What is done at stores that do not honour everything: the same records, and nothing unseen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compactor.conditions import Condition, StoreTraits
from compactor.errors import IntegrityError, SourceChanged
from compactor.limits import WorkerLimits
from compactor.outputs.verify import check_commit
from tests.support.cleaning import DAY, commits, left, old_world
from tests.support.memory_store import Call
from tests.support.world import World

TARGET = 5 * 1024 * 1024
NO_COPIES = StoreTraits(copies=False, knows_copied_crc32=False)


def lines(size: int, letter: bytes) -> bytes:
    whole = size // 100 - 1
    line = b'{"id": "%b"}\n'
    return line % (letter * 89) * whole + line % (letter * (size - 100 * whole - 11))


def copied_world() -> World:
    """A source that is copied whole."""
    world = World(clean_up="delete", retention_days=7, small_object_bytes=TARGET)
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


def published_before(world: World) -> None:
    """By a version that did not look at it, at a store that tells nothing of parts."""
    world.run()
    bucket = world.store._buckets["lake"]
    (key,) = (key for key in bucket.objects if key.startswith("compacted/"))
    one = bucket.objects[key]
    bucket.objects[key] = replace(one, crc32=(one.crc32 or 0) ^ 1)


def test_verify_notices_a_stored_checksum_that_contradicts_the_bytes() -> None:
    world = copied_world()
    published_before(world)
    (commit,) = commits(world)
    with pytest.raises(IntegrityError, match="the store keeps CRC32"):
        check_commit(commit, world.store)


def test_clean_up_keeps_the_sources_of_an_output_that_readers_refuse() -> None:
    world = copied_world()
    published_before(world)
    take(world, NO_COPIES)
    world.clock.advance(8 * DAY)
    receipt = world.clean_up()
    assert left(world) == ["1.log"]
    (line,) = receipt.unsafe
    assert "readers that compare them refuse it" in line


def test_clean_up_of_a_sound_output_with_copies_reads_it_only_where_checksums_are_not_trusted() -> (
    None
):
    for traits, reads in ((StoreTraits(), 0), (NO_COPIES, 1)):
        world = copied_world()
        world.run()
        take(world, traits)
        world.clock.advance(8 * DAY)
        before = world.store.count("open")
        assert world.clean_up().unsafe == []
        assert left(world) == []
        assert world.store.count("open") - before == reads


def test_a_store_that_publishes_wrong_bytes_is_found_out_by_reading_them_back() -> None:
    world = World()
    world.add("a.json", '{{"id": "{}"}}')
    world.store.ignores = {Condition.WHOLE_CHECKSUM}
    take(world, StoreTraits(refuses_wrong_crc32=False))
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
    with pytest.raises(IntegrityError, match="CRC32 of"):
        world.run()
    assert world.store.count("open") == before + 1
    assert before == 1


def test_a_source_that_changed_is_not_read_by_comparing_the_answer() -> None:
    world = World()
    world.put("a.log", b"as listed\n")
    (page,) = world.store.list_objects("source", "")
    world.put("a.log", b"as it is.\n")
    world.store.ignores = {Condition.READ}
    (body,) = world.store.read_sources(page)
    assert body.content == b"as it is.\n"
    take(world, StoreTraits(reads_if_match=False))
    (body,) = world.store.read_sources(page)
    assert isinstance(body.error, SourceChanged)


@pytest.mark.parametrize(
    ("ignored", "traits"),
    [
        ({Condition.DELETE_MANY}, StoreTraits(deletes_many=False)),
        (
            {Condition.DELETE_MANY, Condition.DELETE_ONE},
            StoreTraits(deletes_many=False, deletes_one=False),
        ),
    ],
)
def test_content_written_after_the_commit_is_not_deleted(
    ignored: set[Condition], traits: StoreTraits
) -> None:
    world = old_world()
    world.put("a.json", b'{"id": "written after"}\n')
    world.store.ignores = ignored
    take(world, traits)
    receipt = world.clean_up()
    assert left(world) == ["a.json"]
    assert (receipt.counts.deleted, receipt.counts.changed) == (1, 1)
    races = [line for line in receipt.warnings if "HEAD is compared" in line]
    assert len(races) == (not traits.deletes_one)


def test_too_large_a_source_for_this_way_is_left_alone() -> None:
    limits = WorkerLimits(most_parts=1, part_bytes=TARGET)
    world = World(target_bytes=TARGET, small_object_bytes=TARGET, limits=limits)
    world.put("large.log", lines(TARGET + 1, b"a"))
    take(world, NO_COPIES)
    receipt = world.run()
    assert receipt.counts.quarantined == 1
    assert world.store.unfinished_uploads("lake") == {}
