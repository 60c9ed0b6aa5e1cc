"""Restore gives any source back, whatever became of its commit since."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from compactor.errors import IntegrityError, UnreadableSource
from compactor.log.entries import Commit
from compactor.log.log import CommitLog
from compactor.outputs.restore import Found, Wanted, find, restore
from compactor.outputs.slices import restored
from compactor.outputs.verify import check_commit
from tests.support.examples import ON_LINES, PARTITION
from tests.support.memory_store import Crashed
from tests.support.world import World

LOGS = "_compactor/compacted/partitions/"
BOM = b"\xef\xbb\xbf"
CONTENTS = {
    "a.json": b'{"id": 1}\n{"id": 2}',
    "b.json": b'{"id": 3}\r\n\n',
    "c.json": BOM + b'{"id": 4}',
    "d.json": b"",
    "e.csv": b"id,name\r\n1,a\r\n3,c\r\n",
    "f.csv": BOM + b"id,name\n2,b",
    "g.csv": b"id,name",
    "h_CloudTrail_.json": b' {"Records" : [ {"a":1}, {"a":2} ] } \n',
    "i_CloudTrail_.json": b'{"Records":[]}',
    "j_CloudTrail_.json": b'{"Records":[{"a":3}]}',
    "k.dat": b'{"a":1}{"a":2}  {"a":3}\n{"a":4}\n\n',
    "l.log": b"10.0.0.1 - - [31/Jan/2026:12:00:00 +0000] no line end",
}


def key(name: str) -> str:
    return PARTITION.prefix + name


def world_of(contents: dict[str, bytes], **given: object) -> World:
    world = World(**given)
    for name, content in contents.items():
        world.put(name, content)
    return world


def newest_first(world: World) -> list[Commit]:
    return list(CommitLog(world.store, world.settings, PARTITION).every_commit())


def give_back(world: World, wanted: Wanted) -> list[bytes]:
    return [
        b"".join(pieces)
        for found in find(newest_first(world), wanted)
        for _, pieces in restore(found, world.store)
    ]


def one(name: str) -> Wanted:
    return Wanted(frozenset({key(name)}))


@pytest.mark.parametrize("compression", ["same", "none", "gzip", "zstd"])
@pytest.mark.parametrize("lines", [False, True])
def test_every_source_comes_back_byte_for_byte_on_its_own(compression: str, lines: bool) -> None:
    other = {"formats": ON_LINES} if lines else {}
    world = world_of(CONTENTS, compression=compression, **other)
    world.run()
    for name, content in CONTENTS.items():
        assert give_back(world, one(name)) == [content], name


def test_several_sources_of_one_output_are_read_in_one_pass() -> None:
    world = world_of(CONTENTS)
    world.run()
    names = ("c.json", "a.json")
    commits = newest_first(world)
    before = world.store.count("get_range")
    (found,) = find(commits, Wanted(frozenset(map(key, names))))
    pieces = {row.source.key: b"".join(p) for row, p in restore(found, world.store)}
    assert pieces == {key(name): CONTENTS[name] for name in names}
    assert world.store.count("get_range") == before + 1


def test_a_source_without_a_commit_is_not_found() -> None:
    world = world_of(CONTENTS)
    world.run()
    assert give_back(world, one("never.json")) == []
    assert give_back(world, Wanted(frozenset({key("a.json")}), bucket="elsewhere")) == []
    here = Wanted(frozenset({key("a.json")}), bucket="source")
    assert give_back(world, here) == [CONTENTS["a.json"]]


def test_the_search_ends_with_the_last_key() -> None:
    world = world_of({"a.json": b"{}\n"})
    world.run()
    (commit,) = newest_first(world)

    def commits() -> Iterator[Commit]:
        yield commit
        pytest.fail("searched on, although every key was found")

    assert [found.commit for found in find(commits(), one("a.json"))] == [commit]


def test_sources_can_be_given_back_when_they_are_gone() -> None:
    world = world_of(CONTENTS, delete_after="0d")
    world.run()
    world.clean_up()
    assert world.store.contents("source") == {}
    for name, content in CONTENTS.items():
        assert give_back(world, one(name)) == [content]


def test_a_copy_comes_back_as_it_was_stored() -> None:
    world = world_of({"a.json": b'{"id": 1}'}, small_object_bytes=1)
    world.run()
    assert give_back(world, one("a.json")) == [b'{"id": 1}']


Damage = Callable[[bytes], bytes]
DAMAGES: dict[str, Damage] = {
    "other": lambda body: b"x" * len(body),
    "cut": lambda body: body[: len(body) // 2],
    "nothing": lambda body: b"",
}


@pytest.mark.parametrize("compression", ["none", "gzip", "zstd"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_content_is_never_given_back_as_if_it_were_sound(
    compression: str, damage: str
) -> None:
    content = {"a.json": b'{"id": 1}\n' * 9, "b.json": b'{"id": 2}\n' * 9}
    world = world_of(content, compression=compression)
    world.run()
    (commit,) = newest_first(world)
    assert commit.output is not None
    sound = world.store.contents("lake")[commit.output.key]
    world.store.seed("lake", commit.output.key, DAMAGES[damage](sound))
    with pytest.raises((IntegrityError, UnreadableSource)):
        give_back(world, one("b.json"))


def test_an_output_that_is_gone_is_reported() -> None:
    world = world_of({"a.json": b"{}\n"})
    world.run()
    (commit,) = newest_first(world)
    assert commit.output is not None
    world.store.remove("lake", commit.output.key)
    with pytest.raises(IntegrityError, match=r"commit 1, s3://lake/\S+, is gone: bring it back"):
        [b"".join(pieces) for _, pieces in restore(Found(commit, commit.rows), world.store)]


def test_slices_are_read_without_holding_the_output() -> None:
    world = world_of({f"{n}.json": b'{"id": 1}\n' * 100 for n in range(50)})
    world.run()
    (commit,) = newest_first(world)
    assert commit.output is not None
    body = world.store.contents("lake")[commit.output.key]
    handed_out = 0

    def stored() -> Iterator[bytes]:
        nonlocal handed_out
        for at in range(0, len(body), 100):
            handed_out += 1
            yield body[at : at + 100]

    rows = restored(commit, stored())
    _, pieces = next(rows)
    assert b"".join(pieces) == b'{"id": 1}\n' * 100
    assert handed_out == 10


# Commits that were replaced.


def lose_every_upload(world: World) -> None:
    for upload_id, name in world.store.unfinished_uploads("lake").items():
        world.store.abort_upload("lake", name, upload_id)


def die_before_publishing(world: World) -> None:
    # From the second time on, the first request is that for the upload that was lost.
    repairing = bool(newest_first(world))
    world.store.hooks.crash("before", "complete_upload", nth=2 if repairing else 1)
    with pytest.raises(Crashed):
        world.run()
    world.store.hooks.clear()
    lose_every_upload(world)


@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_commit_replaced_again_and_again_counts_once(times: int) -> None:
    world = world_of({"a.json": b'{"id": 1}\n', "b.json": b'{"id": 2}\n'})
    for _ in range(times):
        die_before_publishing(world)
    world.run()
    assert world.store.count("create", prefix=LOGS) == times + 2, "entries and a checkpoint"
    (commit,) = newest_first(world)
    assert commit.sequence == times + 1
    assert check_commit(commit, world.store) == 2
    assert give_back(world, one("a.json")) == [b'{"id": 1}\n']


def test_a_commit_replaced_after_a_source_changed_does_not_come_back() -> None:
    world = world_of({"a.json": b'{"id": 1}\n', "b.json": b'{"id": 2}\n'})
    die_before_publishing(world)
    die_before_publishing(world)
    world.put("a.json", b'{"id": 3}\n')
    world.run()
    for commit in newest_first(world):
        check_commit(commit, world.store)
    named = [row.source.key for commit in newest_first(world) for row in commit.rows]
    assert sorted(named) == [key("a.json"), key("b.json")]
    assert give_back(world, one("a.json")) == [b'{"id": 3}\n']
