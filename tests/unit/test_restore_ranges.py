"""A source comes back by a range of its output: from a point at which decoding can begin."""

from __future__ import annotations

import gzip
import random
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compactor.errors import IntegrityError, UnreadableSource
from compactor.limits import WorkerLimits
from compactor.log.encoding import decode_commit, encode_commit
from compactor.log.entries import Commit, Output
from compactor.log.log import CommitLog
from compactor.outputs.restore import Found, restore
from tests.support.examples import PARTITION
from tests.support.memory_store import Call
from tests.support.world import World

MIB = 1 << 20
# Encoders give out what they hold every 256 KiB or so: points are no closer than that.
CLOSE = WorkerLimits(point_bytes=2_000)


def lines(seed: int, size: int) -> bytes:
    """JSON lines that pack to about a quarter."""
    draw = random.Random(seed)
    found = bytearray()
    while len(found) < size:
        found += b'{"id": %d, "user": "%x", "ok": true}\n' % (seed, draw.getrandbits(64))
    return bytes(found)


def compacted(
    sources: Sequence[bytes], limits: WorkerLimits = CLOSE, **settings: object
) -> tuple[World, Commit]:
    world = World(limits=limits, **settings)
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


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_one_of_many_sources_costs_one_range(compression: str) -> None:
    sources = [lines(seed, 10_000) for seed in range(300)]
    world, commit = compacted(sources, compression=compression)
    for n in (0, 1, 149, 298, 299):
        read, before = len(list(reads(world))), world.store.requests.snapshot()["bytes_read"]
        assert given_back(world, commit, [n]) == [sources[n]]
        (call,) = list(reads(world))[read:]
        assert call.name == "get_range"
        taken = world.store.requests.snapshot()["bytes_read"] - before
        assert taken < output_of(commit).size / 10


def test_a_small_source_of_a_large_output_takes_less_than_a_mebibyte() -> None:
    # What hardly packs: the worst case, as points lie by what is encoded.
    draw = random.Random(1)
    sources = [b'{"v": "%s"}\n' % draw.randbytes(2_000).hex().encode() for _ in range(2_000)]
    world, commit = compacted(sources, WorkerLimits(), compression="gzip")
    assert len(output_of(commit).points) >= 3
    before = world.store.requests.snapshot()["bytes_read"]
    assert given_back(world, commit, [1_234]) == [sources[1_234]]
    assert world.store.requests.snapshot()["bytes_read"] - before < MIB


def test_zlib_reads_on_from_every_point_and_gzip_sees_one_member() -> None:
    sources = [lines(seed, 10_000) for seed in range(200)]
    world, commit = compacted(sources, compression="gzip")
    stored, output = stored_of(world, commit), output_of(commit)
    plain = b"".join(sources)
    assert gzip.decompress(stored) == plain
    member = zlib.decompressobj(31)
    assert member.decompress(stored) == plain
    assert (member.eof, member.unused_data) == (True, b"")
    begins = {row.offset for row in commit.rows}
    assert len(output.points) > 5
    for at, before in output.points:
        assert before in begins
        assert zlib.decompressobj(-15).decompress(stored[at:]) == plain[before:]


def test_points_are_as_far_apart_as_was_asked_for() -> None:
    sources = [lines(seed, 7_000) for seed in range(300)]
    _, commit = compacted(sources, WorkerLimits(point_bytes=5_000), compression="gzip")
    places = [0, *(at for at, _ in output_of(commit).points)]
    apart = [after - before for before, after in pairwise(places)]
    assert min(apart) >= 5_000
    assert max(apart) < 200_000


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_other_outputs_have_no_points(compression: str) -> None:
    _, commit = compacted([lines(seed, 20_000) for seed in range(50)], compression=compression)
    assert output_of(commit).points == ()


@given(
    sizes=st.lists(st.sampled_from([0, 1, 90, 20_000, 300_000]), min_size=1, max_size=20),
    compression=st.sampled_from(["none", "gzip", "zstd"]),
    segment=st.sampled_from([1_000, 50_000, 1 << 22]),
    data=st.data(),
)
@settings(max_examples=40, deadline=None)
def test_any_sources_come_back_from_any_output(
    sizes: list[int], compression: str, segment: int, data: st.DataObject
) -> None:
    sources = [lines(seed, size)[:-1] if size else b"" for seed, size in enumerate(sizes)]
    limits = replace(CLOSE, segment_bytes=segment)
    world = World(limits=limits, compression=compression)
    for number, content in enumerate(sources):
        world.put(f"{number:05d}.json", content)
    world.run()
    for commit in CommitLog(world.store, world.settings, PARTITION).every_commit():
        wanted = sorted(data.draw(st.sets(st.integers(0, len(commit.rows) - 1), min_size=1)))
        names = [int(commit.rows[n].source.key[-10:-5]) for n in wanted]
        assert given_back(world, commit, wanted) == [sources[n] for n in names]


def test_many_of_its_sources_are_read_in_one_pass() -> None:
    sources = [lines(seed, 10_000) for seed in range(200)]
    world, commit = compacted(sources, compression="gzip")
    before = len(list(reads(world)))
    assert given_back(world, commit, range(0, 200, 2)) == sources[::2]
    assert [call.name for call in list(reads(world))[before:]] == ["open"]


def test_an_output_of_an_earlier_version_is_read_from_its_start() -> None:
    sources = [lines(seed, 10_000) for seed in range(200)]
    world, commit = compacted(sources, compression="gzip")
    earlier = replace(commit, output=replace(output_of(commit), points=()))
    assert given_back(world, earlier, [150]) == [sources[150]]


def test_the_entry_keeps_the_points() -> None:
    _, commit = compacted([lines(seed, 20_000) for seed in range(50)], compression="gzip")
    kept = decode_commit(encode_commit(commit))
    assert output_of(kept).points == output_of(commit).points != ()


def test_damage_in_the_range_is_never_given_back() -> None:
    sources = [lines(seed, 10_000) for seed in range(200)]
    world, commit = compacted(sources, compression="gzip")
    stored, output = stored_of(world, commit), output_of(commit)
    at = next(at for at, before in output.points if before >= commit.rows[100].offset)
    for place in range(at - 1_000, at, 50):
        harmed = bytearray(stored)
        harmed[place] ^= 0x10
        world.store.seed("lake", output.key, bytes(harmed))
        # Where the bit lies in another source of the range, this one may be sound.
        try:
            assert given_back(world, commit, [100]) == [sources[100]]
        except (IntegrityError, UnreadableSource):
            continue


@pytest.mark.parametrize(
    "points",
    [((50, 10), (40, 20)), ((50, 20), (60, 20)), ((10**9, 500),)],
    ids=["back", "not on", "behind the end"],
)
def test_points_that_cannot_be_are_reported(points: tuple[tuple[int, int], ...]) -> None:
    world, commit = compacted([lines(1, 90_000), lines(2, 90_000)], compression="gzip")
    wrong = replace(commit, output=replace(output_of(commit), points=points))
    with pytest.raises(IntegrityError, match="is no point after"):
        given_back(world, wrong, [1])
