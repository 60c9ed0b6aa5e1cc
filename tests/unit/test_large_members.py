"""Large sources that are one gzip member or zstd frame go into outputs as they are stored, too."""

from __future__ import annotations

import gzip
import random
import subprocess
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import which
from typing import Any

import duckdb
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from compactor.codecs.checksums import parts_crc32
from compactor.codecs.codecs import Limits, decompress
from compactor.conditions import StoreTraits
from compactor.errors import IntegrityError, TransientStoreError, UnreadableSource
from compactor.formats.framing import Edit, Framed
from compactor.limits import WorkerLimits
from compactor.model import Compression, Format, QuarantineReason, Signature, SourceObject
from compactor.outputs import plain
from compactor.outputs.detection import passing_check
from compactor.outputs.large_members import LargeMember, read_as_one
from compactor.outputs.restore import Found, restore
from compactor.outputs.verify import check_commit
from compactor.ports import SourceBody
from tests.support.as_stored import commits, given_back, only
from tests.support.deflate import member_of_lines
from tests.support.examples import PARTITION
from tests.support.examples import settings as example_settings
from tests.support.memory_store import Call
from tests.support.world import World

# What S3 copies has at least so many bytes as stored, and is held whole with so many plain ones.
COPIED, WHOLE = 20_000, 3_000
LIMITS = WorkerLimits(
    whole_bytes=WHOLE,
    copy_slice_bytes=COPIED,
    min_part_bytes=8_000,
    copy_part_bytes=30_000,
    part_bytes=10_000,
    segment_bytes=5_000,
    point_bytes=1_000,
)
BOM = b"\xef\xbb\xbf"
SKIPPABLE = b"\x50\x2a\x4d\x18\x03\0\0\0abc"


def lines(seed: int, count: int) -> bytes:
    draw = random.Random(seed)
    return b"".join(b'{"id":%d,"v":"%x"}\n' % (n, draw.getrandbits(256)) for n in range(count))


def large(seed: int) -> bytes:
    """Lines that are stored in more than 20,000 bytes."""
    return lines(seed, 700)


def member(content: bytes, level: int = 6) -> bytes:
    return gzip.compress(content, level, mtime=7)


def frame(content: bytes, level: int = 3, **how: Any) -> bytes:
    return zstandard.ZstdCompressor(level=level, **how).compress(content)


@dataclass(frozen=True)
class Kind:
    """A compression whose sources go in as they are stored."""

    ending: str
    pack: Callable[[bytes], bytes]
    compression: Compression
    given: dict[str, str]

    def plain(self, stored: bytes) -> bytes:
        return decompress(stored, self.compression, limits=Limits(None, None))


GZIP = Kind(".json.gz", member, Compression.GZIP, {"gzip_output": "members"})
ZSTD = Kind(".json.zst", frame, Compression.ZSTD, {"zstd_output": "frames"})


@pytest.fixture(params=[GZIP, ZSTD], ids=["gzip", "zstd"])
def kind(request: pytest.FixtureRequest) -> Kind:
    found: Kind = request.param
    return found


def arranged(
    stored: Sequence[bytes], kind: Kind, limits: WorkerLimits = LIMITS, **given: object
) -> World:
    """Sources in a store that gives them in chunks, unless they are tiny."""
    world = World(limits=limits, **kind.given, **given)
    world.store._min_part_bytes = limits.min_part_bytes
    world.store._whole_bytes, world.store._chunk_bytes = 1_000, 4_000
    for number, content in enumerate(stored):
        world.put(f"{number:05d}{kind.ending}", content)
    return world


def compacted(stored: Sequence[bytes], kind: Kind, **given: Any) -> World:
    world = arranged(stored, kind, **given)
    world.run()
    return world


def must_give_back(world: World, stored: Sequence[bytes], kind: Kind) -> list[bool]:
    """All sources come back, identical where they are in it as they were stored: which are?"""
    commit, output, body = only(world)
    assert (output.size, output.crc32) == (len(body), zlib.crc32(body))
    assert check_commit(commit, world.store) == output.records == kind.plain(body).count(b"\n")
    kept = [row.stored_at is not None for row in commit.rows]
    back = [one if kept[n] else kind.plain(one) for n, one in enumerate(stored)]
    for n, one in enumerate(stored):
        assert given_back(world, commit, [n]) == [kind.plain(one)]
        assert given_back(world, commit, [n], as_stored=True) == [back[n]]
    assert sorted(given_back(world, commit, range(len(stored)), as_stored=True)) == sorted(back)
    return kept


