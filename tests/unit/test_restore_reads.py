"""How much of an output is read to restore its sources: once, and only as far as needed."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compactor.errors import IntegrityError, UnreadableSource
from compactor.log.entries import Commit, Output
from compactor.log.log import CommitLog
from compactor.outputs.restore import Found, restore
from tests.support.examples import PARTITION
from tests.support.memory_store import Call
from tests.support.world import World


def lines(seed: int, size: int) -> bytes:
    """JSON lines that pack to about a quarter."""
    draw = random.Random(seed)
    found = bytearray()
    while len(found) < size:
        found += b'{"id": %d, "user": "%x", "ok": true}\n' % (seed, draw.getrandbits(64))
    return bytes(found)


def compacted(sources: Sequence[bytes], **settings: object) -> tuple[World, Commit]:
    world = World(**settings)
    for number, content in enumerate(sources):
        world.put(f"{number:05d}.json", content)
    world.run()
    (commit,) = CommitLog(world.store, world.settings, PARTITION).every_commit()
    return world, commit


def output_of(commit: Commit) -> Output:
    assert commit.output is not None
    return commit.output


def stored_of(world: World, commit: Commit) -> bytes:
    return world.store.contents("lake")[output_of(commit).key]


def given_back(world: World, commit: Commit, wanted: Sequence[int]) -> list[bytes]:
    found = Found(commit, tuple(commit.rows[n] for n in wanted))
    return [b"".join(pieces) for _, pieces in restore(found, world.store)]


def reads(world: World) -> Iterator[Call]:
    return (call for call in world.store.calls if call.name in {"open", "get_range"})


def test_one_source_of_a_plain_output_is_read_by_its_range() -> None:
    sources = [lines(seed, 10_000) for seed in range(300)]
    world, commit = compacted(sources)
    for n in (0, 1, 149, 298, 299):
        read, before = len(list(reads(world))), world.store.requests.snapshot()["bytes_read"]
        assert given_back(world, commit, [n]) == [sources[n]]
        assert [call.name for call in list(reads(world))[read:]] == ["get_range"]
        taken = world.store.requests.snapshot()["bytes_read"] - before
        assert taken == len(sources[n])


def test_damage_is_never_given_back() -> None:
    sources = [lines(seed, 10_000) for seed in range(50)]
    for compression in ("none", "gzip", "zstd"):
        world, commit = compacted(sources, compression=compression)
        stored, output = stored_of(world, commit), output_of(commit)
        for place in range(1_000, len(stored), len(stored) // 40):
            harmed = bytearray(stored)
            harmed[place] ^= 0x10
            world.store.seed("lake", output.key, bytes(harmed))
            # Where the bit lies in another source, this one may be sound.
            try:
                assert given_back(world, commit, [20]) == [sources[20]]
            except (IntegrityError, UnreadableSource):
                continue


@given(
    sizes=st.lists(st.sampled_from([0, 1, 90, 20_000, 300_000]), min_size=1, max_size=20),
    compression=st.sampled_from(["none", "gzip", "zstd"]),
    data=st.data(),
)
@settings(max_examples=40, deadline=None)
def test_any_sources_come_back_from_any_output(
    sizes: list[int], compression: str, data: st.DataObject
) -> None:
    sources = [lines(seed, size)[:-1] if size else b"" for seed, size in enumerate(sizes)]
    world = World(compression=compression)
    for number, content in enumerate(sources):
        world.put(f"{number:05d}.json", content)
    world.run()
    for commit in CommitLog(world.store, world.settings, PARTITION).every_commit():
        wanted = sorted(data.draw(st.sets(st.integers(0, len(commit.rows) - 1), min_size=1)))
        names = [int(commit.rows[n].source.key[-10:-5]) for n in wanted]
        assert given_back(world, commit, wanted) == [sources[n] for n in names]


@pytest.mark.parametrize(
    ("compression", "read"), [("none", "get_range"), ("gzip", "open"), ("zstd", "open")]
)
def test_many_of_its_sources_are_read_in_one_pass(compression: str, read: str) -> None:
    sources = [lines(seed, 10_000) for seed in range(200)]
    world, commit = compacted(sources, compression=compression)
    before = len(list(reads(world)))
    assert given_back(world, commit, range(0, 200, 2)) == sources[::2]
    assert [call.name for call in list(reads(world))[before:]] == [read]
