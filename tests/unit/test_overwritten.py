"""An object that is put over a compacted one is left alone, counted, and never deleted."""

from __future__ import annotations

import gzip
from dataclasses import replace

import pytest

from compactor.errors import CommitConflict
from compactor.log.encoding import decode_checkpoint, encode_checkpoint
from compactor.log.entries import Commit
from compactor.log.log import CommitLog
from compactor.outputs.restore import Wanted, find
from compactor.partition.receipts import Receipt
from tests.support.cleaning import DAY
from tests.support.examples import PARTITION
from tests.support.memory_store import Call
from tests.support.world import World

RETENTION = 7 * DAY
ETAG = "0123456789abcdef0123456789abcdef-2"


@pytest.fixture
def world() -> World:
    """Three sources of three records each in one output."""
    made = World(delete_after="7d")
    for number in range(3):
        made.add(f"{number}.json", '{{"id": "{}"}}')
    made.run()
    made.clock.advance(3_600)
    return made


def key(number: int) -> str:
    return f"{PARTITION.prefix}{number}.json"


def overwrite(world: World, number: int, body: bytes = b"", *, etag: str = "") -> None:
    """Put an object over a source, by default with the same content under another ETag."""
    content = body or world.store.contents("source")[key(number)]
    world.store.seed("source", key(number), content, etag=etag)
    world.clock.advance(3_600)


def commits(world: World) -> list[Commit]:
    return list(CommitLog(world.store, world.settings, PARTITION).every_commit())


def skipped(receipt: Receipt) -> dict[str, tuple[int, tuple[str, ...]]]:
    return {name: (one.objects, one.examples) for name, one in receipt.skipped.items()}


def must_be_left_alone(world: World, *numbers: int) -> None:
    """Run, and require that these sources are counted as overwritten, unread and in no output."""
    before, reads = world.store.contents("lake", "compacted/"), world.store.count("read_source")
    receipt = world.run()
    keys = tuple(key(number) for number in numbers)
    assert (receipt.status, receipt.counts.objects_in) == ("done", 0)
    assert skipped(receipt)["overwritten"] == (len(numbers), keys)
    assert world.store.contents("lake", "compacted/") == before
    assert world.store.count("read_source") == reads
    assert len(commits(world)) == 1


def test_other_content_at_a_committed_key_is_left_alone_and_counted(world: World) -> None:
    overwrite(world, 1, b'{"id": "record-100"}\n')
    must_be_left_alone(world, 1)


def test_the_same_content_with_another_etag_is_left_alone(world: World) -> None:
    overwrite(world, 1, etag=ETAG)
    must_be_left_alone(world, 1)
    world.must_be_finished()


def test_the_same_content_in_another_compression_is_left_alone(world: World) -> None:
    overwrite(world, 2, gzip.compress(world.store.contents("source")[key(2)], mtime=0))
    must_be_left_alone(world, 2)


def test_new_keys_beside_it_are_compacted(world: World) -> None:
    overwrite(world, 0, etag=ETAG)
    world.add("9.json", '{{"id": "{}"}}')
    receipt = world.run()
    assert (receipt.counts.objects_in, skipped(receipt)["overwritten"]) == (1, (1, (key(0),)))
    world.must_be_finished()


def test_clean_up_deletes_the_others_and_never_what_was_put_over_one(world: World) -> None:
    overwrite(world, 1, b'{"id": "record-100"}\n')
    world.clock.advance(RETENTION + DAY)
    receipt = world.clean_up()
    assert (receipt.counts.deleted, receipt.counts.changed) == (2, 1)
    for _ in range(3):
        world.clock.advance(RETENTION + DAY)
        world.run()
        assert world.clean_up().counts.deleted == 0
    assert world.store.contents("source") == {key(1): b'{"id": "record-100"}\n'}


def test_what_comes_back_with_its_old_etag_after_clean_up_is_compacted_already(
    world: World,
) -> None:
    bodies = world.store.contents("source")
    world.clock.advance(RETENTION + DAY)
    assert world.clean_up().counts.deleted == 3
    for name, body in bodies.items():
        world.store.seed("source", name, body)
    world.clock.advance(3_600)
    assert skipped(world.run())["already_committed"][0] == 3
    world.must_be_finished()


@pytest.mark.parametrize("name", ["create", "complete_upload", "upload_part"])
def test_two_runs_that_list_two_etags_of_one_key_compact_it_once(name: str) -> None:
    world = World()
    world.add("0.json", '{{"id": "{}"}}')
    raced = False

    def race(call: Call) -> None:
        nonlocal raced
        if call.name == name and not raced:
            raced = True
            # It was read already, and is not committed yet.
            overwrite(world, 0, etag=ETAG)
            world.clock.advance(7_200)
            world.run()

    world.store.hooks.before.append(race)
    receipt = world.run()
    world.store.hooks.clear()
    assert raced
    assert receipt.status == "done"
    world.must_be_finished()
    assert world.store.unfinished_uploads("lake") == {}


def test_no_entry_names_a_committed_key_under_another_etag(world: World) -> None:
    log = CommitLog(world.store, world.settings, PARTITION)
    state, (commit,) = log.load(), commits(world)
    row = commit.rows[0]
    moved = row._replace(source=replace(row.source, etag="another"))
    draft = replace(commit, commit_id="another", rows=(moved,))
    with pytest.raises(CommitConflict, match="1 of 1 sources"):
        log.append(state, draft)
    assert len(commits(world)) == 1


def test_a_key_that_only_a_void_commit_names_is_compacted_under_its_new_etag(world: World) -> None:
    world.make_void(1)
    overwrite(world, 1, b'{"id": "record-100"}\n')
    world.records = {*range(3), *range(6, 9), 100}
    assert world.run().counts.objects_in == 3
    world.must_be_finished()


def test_a_checkpoint_keeps_the_keys(world: World) -> None:
    state = CommitLog(world.store, world.settings, PARTITION).load()
    source = commits(world)[0].rows[0].source
    other = replace(source, etag="another")
    kept = decode_checkpoint(encode_checkpoint(state, "p/"), "p/").committed
    assert source.identity in kept
    assert other.identity not in kept
    assert kept.has_key_of(other.identity)
    assert not kept.has_key_of(replace(source, key="another").identity)


def test_restore_gives_what_was_compacted(world: World) -> None:
    (before,) = {row.source.etag for row in commits(world)[0].rows if row.source.key == key(1)}
    overwrite(world, 1, b'{"id": "record-100"}\n')
    world.run()
    (found,) = find(commits(world), Wanted(frozenset({key(1)})))
    assert [row.source.etag for row in found.rows] == [before]