def reads_of(world: World, number: int) -> int:
    return world.store.count("read_source", prefix=f"{PARTITION.prefix}{number:05d}")


# What S3 copies.


def test_s3_copies_them_and_the_worker_sends_nothing(kind: Kind) -> None:
    stored = [kind.pack(large(seed)) for seed in range(4)]
    world = compacted(stored, kind)
    assert only(world)[2] == b"".join(stored)
    assert world.store.count("copy_part") == 4
    assert world.store.count("upload_part") == 0
    assert only(world)[1].points == ()
    assert must_give_back(world, stored, kind) == [True] * 4


def test_each_is_read_once_and_a_look_at_its_beginning_before(kind: Kind) -> None:
    world = compacted([kind.pack(large(seed)) for seed in range(4)], kind)
    assert [reads_of(world, number) for number in range(4)] == [2] * 4


def test_what_is_small_before_one_is_topped_up_from_its_beginning(kind: Kind) -> None:
    # The store refuses parts of less than 8,000 bytes, but the last.
    some = [lines(9, 5), large(1), lines(8, 5), large(2), large(3), lines(7, 5)]
    stored = [kind.pack(content) for content in some]
    world = compacted(stored, kind)
    assert only(world)[2] == b"".join(stored)
    assert world.store.count("copy_part") == 3
    assert must_give_back(world, stored, kind) == [True] * 6


def test_a_missing_last_newline_is_a_unit_of_its_own_behind_the_copy(kind: Kind) -> None:
    stored = [kind.pack(large(seed)[:-1]) for seed in range(3)]
    world = compacted(stored, kind)
    _, _, body = only(world)
    assert kind.plain(body) == b"".join(map(large, range(3)))
    assert all(one in body for one in stored)
    assert world.store.count("copy_part") == 3
    assert must_give_back(world, stored, kind) == [True] * 3


