"""Outputs made of their sources' own gzip members: nothing in these changes, and they come back."""

from __future__ import annotations

import gzip
import random
import subprocess
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from shutil import which

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compactor.errors import IntegrityError, UnreadableSource
from compactor.limits import WorkerLimits
from compactor.log.encoding import decode_commit, encode_commit
from compactor.outputs.verify import check_commit
from tests.support.as_stored import commits, given_back, only
from tests.support.world import World

LINE = b'{"id": %d, "v": "%x"}\n'


def lines(seed: int, count: int = 20) -> bytes:
    draw = random.Random(seed)
    return b"".join(LINE % (n, draw.getrandbits(64)) for n in range(count))


def packed(content: bytes, level: int = 9) -> bytes:
    return gzip.compress(content, level, mtime=7)


def compacted(stored: Sequence[bytes], ending: str = ".json.gz", **given: object) -> World:
    world = World(gzip_output="members", **given)
    for number, content in enumerate(stored):
        world.put(f"{number:05d}{ending}", content)
    world.run()
    return world


def test_an_output_is_its_sources_one_behind_the_other() -> None:
    stored = [packed(lines(seed)) for seed in range(30)]
    world = compacted(stored)
    commit, output, body = only(world)
    assert body == b"".join(stored)
    assert gzip.decompress(body) == b"".join(map(gzip.decompress, stored))
    assert output.records == 30 * 20
    assert check_commit(commit, world.store) == 600


def test_a_missing_last_newline_is_a_member_of_its_own() -> None:
    stored = [packed(lines(seed)[:-1]) for seed in range(5)]
    world = compacted(stored)
    commit, _, body = only(world)
    assert gzip.decompress(body) == b"".join(lines(seed) for seed in range(5))
    for n, one in enumerate(stored):
        assert one in body
        assert given_back(world, commit, [n], as_stored=True) == [one]
        assert given_back(world, commit, [n]) == [gzip.decompress(one)]


def test_a_source_comes_back_identical_by_one_range_of_its_size() -> None:
    stored = [packed(lines(seed), level=seed % 9 + 1) for seed in range(50)]
    world = compacted(stored)
    (commit, _, _) = only(world)
    before = len(world.store.calls), world.store.requests.snapshot()["bytes_read"]
    assert given_back(world, commit, [31], as_stored=True) == [stored[31]]
    assert [call.name for call in world.store.calls[before[0] :]] == ["get_range"]
    assert world.store.requests.snapshot()["bytes_read"] - before[1] == len(stored[31])


def test_all_of_many_come_back_identical_in_one_pass() -> None:
    stored = [packed(lines(seed)) for seed in range(100)]
    world = compacted(stored)
    (commit, _, _) = only(world)
    before = len(world.store.calls)
    assert given_back(world, commit, range(100), as_stored=True) == stored
    assert [call.name for call in world.store.calls[before:]] == ["open"]


def several_members(content: bytes) -> bytes:
    return packed(content[:50]) + packed(content[50:])


def padded(content: bytes) -> bytes:
    return packed(content) + b"\0" * 512


def with_a_mark(content: bytes) -> bytes:
    return packed(b"\xef\xbb\xbf" + content)


@pytest.mark.parametrize("store", [several_members, padded, with_a_mark])
def test_what_readers_might_not_take_is_encoded_anew_among_the_others(
    store: Callable[[bytes], bytes],
) -> None:
    contents = [lines(seed) for seed in range(9)]
    stored = [store(one) if n % 3 == 1 else packed(one) for n, one in enumerate(contents)]
    world = compacted(stored)
    commit, _, body = only(world)
    assert gzip.decompress(body) == b"".join(contents)
    kept = [row.stored_at is not None for row in commit.rows]
    assert kept == [n % 3 != 1 for n in range(9)]
    for n, one in enumerate(stored):
        assert given_back(world, commit, [n]) == [gzip.decompress(one)]
        expected = one if kept[n] else gzip.decompress(one)
        assert given_back(world, commit, [n], as_stored=True) == [expected]


def test_a_source_that_only_ends_like_a_member_is_encoded_anew() -> None:
    content = lines(1)
    # The second member is empty but for its trailer's words: those of the whole.
    trailer = zlib.crc32(content).to_bytes(4, "little") + len(content).to_bytes(4, "little")
    world = compacted([packed(content), packed(content) + trailer])
    assert [row.source.key[-10:-8] for one in commits(world) for row in one.rows] == ["00"]


@pytest.mark.parametrize(
    ("ending", "content"),
    [
        (".csv.gz", b"id,name\n1,a\n2,b\n"),
        ("_CloudTrail_.json.gz", b'{"Records":[{"a":1},{"a":2}]}'),
        (".dat.gz", b'{"a":1}{"a":2}'),
    ],
)
def test_sources_that_are_joined_otherwise_are_joined_as_ever(ending: str, content: bytes) -> None:
    world = compacted([packed(content)] * 4, ending)
    usual = World()
    for number in range(4):
        usual.put(f"{number:05d}{ending}", packed(content))
    usual.run()
    (commit, _, body), (_, _, expected) = only(world), only(usual)
    assert gzip.decompress(body) == gzip.decompress(expected)
    for n in range(4):
        assert given_back(world, commit, [n], as_stored=True) == [content]


