"""Outputs of several zstd frames: a source comes back by a range, and its own frame unchanged."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from shutil import which
from typing import Any

import duckdb
import pyarrow as pa
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from compactor.codecs.codecs import Limits, decompress
from compactor.codecs.decoders import is_one_frame
from compactor.codecs.encoders import encoder
from compactor.errors import IntegrityError, UnreadableSource
from compactor.limits import WorkerLimits
from compactor.log.encoding import decode_commit, encode_commit
from compactor.log.entries import Commit
from compactor.model import Compression
from compactor.outputs.verify import check_commit
from tests.support.as_stored import commits, given_back, only
from tests.support.memory_store import Call
from tests.support.world import World

MIB = 1 << 20
CLOSE = WorkerLimits(point_bytes=2_000)
SKIPPABLE = b"\x50\x2a\x4d\x18\x03\0\0\0abc"
BLOCKS = 128 << 10


def lines(seed: int, count: int = 20) -> bytes:
    draw = random.Random(seed)
    return b"".join(b'{"id": %d, "v": "%x"}\n' % (n, draw.getrandbits(64)) for n in range(count))


def frame(content: bytes, level: int = 5, **how: Any) -> bytes:
    return zstandard.ZstdCompressor(level=level, **how).compress(content)


def plain(stored: bytes) -> bytes:
    return decompress(stored, Compression.ZSTD, limits=Limits(None, None))


def compacted(stored: Sequence[bytes], ending: str = ".json.zst", **given: object) -> World:
    world = World(**{"zstd_output": "frames", **given})
    for number, content in enumerate(stored):
        world.put(f"{number:05d}{ending}", content)
    world.run()
    return world


def read_for(world: World, commit: Commit, number: int, **how: bool) -> tuple[list[Call], int]:
    """The requests for the source of this number, and the bytes that they read."""
    calls, before = len(world.store.calls), world.store.requests.snapshot()["bytes_read"]
    given_back(world, commit, [number], **how)
    return world.store.calls[calls:], world.store.requests.snapshot()["bytes_read"] - before


# Sources that are encoded.


def test_one_frame_is_the_default() -> None:
    world = World(compression="zstd", limits=CLOSE)
    for number in range(50):
        world.put(f"{number:05d}.json", lines(number, 300))
    world.run()
    _, output, body = only(world)
    assert is_one_frame(body)
    assert (output.points, output.members) == ((), False)


def test_an_output_without_content_is_one_empty_frame() -> None:
    world = compacted(
        [b'{"Records":[]}'], "_CloudTrail_.json", compression="zstd", cloudtrail_output="lines"
    )
    commit, _, body = only(world)
    assert is_one_frame(body)
    assert plain(body) == b""
    assert check_commit(commit, world.store) == 0
    assert given_back(world, commit, [0]) == [b'{"Records":[]}']


def test_a_frame_begins_at_each_point_and_nowhere_else() -> None:
    sources = [lines(seed, 300) for seed in range(200)]
    world = compacted(sources, ".json", compression="zstd", limits=CLOSE)
    commit, output, body = only(world)
    begins = {row.offset for row in commit.rows}
    assert len(output.points) > 5
    places = [(0, 0), *output.points, (len(body), output.plain_bytes)]
    for (start, before), (end, behind) in pairwise(places):
        assert before in begins
        assert is_one_frame(body[start:end])
        assert zstandard.get_frame_parameters(body[start:end]).has_checksum
        assert plain(body[start:end]) == b"".join(sources)[before:behind]
    assert check_commit(commit, world.store) == 200 * 300


def test_one_of_many_sources_costs_one_range() -> None:
    sources = [lines(seed, 300) for seed in range(300)]
    world = compacted(sources, ".json", compression="zstd", limits=CLOSE)
    commit, output, _ = only(world)
    for n in (0, 1, 149, 298, 299):
        assert given_back(world, commit, [n]) == [sources[n]]
        calls, read = read_for(world, commit, n)
        assert [call.name for call in calls] == ["get_range"]
        assert read < output.size / 10


def test_a_small_source_of_a_large_output_takes_less_than_a_mebibyte() -> None:
    # What hardly packs: the worst case, as points lie by what is encoded.
    draw = random.Random(1)
    sources = [b'{"v": "%s"}\n' % draw.randbytes(2_000).hex().encode() for _ in range(2_000)]
    world = compacted(sources, ".json", compression="zstd")
    commit, output, _ = only(world)
    assert len(output.points) >= 3
    _, read = read_for(world, commit, 1_234)
    assert read < MIB


# Sources whose own frames are taken.


def test_an_output_is_its_sources_one_behind_the_other() -> None:
    stored = [frame(lines(seed), level=seed % 19 + 1) for seed in range(30)]
    world = compacted(stored)
    commit, output, body = only(world)
    assert body == b"".join(stored)
    assert output.records == 30 * 20
    assert check_commit(commit, world.store) == 600


@pytest.mark.parametrize(
    "how",
    [
        {"write_checksum": True},
        {"write_checksum": False},
        {"write_content_size": False},
    ],
    ids=lambda how: f"{how}",
)
def test_any_one_frame_is_taken_and_comes_back_identical_by_one_range_of_its_size(
    how: dict[str, bool],
) -> None:
    stored = [frame(lines(seed), **how) for seed in range(50)]
    commit, _, body = only(world := compacted(stored))
    assert body == b"".join(stored)
    assert given_back(world, commit, [31], as_stored=True) == [stored[31]]
    assert given_back(world, commit, [31]) == [lines(31)]
    calls, read = read_for(world, commit, 31, as_stored=True)
    assert [call.name for call in calls] == ["get_range"]
    assert read == len(stored[31])


def test_all_of_many_come_back_identical_in_one_pass() -> None:
    stored = [frame(lines(seed)) for seed in range(100)]
    commit, _, _ = only(world := compacted(stored))
    before = len(world.store.calls)
    assert given_back(world, commit, range(100), as_stored=True) == stored
    assert [call.name for call in world.store.calls[before:]] == ["open"]


def test_a_missing_last_newline_is_a_frame_of_its_own() -> None:
    stored = [frame(lines(seed)[:-1]) for seed in range(5)]
    commit, _, body = only(world := compacted(stored))
    assert plain(body) == b"".join(lines(seed) for seed in range(5))
    for n, one in enumerate(stored):
        assert one in body
        assert given_back(world, commit, [n], as_stored=True) == [one]
        assert given_back(world, commit, [n]) == [plain(one)]


def several(content: bytes) -> bytes:
    return frame(content[:50]) + frame(content[50:])


def skipped_before(content: bytes) -> bytes:
    return SKIPPABLE + frame(content)


def skipped_behind(content: bytes) -> bytes:
    return frame(content) + SKIPPABLE


def empty_behind(content: bytes) -> bytes:
    return frame(content) + frame(b"")


def skipped_like_a_frame(content: bytes) -> bytes:
    """Behind another magic, what is skipped and what follows would be a frame of two blocks."""
    stored = frame(content)
    left = 32 + len(stored) - 4
    blocks = bytes(1) + (1 | left << 3).to_bytes(3, "little") + bytes(28)
    return b"\x50\x2a\x4d\x18" + (0x20).to_bytes(4, "little") + blocks + stored


def with_a_mark(content: bytes) -> bytes:
    return frame(b"\xef\xbb\xbf" + content)


def with_a_large_window(content: bytes) -> bytes:
    parameters = zstandard.ZstdCompressionParameters(window_log=24)
    # Of unknown size, else the window is no larger than the content.
    one = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    stored = one.compress(content) + one.flush()
    assert zstandard.get_frame_parameters(stored).window_size == 16 * MIB
    return stored


ODD = [
    several,
    skipped_before,
    skipped_behind,
    skipped_like_a_frame,
    empty_behind,
    with_a_mark,
    with_a_large_window,
]


@pytest.mark.parametrize("store", ODD)
def test_what_readers_might_not_take_is_encoded_anew_among_the_others(
    store: Callable[[bytes], bytes],
) -> None:
    contents = [lines(seed) for seed in range(9)]
    stored = [store(one) if n % 3 == 1 else frame(one) for n, one in enumerate(contents)]
    commit, _, body = only(world := compacted(stored))
    assert plain(body) == b"".join(contents)
    kept = [row.stored_at is not None for row in commit.rows]
    assert kept == [n % 3 != 1 for n in range(9)]
    for n, one in enumerate(stored):
        assert given_back(world, commit, [n]) == [plain(one)]
        expected = one if kept[n] else plain(one)
        assert given_back(world, commit, [n], as_stored=True) == [expected]


@pytest.mark.parametrize(
    ("ending", "content"),
    [
        (".csv.zst", b"id,name\n1,a\n2,b\n"),
        ("_CloudTrail_.json.zst", b'{"Records":[{"a":1},{"a":2}]}'),
        (".dat.zst", b'{"a":1}{"a":2}'),
    ],
)
def test_sources_that_are_joined_otherwise_are_joined_as_ever(ending: str, content: bytes) -> None:
    stored = [frame(content)] * 4
    world, usual = compacted(stored, ending), compacted(stored, ending, zstd_output="frame")
    (commit, _, body), (_, _, expected) = only(world), only(usual)
    assert plain(body) == plain(expected)
    for n in range(4):
        assert given_back(world, commit, [n], as_stored=True) == [content]


@pytest.mark.parametrize(
    ("packed", "to"), [("zstd", "gzip"), ("gzip", "zstd"), ("zstd", "none")], ids=str
)
def test_a_source_of_another_compression_is_never_taken_as_it_is(packed: str, to: str) -> None:
    content = [lines(seed) for seed in range(3)]
    one = encoder(Compression(packed))
    stored = one.write(content[0]) + one.finish()
    world = compacted([stored], ".json", compression=to, gzip_output="members")
    commit, output, body = only(world)
    assert output.compression == Compression(to)
    assert commit.rows[0].stored_at is None
    assert decompress(body, Compression(to), limits=Limits()) == content[0]


def test_a_source_that_is_not_held_whole_is_encoded_anew() -> None:
    objects = b"".join(b'{"a":%d}' % n for n in range(500))
    limits = WorkerLimits(whole_bytes=1_000)
    world = compacted([frame(objects)], ".dat.zst", limits=limits, undelimited_output="as_is")
    commit, _, body = only(world)
    assert commit.rows[0].stored_at is None
    assert plain(body) == objects
    assert check_commit(commit, world.store) == 500


def test_between_its_sources_own_frames_one_that_was_encoded_is_a_range_by_itself() -> None:
    content = [lines(seed, 200) for seed in range(60)]
    stored = [several(one) if n % 30 == 7 else frame(one) for n, one in enumerate(content)]
    commit, output, _ = only(world := compacted(stored))
    for n in (7, 37):
        assert commit.rows[n].stored_at is None
        assert given_back(world, commit, [n]) == [content[n]]
        calls, read = read_for(world, commit, n)
        assert [call.name for call in calls] == ["get_range"]
        assert read < output.size / 30


def test_a_source_of_which_nothing_is_written_is_no_place_to_begin_at() -> None:
    stored = [frame(b'{"a":1}'), frame(b" \n "), frame(b'{"a":2}'), several(b'{"a":3}' * 90)]
    given = {"format": "undelimited_json", "undelimited_output": "as_is"}
    commit, _, body = only(world := compacted(stored, ".dat.zst", **given))
    assert plain(body) == b'{"a":1}{"a":2}' + b'{"a":3}' * 90
    for n, one in enumerate(stored):
        assert given_back(world, commit, [n]) == [plain(one)]


def test_the_entry_keeps_where_each_lies() -> None:
    stored = [several(lines(seed)) if seed == 2 else frame(lines(seed)) for seed in range(5)]
    commit, _, _ = only(compacted(stored))
    kept = decode_commit(encode_commit(commit))
    assert kept.output == commit.output
    assert [row.stored_at for row in kept.rows] == [row.stored_at for row in commit.rows]
    assert kept.rows[1].stored_at == len(stored[0])
    assert kept.rows[2].stored_at is None


def test_another_frame_is_never_given_back() -> None:
    stored = [frame(lines(seed)) for seed in range(5)]
    commit, output, body = only(world := compacted(stored))
    behind_header = len(stored[0]) + 12
    for place in range(behind_header, len(stored[0]) + len(stored[1]), 7):
        harmed = bytearray(body)
        harmed[place] ^= 1
        world.store.seed("lake", output.key, bytes(harmed))
        with pytest.raises((IntegrityError, UnreadableSource)):
            given_back(world, commit, [1], as_stored=True)
    world.store.seed("lake", output.key, body)
    # Each is sound by itself; it is not what was read.
    swapped = tuple(row._replace(stored_at=commit.rows[0].stored_at) for row in commit.rows)
    with pytest.raises((IntegrityError, UnreadableSource)):
        given_back(world, replace(commit, rows=swapped), [1], as_stored=True)
    world.store.remove("lake", output.key)
    with pytest.raises(IntegrityError, match="is gone"):
        given_back(world, commit, [1], as_stored=True)


KINDS: dict[str, Callable[[bytes], bytes]] = {
    "frame": frame,
    "plain": bytes,
    "several": several,
    "skippable": skipped_before,
    "marked": with_a_mark,
    "empty": lambda _: frame(b""),
    "blank": lambda _: frame(b"\xef\xbb\xbf"),
}


@given(
    kinds=st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=25),
    sizes=st.lists(st.sampled_from([1, 20, 3_000]), min_size=25, max_size=25),
    ended=st.lists(st.booleans(), min_size=25, max_size=25),
    blocks=st.sampled_from([300, 1 << 20]),
)
@settings(max_examples=60, deadline=None)
def test_any_mixture_is_read_whole_and_given_back(
    kinds: list[str], sizes: list[int], ended: list[bool], blocks: int
) -> None:
    limits = WorkerLimits(point_bytes=1_000, block_bytes=blocks)
    contents = [lines(n, sizes[n])[: None if ended[n] else -1] for n in range(len(kinds))]
    stored = [KINDS[kind](one) for kind, one in zip(kinds, contents, strict=True)]
    world = compacted(stored, limits=limits, compression="zstd")
    seen = []
    for commit in commits(world):
        check_commit(commit, world.store)
        for n, row in enumerate(commit.rows):
            number = int(row.source.key[-14:-9])
            seen.append(number)
            own = stored[number]
            content = own if kinds[number] == "plain" else plain(own)
            assert given_back(world, commit, [n]) == [content]
            if row.stored_at is not None:
                assert given_back(world, commit, [n], as_stored=True) == [own]
    assert sorted(seen) == [*range(len(kinds))]


# What others make of several frames.


def _zstd_command(path: Path) -> bytes:
    program = which("zstd")
    if program is None:
        pytest.skip("no zstd here")
    return subprocess.run([program, "-dc", path], capture_output=True, check=True).stdout


def _arrow(path: Path) -> bytes:
    with pa.input_stream(path, compression="zstd") as stream:
        return bytes(stream.read())


def _duckdb(path: Path) -> bytes:
    query = "SELECT id, v FROM read_json(?, format='newline_delimited', compression='zstd')"
    rows = duckdb.execute(query, [str(path)]).fetchall()
    return b"".join(b'{"id": %d, "v": "%s"}\n' % (n, value.encode()) for n, value in rows)


def _stream_reader(path: Path) -> bytes:
    with path.open("rb") as file:
        return zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True).read()


@pytest.mark.parametrize("reader", [_zstd_command, _arrow, _duckdb, _stream_reader])
def test_programs_of_others_read_all_frames(
    reader: Callable[[Path], bytes], tmp_path: Path
) -> None:
    _, _, body = only(compacted([frame(lines(seed)[:-1]) for seed in range(9)]))
    path = tmp_path / "output.json.zst"
    path.write_bytes(body)
    assert reader(path) == b"".join(lines(seed) for seed in range(9))


def test_one_frame_is_the_default_because_some_stop_behind_the_first() -> None:
    _, _, body = only(compacted([frame(lines(seed)) for seed in range(9)]))
    assert zstandard.ZstdDecompressor().decompress(body) == lines(0)