def test_one_that_takes_several_copies_is_whole(kind: Kind) -> None:
    stored = [kind.pack(lines(1, 3_000)), kind.pack(large(2))]
    assert len(stored[0]) > 3 * LIMITS.copy_part_bytes
    world = compacted(stored, kind)
    assert only(world)[2] == b"".join(stored)
    parts = [-(-len(one) // LIMITS.copy_part_bytes) for one in stored]
    assert world.store.count("copy_part") == sum(parts)
    must_give_back(world, stored, kind)


@pytest.mark.parametrize("whole", [500, 10_000_000])
def test_one_that_is_too_small_to_be_copied_is_sent_as_it_is_stored(kind: Kind, whole: int) -> None:
    stored = [kind.pack(lines(seed, 200)) for seed in range(4)]
    world = arranged(stored, kind)
    world.store._whole_bytes = whole
    world.run()
    assert only(world)[2] == b"".join(stored)
    assert world.store.count("copy_part") == 0
    assert [reads_of(world, number) for number in range(4)] == [1] * 4
    assert must_give_back(world, stored, kind) == [True] * 4


def test_one_that_hardly_packs_is_copied_although_its_content_is_held(kind: Kind) -> None:
    packs = {Compression.GZIP: lambda one: member(one, 0), Compression.ZSTD: kind.pack}
    draw = random.Random(1)
    content = b"".join(b'{"v":"%s"}\n' % draw.randbytes(99).hex().encode() for _ in range(220))
    stored = [packs[kind.compression](content)] * 2
    world = compacted(stored, kind, limits=replace(LIMITS, whole_bytes=1 << 20))
    assert only(world)[2] == b"".join(stored)
    assert world.store.count("copy_part") >= 2
    assert world.store.count("upload_part") == 0
    must_give_back(world, stored, kind)


# What is encoded anew.


def several(kind: Kind) -> bytes:
    content = large(1)
    return kind.pack(content[:30_000]) + kind.pack(content[30_000:])


def ends_in_an_empty_one(kind: Kind) -> bytes:
    return kind.pack(large(1)) + kind.pack(b"")


def with_a_mark(kind: Kind) -> bytes:
    return kind.pack(BOM + large(1))


def padded(kind: Kind) -> bytes:
    return member(large(1)) + bytes(9)


def skipped_before(kind: Kind) -> bytes:
    return SKIPPABLE + frame(large(1))


def skipped_behind(kind: Kind) -> bytes:
    return frame(large(1)) + SKIPPABLE


def with_a_large_window(kind: Kind) -> bytes:
    parameters = zstandard.ZstdCompressionParameters(window_log=24)
    one = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    return one.compress(large(1)) + one.flush()


ODD = [
    *((kind, make) for kind in (GZIP, ZSTD) for make in (several, ends_in_an_empty_one)),
    (GZIP, padded),
    (ZSTD, skipped_behind),
]
ODD_AT_ONCE = [
    *((kind, with_a_mark) for kind in (GZIP, ZSTD)),
    (ZSTD, skipped_before),
    (ZSTD, with_a_large_window),
]
Make = Callable[[Kind], bytes]


@pytest.mark.parametrize(("kind", "make"), [*ODD, *ODD_AT_ONCE])
def test_what_readers_might_not_take_is_encoded_anew_among_the_others(
    kind: Kind, make: Make
) -> None:
    stored = [kind.pack(large(2)), make(kind), kind.pack(large(3))]
    world = compacted(stored, kind)
    assert must_give_back(world, stored, kind) == [True, False, True]
    _, _, body = only(world)
    assert kind.plain(body) == large(2) + large(1) + large(3)


@pytest.mark.parametrize(("kind", "make"), ODD)
def test_what_shows_only_at_its_end_that_it_does_not_fit_is_read_twice(
    kind: Kind, make: Make
) -> None:
    world = compacted([make(kind)], kind)
    assert reads_of(world, 0) == 3


@pytest.mark.parametrize(("kind", "make"), ODD_AT_ONCE)
def test_what_shows_at_its_beginning_that_it_does_not_fit_is_read_once(
    kind: Kind, make: Make
) -> None:
    world = compacted([make(kind)], kind)
    assert reads_of(world, 0) == 2


@pytest.mark.parametrize(("kind", "make"), ODD)
def test_what_is_held_is_decompressed_twice_and_read_once(kind: Kind, make: Make) -> None:
    world = compacted([make(kind)], kind, limits=replace(LIMITS, copy_slice_bytes=1 << 20))
    assert reads_of(world, 0) == 1
    assert must_give_back(world, [make(kind)], kind) == [False]


def test_what_is_held_is_all_there_although_its_second_unit_ended_the_first_reading(
    kind: Kind,
) -> None:
    content = lines(1, 30_000)
    stored = kind.pack(content[:5_000]) + kind.pack(content[5_000:])
    world = compacted([stored], kind, limits=replace(LIMITS, copy_slice_bytes=1 << 23))
    assert reads_of(world, 0) == 1
    assert must_give_back(world, [stored], kind) == [False]


def test_one_of_next_to_no_content_is_not_written_twice() -> None:
    # Blocks with nothing in them, so that what is stored counts as large.
    blocks = b"\0\0\0\xff\xff" * COPIED + b"\1\2\0\xfd\xffa\n"
    trailer = zlib.crc32(b"a\n").to_bytes(4, "little") + (2).to_bytes(4, "little")
    stored = [b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + blocks + trailer, member(b"b\n")]
    world = compacted(stored, GZIP, format="text")
    assert gzip.decompress(only(world)[2]) == b"a\nb\n"
    must_give_back(world, stored, GZIP)


# What is asked of one, whatever read it.

AS_IT_IS = Framed(b"", (), 40)


class Passing:
    """Framing that hands everything on, and says of it what a test wants said."""

    def __init__(self, framed: Framed) -> None:
        self._framed = framed

    def feed(self, chunk: bytes) -> tuple[bytes]:
        return (chunk,)

    def finish(self) -> Framed:
        return self._framed


def content_of(stored: bytes, taken: list[int] | None = None) -> plain.PlainContent:
    """The content of a gzip source that comes in chunks; ``taken`` counts them."""

    def chunks() -> Iterator[bytes]:
        for at in range(0, len(stored), 300):
            if taken is not None:
                taken.append(at)
            yield stored[at : at + 300]

    given_ = example_settings(gzip_output="members", limits=LIMITS)
    return plain.read(SourceBody(replace(SOURCE, size=len(stored)), chunks=chunks), given_)


SOURCE = SourceObject("source", "a.json.gz", "etag", 0, 0.0)


def read_it(
    content: plain.PlainContent, stored: bytes, framed: Framed = AS_IT_IS
) -> LargeMember | None:
    source = replace(SOURCE, size=len(stored))
    check = passing_check(Signature(Format.JSON_LINES, Compression.GZIP), example_settings())
    return read_as_one(source, content, Passing(framed), check)


def test_one_that_is_as_it_should_be_is_told_with_its_counts() -> None:
    stored = member(large(1))
    found = read_it(content_of(stored), stored)
    assert found is not None
    assert (found.plain_bytes, found.plain_crc32) == (len(large(1)), zlib.crc32(large(1)))
    assert (found.newlines, found.crc32) == (700, zlib.crc32(stored))


@pytest.mark.parametrize(
    "changed",
    [
        {"separator": b","},
        {"dropped_prefix": b"a"},
        {"dropped_suffix": b"a"},
        {"newlines_stand_for": b"\r\n"},
        {"edits": (Edit(1, 1, b"a"),)},
    ],
    ids=str,
)
def test_one_of_which_anything_is_changed_is_not_taken(changed: dict[str, Any]) -> None:
    stored = member(large(1))
    assert read_it(content_of(stored), stored, AS_IT_IS._replace(**changed)) is None


def test_one_of_another_size_than_was_listed_is_not_taken() -> None:
    stored = member(large(1))
    assert read_it(content_of(stored), stored + b"more") is None


def test_one_that_does_not_end_with_the_checksum_of_its_content_is_not_taken() -> None:
    stored = member(large(1))
    content = content_of(stored)
    content.crc32 ^= 1
    assert read_it(content, stored) is None


def test_no_more_of_several_is_read_than_shows_that_they_are() -> None:
    # A decoder looks ahead for 256 KiB of what is stored.
    stored = member(lines(1, 300)) + member(lines(2, 20_000))
    taken: list[int] = []
    assert read_it(content_of(stored, taken), stored) is None
    assert 300 * len(taken) < 300_000 < len(stored) / 2


def test_headers_are_left_out_as_ever(kind: Kind) -> None:
    table = b"id,v\n" + b"".join(b"%d,%032x\n" % (n, n * n) for n in range(3_000))
    stored = [kind.pack(table)] * 3
    made = replace(kind, ending=kind.ending.replace("json", "csv"))
    world = arranged(stored, made, limits=replace(LIMITS, copy_slice_bytes=5_000))
    world.run()
    _, _, body = only(world)
    assert kind.plain(body) == table + 2 * table[5:]
    assert world.store.count("copy_part") == 0
    # And never read for nothing: none of them could be taken as it is. Once each was a sample.
    assert [reads_of(world, number) for number in range(3)] == [3] * 3


def test_one_member_is_still_the_default(kind: Kind) -> None:
    usual = replace(kind, given={})
    world = compacted([kind.pack(large(seed)) for seed in range(2)], usual)
    assert not only(world)[1].members
    assert world.store.count("copy_part") == 0


def test_between_copies_one_that_was_encoded_is_a_range_by_itself(kind: Kind) -> None:
    some = [large(1), large(2), lines(3, 40), large(4), large(5), large(6)]
    stored = [kind.pack(content) for content in some]
    stored[2] = kind.pack(some[2][:500]) + kind.pack(some[2][500:])
    world = compacted(stored, kind)
    assert must_give_back(world, stored, kind) == [True, True, False, True, True, True]
    commit, output, _ = only(world)
    before = world.store.snapshot()["bytes_read"]
    assert given_back(world, commit, [2]) == [some[2]]
    assert world.store.snapshot()["bytes_read"] - before < 3_000 < output.size / 30
    row = commit.rows[2]
    assert [plain for _, plain in output.points] == [row.offset, row.offset + row.length]


@pytest.mark.parametrize("size", [2, 700])
def test_a_source_without_content_between_two_is_no_place_to_begin_at(
    kind: Kind, size: int
) -> None:
    some = [lines(1, size), BOM, large(2), b"", large(3), lines(4, 9)]
    stored = [kind.pack(content) for content in some]
    stored[5] = kind.pack(some[5][:50]) + kind.pack(some[5][50:])
    world = compacted(stored, kind)
    _, output, _ = only(world)
    assert len(set(output.points)) == len(output.points)
    for n, one in enumerate(stored):
        (commit, _, _) = only(world)
        row = next(r for r in commit.rows if f"{n:05d}" in r.source.key)
        (pieces,) = [b"".join(own) for _, own in restore(Found(commit, (row,)), world.store)]
        assert pieces == kind.plain(one)


# Damage.


def harmed(stored: bytes) -> bytes:
    place = len(stored) - 4
    return stored[:place] + bytes((stored[place] ^ 1,)) + stored[place + 1 :]


def test_a_damaged_one_is_left_alone_and_what_is_before_it_written_once(kind: Kind) -> None:
    pack = kind.pack
    if kind is ZSTD:
        pack = lambda one: frame(one, write_checksum=True)  # noqa: E731 (one that tells of damage)
    stored = [pack(large(1)), harmed(pack(large(2))), pack(large(3))[:-9], pack(large(4))]
    world = compacted(stored, kind)
    commit, _, body = only(world)
    assert body == stored[0] + stored[3]
    assert [one.reason for one in commit.quarantined] == [
        QuarantineReason.CORRUPT,
        QuarantineReason.TRUNCATED,
    ]
    # Nothing of it was written: the output did not begin anew.
    assert world.store.count("create_upload") == 1


@pytest.mark.parametrize("count", [10, 500, 12_000])
@pytest.mark.parametrize("whole", [1_000, 10_000_000])
def test_a_member_that_most_readers_refuse_is_left_alone_and_all_can_be_read(
    count: int, whole: int
) -> None:
    odd = member_of_lines(b'{"a":1}\n', count, distance_bits=2)
    stored = [member(large(1)), odd, member(large(2))]
    world = arranged(stored, GZIP)
    world.store._whole_bytes = whole
    world.run()
    commit, _, body = only(world)
    assert gzip.decompress(body) == large(1) + large(2)
    assert [one.reason for one in commit.quarantined] == [QuarantineReason.CORRUPT]


@pytest.mark.parametrize("count", [10, 12_000])
def test_a_member_that_is_odd_and_that_all_readers_take_is_taken_as_it_is(count: int) -> None:
    stored = [member(large(1)), member_of_lines(b'{"a":1}\n', count, distance_bits=1)]
    world = compacted(stored, GZIP)
    assert only(world)[2] == b"".join(stored)
    assert gzip.decompress(only(world)[2]) == large(1) + b'{"a":1}\n' * count


@pytest.mark.parametrize(
    "before", [(), (large(1),), (large(1)[:-1],), (lines(2, 9),), (large(3), BOM + large(4))]
)
@pytest.mark.parametrize("behind", [large(5), lines(6, 9), BOM + large(7)])
def test_one_that_is_refused_leaves_no_place_behind_at_which_nothing_begins(
    kind: Kind, before: tuple[bytes, ...], behind: bytes
) -> None:
    # Its mark says that it is encoded anew, and the zeros at its end that it is not even that.
    refused = BOM + lines(8, 200) + bytes(9)
    stored = [kind.pack(one) for one in (*before, refused, behind)]
    world = compacted(stored, kind)
    commit, output, _ = only(world)
    assert [one.reason for one in commit.quarantined] == [QuarantineReason.BINARY]
    assert len(set(output.points)) == len(output.points)
    taken = [*before, behind]
    assert [given_back(world, commit, [n]) for n in range(len(taken))] == [[one] for one in taken]


@pytest.mark.parametrize("members", [True, False])
@pytest.mark.parametrize("count", [200, 700])
def test_where_all_are_left_alone_no_empty_output_is_made(
    kind: Kind, count: int, members: bool
) -> None:
    stored = [kind.pack(lines(1, count) + bytes(9))]
    world = compacted(stored, kind if members else replace(kind, given={}))
    (commit,) = commits(world)
    assert [one.reason for one in commit.quarantined] == [QuarantineReason.BINARY]
    assert commit.output is None
    assert world.store.contents("lake", "compacted/") == {}


def test_lines_that_end_otherwise_than_they_began_are_left_alone(kind: Kind) -> None:
    stored = [kind.pack(large(1)), kind.pack(large(2) + b"\0 binary"), kind.pack(large(3))]
    world = compacted(stored, kind)
    commit, _, body = only(world)
    assert body == stored[0] + stored[2]
    assert [one.reason for one in commit.quarantined] == [QuarantineReason.BINARY]


def test_an_end_that_would_reach_into_what_follows_is_left_alone(kind: Kind) -> None:
    text = b"2026-01-02 03:04:05 %s\n"
    some = [b"".join(text % one for one in large(n).split(b"\n")) for n in range(3)]
    stored = [kind.pack(some[0]), kind.pack(some[1][:-1] + b"\r"), kind.pack(some[2])]
    made = replace(kind, ending=kind.ending.replace("json", "log"))
    commit, _, body = only(compacted(stored, made))
    assert body == stored[0] + stored[2]
    assert [one.reason for one in commit.quarantined] == [QuarantineReason.OPEN_END]


# Ways without copies.


def mixture(kind: Kind) -> list[bytes]:
    some = [lines(1, 9), large(2)[:-1], lines(3, 200), large(4), lines(5, 9)[:-1], large(6)]
    return [kind.pack(content) for content in some]


def test_where_the_store_copies_nothing_the_bytes_pass_through_the_same_ones(kind: Kind) -> None:
    stored = mixture(kind)
    copying = compacted(stored, kind)
    world = arranged(stored, kind)
    world.store = world.store.with_traits(StoreTraits(copies=False))
    world.run()
    assert world.store.count("copy_part") == 0
    assert copying.store.contents("lake", "compacted/") == world.store.contents(
        "lake", "compacted/"
    )
    assert only(world)[0].rows == only(copying)[0].rows
    assert only(world)[1].points == only(copying)[1].points
    must_give_back(world, stored, kind)


def test_a_copy_that_is_refused_is_replaced_by_reading_the_same_bytes(kind: Kind) -> None:
    stored = mixture(kind)
    copying = compacted(stored, kind)
    world = arranged(stored, kind)

    def refuse(call: Call) -> None:
        if call.name == "copy_part":
            raise UnreadableSource(QuarantineReason.ACCESS_DENIED, "copy part: 403 AccessDenied")

    world.store.hooks.before.append(refuse)
    receipt = world.run()
    assert (receipt.status, receipt.counts.quarantined) == ("done", 0)
    assert copying.store.contents("lake", "compacted/") == world.store.contents(
        "lake", "compacted/"
    )
    assert world.store.unfinished_uploads("lake") == {}


def test_copies_of_which_the_store_tells_another_checksum_are_not_trusted(
    kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = mixture(kind)
    world = arranged(stored, kind)
    copy = world.store.copy_part

    def wrong(*how: Any) -> Any:
        return replace(copy(*how), crc32=1)

    monkeypatch.setattr(world.store, "copy_part", wrong)
    world.run()
    assert world.store.count("complete_upload") == 1
    assert must_give_back(world, stored, kind) == [True] * 6
    _, output, _ = only(world)
    assert parts_crc32(output.parts) == output.crc32


def test_what_a_store_tells_of_parts_that_were_sent_does_not_make_an_output_begin_anew(
    kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = arranged([kind.pack(lines(seed, 20)) for seed in range(3)], kind)
    upload = world.store.upload_part

    def wrong(*how: Any) -> Any:
        return replace(upload(*how), crc32=1)

    monkeypatch.setattr(world.store, "upload_part", wrong)
    world.run()
    assert world.store.count("create_upload") == 1


def test_where_the_store_tells_no_checksum_of_copies_the_completion_carries_ours(
    kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = mixture(kind)
    world = arranged(stored, kind)
    copy, done = world.store.copy_part, world.store.complete_upload
    given: list[int | None] = []

    def untold(*how: Any) -> Any:
        return replace(copy(*how), crc32=None)

    def seen(*where: Any, crc32: int | None) -> None:
        given.append(crc32)
        done(*where, crc32=crc32)

    monkeypatch.setattr(world.store, "copy_part", untold)
    monkeypatch.setattr(world.store, "complete_upload", seen)
    world.run()
    assert given == [zlib.crc32(only(world)[2])]


def test_a_source_that_changes_before_its_copy_is_planned_again(kind: Kind) -> None:
    world = arranged([kind.pack(large(1)), kind.pack(large(2))], kind)
    new = kind.pack(large(3))

    def overwrite(call: Call) -> None:
        if call.name == "copy_part":
            world.put(f"{1:05d}{kind.ending}", new)

    world.store.hooks.before.append(overwrite)
    assert world.run().counts.changed == 1
    world.store.hooks.clear()
    world.run()
    bodies = b"".join(world.store.contents("lake", "compacted/").values())
    assert kind.pack(large(2)) not in bodies
    assert new in bodies


def test_a_source_that_changes_before_it_passes_through_is_planned_again(kind: Kind) -> None:
    world = arranged([kind.pack(large(1))], kind)
    world.store = world.store.with_traits(StoreTraits(copies=False))
    new, seen = kind.pack(large(3)), []

    def overwrite(call: Call) -> None:
        if call.name == "read_source":
            seen.append(call)
            if len(seen) == 2:
                world.put(f"{0:05d}{kind.ending}", new)

    world.store.hooks.before.append(overwrite)
    assert world.run().counts.changed == 1
    world.store.hooks.clear()
    world.run()
    assert list(world.store.contents("lake", "compacted/").values()) == [new]


def test_bytes_that_are_others_when_they_pass_through_are_never_committed(
    kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = kind.pack(large(1))
    world = arranged([stored], kind)
    world.store = world.store.with_traits(StoreTraits(copies=False))
    read, seen = world.store._read, []

    def once_wrong(source: Any) -> bytes:
        seen.append(source)
        body = read(source)
        return harmed(body) if len(seen) == 2 else body

    monkeypatch.setattr(world.store, "_read", once_wrong)
    with pytest.raises(TransientStoreError, match="read twice, and not alike"):
        world.run()
    assert world.store.contents("lake", "compacted/") == {}
    assert world.store.unfinished_uploads("lake") == {}
    world.run()
    assert only(world)[2] == stored


def test_an_upload_takes_no_more_copies_than_half_of_its_parts(kind: Kind) -> None:
    stored = [kind.pack(large(seed)[:-1]) for seed in range(6)]
    plenty = compacted(stored, kind)
    world = compacted(stored, kind, limits=replace(LIMITS, most_parts=8))
    assert plenty.store.count("copy_part") == 6
    assert world.store.count("copy_part") < 4
    assert only(world)[2] == only(plenty)[2]


def test_an_upload_that_was_dropped_is_built_again_of_the_same_bytes(kind: Kind) -> None:
    stored = mixture(kind)
    copying = compacted(stored, kind)
    world = arranged(stored, kind)

    def drop(call: Call) -> None:
        if call.name == "complete_upload" and world.store.count("complete_upload") == 0:
            for upload_id, key in world.store.unfinished_uploads("lake").items():
                world.store.abort_upload("lake", key, upload_id)

    world.store.hooks.before.append(drop)
    assert world.run().counts.repaired == 1
    assert world.store.contents("lake", "compacted/") == copying.store.contents(
        "lake", "compacted/"
    )
    world.must_be_finished()


def test_one_that_was_compacted_before_is_known_again_and_a_newer_one_copied(kind: Kind) -> None:
    stored = [kind.pack(large(seed)) for seed in range(2)]
    world = compacted(stored, kind)
    world.put(f"{0:05d}{kind.ending}", kind.pack(large(0)) + kind.pack(b""))
    world.put(f"{1:05d}{kind.ending}", kind.pack(large(7)))
    world.run()
    new = max(commits(world), key=lambda one: one.sequence)
    assert [one.source.key for one in new.again] == [f"{PARTITION.prefix}{0:05d}{kind.ending}"]
    assert new.output is not None
    assert world.store.contents("lake")[new.output.key] == kind.pack(large(7))
    assert given_back(world, new, [0], as_stored=True) == [kind.pack(large(7))]


# What others see, and what comes back.


def _zcat(path: Path) -> bytes:
    program = which("zcat")
    if program is None:
        pytest.skip("no zcat here")
    return subprocess.run([program, path], capture_output=True, check=True).stdout


def _gzip_module(path: Path) -> bytes:
    with gzip.open(path) as file:
        return file.read()


def _duckdb(path: Path) -> bytes:
    query = "SELECT id, v FROM read_json(?, format='newline_delimited', compression='gzip')"
    rows = duckdb.execute(query, [str(path)]).fetchall()
    return b"".join(b'{"id":%d,"v":"%s"}\n' % (n, value.encode()) for n, value in rows)


@pytest.mark.parametrize("reader", [_zcat, _gzip_module, _duckdb])
def test_other_readers_read_the_whole_output(
    reader: Callable[[Path], bytes], tmp_path: Path
) -> None:
    _, _, body = only(compacted(mixture(GZIP), GZIP))
    path = tmp_path / "output.json.gz"
    path.write_bytes(body)
    some = (lines(1, 9), large(2), lines(3, 200), large(4), lines(5, 9), large(6))
    assert reader(path) == b"".join(some)


def test_one_comes_back_in_pieces_of_which_few_are_held(
    kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = [kind.pack(lines(seed, 60_000)) for seed in range(2)]
    world = compacted(stored, kind)
    commit, _, _ = only(world)
    monkeypatch.setattr("compactor.outputs.ranges._RANGE_BYTES", 10_000)
    asked, given_, most = len(world.store.calls), 0, 1_200_000
    assert len(stored[1]) > 1.5 * most
    ((_, pieces),) = restore(Found(commit, commit.rows[1:]), world.store, as_stored=True)
    for piece in pieces:
        given_ += len(piece)
        # A decoder looks ahead for as much as becomes 1 MiB.
        assert 10_000 * (len(world.store.calls) - asked) - given_ < most
    assert given_ == len(stored[1])


def test_another_one_is_never_given_back(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compactor.outputs.ranges._RANGE_BYTES", 5_000)
    stored = [kind.pack(large(seed)) for seed in range(3)]
    world = compacted(stored, kind)
    commit, output, body = only(world)
    found = Found(commit, commit.rows[1:2])
    place = len(stored[0]) + len(stored[1]) // 2
    damaged = body[:place] + b"\0\xff\0" + body[place + 3 :]
    for wrong in (damaged, stored[0] + stored[2] + stored[1]):
        # The latter are sound by themselves, and not what was read.
        world.store.seed("lake", output.key, wrong)
        ((_, pieces),) = restore(found, world.store, as_stored=True)
        back: list[bytes] = []
        with pytest.raises((IntegrityError, UnreadableSource)):
            back.extend(pieces)
        assert len(b"".join(back)) < min(map(len, stored))


def test_one_that_is_shorter_than_its_row_says_is_never_given_back_as_if_whole(kind: Kind) -> None:
    stored = [kind.pack(large(seed)) for seed in range(2)]
    world = compacted(stored, kind)
    commit, _, _ = only(world)
    row = commit.rows[1]
    longer = row._replace(source=replace(row.source, size=row.source.size + 1))
    with pytest.raises(IntegrityError, match="restored bytes of"):
        given_back(world, replace(commit, rows=(commit.rows[0], longer)), [1], as_stored=True)


PACKED: dict[str, Callable[[Kind, bytes], bytes]] = {
    "one": lambda kind, content: kind.pack(content),
    "several": lambda kind, content: kind.pack(content[:20]) + kind.pack(content[20:]),
    "marked": lambda kind, content: kind.pack(BOM + content),
    "plain": lambda _, content: content,
}


@given(
    kind=st.sampled_from([GZIP, ZSTD]),
    some=st.lists(
        st.tuples(
            st.sampled_from(sorted(PACKED)),
            st.sampled_from([1, 20, 70, 400]),
            st.booleans(),
        ),
        min_size=1,
        max_size=9,
    ),
    copied=st.sampled_from([600, 2_000, 20_000]),
    segment=st.sampled_from([300, 5_000, 1 << 22]),
)
@settings(max_examples=60, deadline=None)
def test_any_mixture_is_the_same_with_and_without_copies_and_is_given_back(
    kind: Kind, some: list[tuple[str, int, bool]], copied: int, segment: int
) -> None:
    limits = WorkerLimits(
        whole_bytes=1_500,
        copy_slice_bytes=copied,
        min_part_bytes=200,
        copy_part_bytes=1_000,
        part_bytes=500,
        segment_bytes=segment,
        point_bytes=300,
    )
    contents = [lines(n, size)[: None if ended else -1] for n, (_, size, ended) in enumerate(some)]
    stored = [
        PACKED[how](kind, content) for (how, _, _), content in zip(some, contents, strict=True)
    ]
    given_: dict[str, Any] = {"limits": limits, "compression": kind.compression.value}
    copying, reading = arranged(stored, kind, **given_), arranged(stored, kind, **given_)
    reading.store = reading.store.with_traits(StoreTraits(copies=False))
    copying.run()
    reading.run()
    outputs = copying.store.contents("lake", "compacted/")
    assert reading.store.contents("lake", "compacted/") == outputs
    seen = []
    for commit in commits(copying):
        assert commit.output is not None
        assert commit.output.crc32 == zlib.crc32(outputs[commit.output.key])
        check_commit(commit, copying.store)
        for n, row in enumerate(commit.rows):
            number = int(row.source.key.removeprefix(PARTITION.prefix)[:5])
            seen.append(number)
            own = stored[number]
            content = own if some[number][0] == "plain" else kind.plain(own)
            assert given_back(copying, commit, [n]) == [content]
            expected = content if row.stored_at is None else own
            assert given_back(copying, commit, [n], as_stored=True) == [expected]
            assert (row.stored_at is not None) == (some[number][0] == "one")
    assert sorted(seen) == [*range(len(stored))]