def test_an_output_without_content_is_one_empty_member() -> None:
    world = compacted([packed(b'{"Records":[]}')], "_CloudTrail_.gz", cloudtrail_output="lines")
    commit, _, body = only(world)
    assert body.startswith(b"\x1f\x8b")
    assert gzip.decompress(body) == b""
    assert check_commit(commit, world.store) == 0
    assert given_back(world, commit, [0]) == [b'{"Records":[]}']


def test_a_source_that_is_not_held_whole_is_encoded_anew() -> None:
    objects = b"".join(b'{"a":%d}' % n for n in range(500))
    limits = WorkerLimits(whole_bytes=1_000)
    world = compacted([packed(objects)], ".dat.gz", limits=limits, undelimited_output="as_is")
    commit, _, body = only(world)
    assert commit.rows[0].stored_at is None
    assert gzip.decompress(body) == objects
    assert check_commit(commit, world.store) == 500


def test_between_its_sources_own_members_one_that_was_encoded_is_a_range_by_itself() -> None:
    contents = [lines(seed, 200) for seed in range(60)]
    stored = [several_members(one) if n == 7 else packed(one) for n, one in enumerate(contents)]
    world = compacted(stored)
    commit, output, _ = only(world)
    before = world.store.requests.snapshot()["bytes_read"]
    assert given_back(world, commit, [7]) == [contents[7]]
    assert world.store.requests.snapshot()["bytes_read"] - before < output.size / 30


def test_plain_and_zstd_outputs_know_no_members() -> None:
    for compression in ("none", "zstd"):
        world = compacted([packed(lines(1))], compression=compression)
        commit, output, _ = only(world)
        assert not output.members
        assert commit.rows[0].stored_at is None


@pytest.mark.parametrize("program", ["zcat", "gunzip -c", "python3 -m gzip -d"])
def test_programs_of_others_read_all_members(program: str, tmp_path) -> None:
    words = program.split()
    if which(words[0]) is None:
        pytest.skip(f"no {words[0]} here")
    world = compacted([packed(lines(seed)[:-1]) for seed in range(9)])
    _, _, body = only(world)
    path = tmp_path / "output.json.gz"
    path.write_bytes(body)
    if words[0] == "python3":
        plain = gzip.decompress(path.read_bytes())
    else:
        plain = subprocess.run([*words, path], capture_output=True, check=True).stdout
    assert plain == b"".join(lines(seed) for seed in range(9))


def test_the_entry_keeps_where_each_lies() -> None:
    world = compacted([packed(lines(seed)) for seed in range(5)])
    (commit, _, _) = only(world)
    kept = decode_commit(encode_commit(commit))
    assert [row.stored_at for row in kept.rows] == [row.stored_at for row in commit.rows]
    assert kept.rows[1].stored_at == commit.rows[0].source.size
    assert kept.output == commit.output


def test_another_member_is_never_given_back() -> None:
    stored = [packed(lines(seed)) for seed in range(5)]
    world = compacted(stored)
    commit, output, body = only(world)
    harmed = bytearray(body)
    harmed[len(stored[0]) + 40] ^= 1
    world.store.seed("lake", output.key, bytes(harmed))
    with pytest.raises((IntegrityError, UnreadableSource)):
        given_back(world, commit, [1], as_stored=True)
    # Each is sound by itself; it is not what was read.
    swapped = tuple(replace_at(row, commit.rows[0].stored_at) for row in commit.rows)
    with pytest.raises((IntegrityError, UnreadableSource)):
        given_back(world, replace(commit, rows=swapped), [1], as_stored=True)
    world.store.remove("lake", output.key)
    with pytest.raises(IntegrityError, match="is gone"):
        given_back(world, commit, [1], as_stored=True)


def replace_at(row, at):
    return row._replace(stored_at=at)


KINDS: dict[str, Callable[[bytes], bytes]] = {
    "member": packed,
    "plain": bytes,
    "several": several_members,
    "marked": with_a_mark,
    "empty": lambda _: packed(b""),
}


@given(
    kinds=st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=25),
    sizes=st.lists(st.sampled_from([1, 20, 3_000]), min_size=25, max_size=25),
    ended=st.lists(st.booleans(), min_size=25, max_size=25),
    segment=st.sampled_from([300, 5_000, 1 << 22]),
)
@settings(max_examples=60, deadline=None)
def test_any_mixture_is_read_whole_and_given_back(
    kinds: list[str], sizes: list[int], ended: list[bool], segment: int
) -> None:
    limits = WorkerLimits(point_bytes=1_000, segment_bytes=segment)
    contents = [
        lines(n, sizes[n])[: None if ended[n] else -1] if kind != "empty" else b""
        for n, kind in enumerate(kinds)
    ]
    stored = [KINDS[kind](one) for kind, one in zip(kinds, contents, strict=True)]
    world = compacted(stored, limits=limits, compression="gzip")
    seen = []
    for commit in commits(world):
        check_commit(commit, world.store)
        for n, row in enumerate(commit.rows):
            number = int(row.source.key[-13:-8])
            seen.append(number)
            mark = b"\xef\xbb\xbf" if kinds[number] == "marked" else b""
            assert given_back(world, commit, [n]) == [mark + contents[number]]
            if row.stored_at is not None:
                assert given_back(world, commit, [n], as_stored=True) == [stored[number]]
    assert sorted(seen) == [*range(len(kinds))]
