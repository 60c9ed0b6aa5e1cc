"""Outputs of segments that several threads encode: whichever does, the same bytes, one member."""

from __future__ import annotations

import gzip
import random
import subprocess
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from shutil import which
from typing import NamedTuple

import pytest
import zstandard
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from isal import igzip

from compactor.encoding.encoders import Encoder, SegmentEncoder, encoder
from compactor.limits import USUAL, WorkerLimits
from compactor.model import Compression
from compactor.outputs import segments
from compactor.outputs.output_writer import OutputWriter
from tests.support.memory_store import ManualClock, MemoryStore

SMALL = WorkerLimits(segment_bytes=4_000, point_bytes=300)
Write = Callable[[OutputWriter, bytes], None]


def lines(seed: int, size: int) -> bytes:
    draw = random.Random(seed)
    found = bytearray()
    while len(found) < size:
        found += b'{"id": %d, "user": "%x"}\n' % (seed, draw.getrandbits(40))
    return bytes(found)


SOURCES = [lines(seed, 50 + seed * 997 % 1_500) for seed in range(120)]


def in_one_piece(writer: OutputWriter, source: bytes) -> None:
    writer.write(source)


class Made(NamedTuple):
    """An output as it was stored, and its writer."""

    body: bytes
    writer: OutputWriter

    @property
    def points(self) -> list[tuple[int, int]]:
        return self.writer.points


def store() -> MemoryStore:
    found = MemoryStore(ManualClock(1_700_000_000.0))
    found.add_bucket("lake")
    return found


def fill(
    writer: OutputWriter, sources: Sequence[bytes] = SOURCES, write: Write = in_one_piece
) -> None:
    for source in sources:
        writer.begin_source()
        write(writer, source)


def made(
    sources: Sequence[bytes] = SOURCES,
    *,
    limits: WorkerLimits = SMALL,
    into: Encoder | None = None,
    write: Write = in_one_piece,
) -> Made:
    lake = store()
    writer = OutputWriter(lake, "lake", "out", into or encoder(Compression.GZIP), limits=limits)
    fill(writer, sources, write)
    upload_id, parts = writer.finish()
    lake.complete_upload("lake", "out", upload_id, parts, crc32=writer.crc32)
    return Made(lake.get("lake", "out"), writer)


def processors(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(count)), raising=False)


class Refused(Exception):
    """What a segment's thread fails with."""


def require(allowed: bool) -> None:
    if not allowed:
        raise Refused


def pause(draw: random.Random) -> None:
    time.sleep(draw.choice([0, 0, 0.001, 0.01]))


class Watched:
    """The segments of an encoder, and who encodes them: as many at once, at first, as there may be.

    No thread is begun that finds another one idle, so that a slow machine would see fewer.
    """

    def __init__(self, into: Encoder, before: Callable[[], None], count: int = 1) -> None:
        assert into.segments is not None
        self._inner, into.segments = into.segments, self
        self._before = before
        self.begin, self.end = self._inner.begin, self._inner.end
        self.names: set[str] = set()
        self._first = iter(range(count))
        self._all_of_them = threading.Barrier(count)

    def encoder(self) -> SegmentEncoder:
        self.names.add(threading.current_thread().name)
        if next(self._first, None) is not None:
            self._all_of_them.wait(60)
        self._before()
        return self._inner.encoder()


WAYS = {
    "one member": lambda: encoder(Compression.GZIP),
}


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("way", WAYS.values(), ids=list(WAYS))
def test_bytes_and_points_do_not_depend_on_who_encodes_what_when(
    way: Callable[[], Encoder], count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = made(into=way())
    assert len(expected.points) > 20
    processors(monkeypatch, count)
    for seed in range(5):
        into = way()
        watched = Watched(into, partial(pause, random.Random(seed)), count)
        found = made(into=into)
        assert (found.body, found.points) == (expected.body, expected.points)
        assert len(watched.names) == count


@given(seed=st.integers(0, 2**32), way=st.sampled_from([*WAYS.values()]))
@hypothesis_settings(max_examples=30, deadline=None)
def test_bytes_and_points_do_not_depend_on_the_cuts_between_writes(
    seed: int, way: Callable[[], Encoder]
) -> None:
    draw = random.Random(seed)
    sources = [*SOURCES[:20], lines(1, 30_000), *SOURCES[20:30]]

    def in_pieces(writer: OutputWriter, source: bytes) -> None:
        at = 0
        while at < len(source):
            size = draw.choice([1, 10, 3_999, 4_000, 8_000, 50_000])
            piece = source[at : at + size]
            writer.write(memoryview(piece) if draw.random() < 0.5 else piece)
            at += size

    expected, found = made(sources, into=way()), made(sources, into=way(), write=in_pieces)
    assert (found.body, found.points) == (expected.body, expected.points)


def test_what_the_writer_says_of_an_output_is_true_of_its_bytes() -> None:
    found, plain = made(), b"".join(SOURCES)
    writer = found.writer
    assert (writer.size, writer.crc32) == (len(found.body), zlib.crc32(found.body))
    assert (writer.plain_bytes, writer.newlines) == (len(plain), plain.count(b"\n"))


def test_segments_are_one_member_without_name_or_time() -> None:
    found, plain = made(), b"".join(SOURCES)
    assert found.body[:10] == b"\x1f\x8b\x08\0\0\0\0\0\0\x03"
    member = zlib.decompressobj(31)
    assert member.decompress(found.body) == plain
    assert (member.eof, member.unused_data) == (True, b"")
    assert gzip.decompress(found.body) == igzip.decompress(found.body) == plain


@pytest.mark.parametrize("sources", [[], [b""]])
def test_an_output_without_content_is_one_empty_member_or_frame(sources: list[bytes]) -> None:
    for name, way in WAYS.items():
        body = made(sources, into=way()).body
        read = zstandard.decompress if name == "frames" else gzip.decompress
        assert (len(body) > 0, read(body)) == (True, b"")


def test_the_trailer_counts_beyond_four_gib_from_nought_as_rfc_1952_has_it() -> None:
    segment = encoder(Compression.GZIP).segments
    assert segment is not None
    assert segment.end(7, 2**32 + 5)[-8:] == b"\7\0\0\0\5\0\0\0"


# A stream of a socket has nothing available() between two packets. GZIPInputStream then takes the
# end of a member for the end of all.
PACKETS = """
import java.io.*;
import java.util.zip.GZIPInputStream;

public class Packets extends FilterInputStream {
    Packets(InputStream in) { super(in); }
    public int available() { return 0; }
    public int read(byte[] into, int at, int most) throws IOException {
        return super.read(into, at, Math.min(most, 61));
    }
    public static void main(String[] names) throws IOException {
        new GZIPInputStream(new Packets(new FileInputStream(names[0]))).transferTo(System.out);
    }
}
"""


@pytest.mark.parametrize("program", ["zcat", "gunzip -c", "java {}/Packets.java"])
def test_programs_of_others_read_all_segments(program: str, tmp_path: Path) -> None:
    words = program.format(tmp_path).split()
    if which(words[0]) is None:
        pytest.skip(f"no {words[0]} here")
    (tmp_path / "Packets.java").write_text(PACKETS)
    path = tmp_path / "output.gz"
    path.write_bytes(made().body)
    read = subprocess.run([*words, path], capture_output=True, check=True)
    assert read.stdout == b"".join(SOURCES)


def reading_on(found: Made, plain: bytes) -> Iterator[int]:
    """The plain bytes before each point, from all of which zlib reads on to the end."""
    for at, before in found.points:
        assert zlib.decompressobj(-15).decompress(found.body[at:]) == plain[before:]
        yield before


def test_segments_begin_with_a_source_and_each_is_a_point() -> None:
    begins = [0]
    for source in SOURCES:
        begins.append(begins[-1] + len(source))
    # No point but where a segment begins.
    found = made(limits=WorkerLimits(segment_bytes=4_000))
    points = list(reading_on(found, b"".join(SOURCES)))
    assert {*points} <= {*begins}
    for before, at in pairwise([0, *points]):
        assert at == min(one for one in begins if one >= before + 4_000)


def test_a_source_without_end_is_cut_at_twice_a_segment_and_there_are_points() -> None:
    source = lines(7, 50_000)
    found = made([source], limits=WorkerLimits(segment_bytes=4_000))
    assert list(reading_on(found, source)) == [*range(8_000, len(source), 8_000)]


def test_a_source_that_ends_with_its_segment_gives_one_point() -> None:
    found = made([b"x" * 8_000] * 5)
    assert list(reading_on(found, b"x" * 40_000)) == [8_000, 16_000, 24_000, 32_000]


def test_no_point_lies_close_before_the_next_segment() -> None:
    # A segment packs to 117,000 bytes. At the first source before which there are enough for a
    # point, there are 84,000.
    limits = WorkerLimits(segment_bytes=500_000, point_bytes=60_000)
    found = made([lines(seed, 3_000) for seed in range(700)], limits=limits)
    places = [0, *(at for at, _ in found.points)]
    assert len(places) == 5
    assert min(after - before for before, after in pairwise(places)) >= limits.point_bytes


def test_a_few_segments_are_held_however_slowly_they_are_encoded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    processors(monkeypatch, 3)
    let, into = threading.Event(), encoder(Compression.GZIP)
    Watched(into, lambda: require(let.wait(60)))
    writer = OutputWriter(store(), "lake", "out", into, limits=SMALL)
    writing = threading.Thread(target=fill, args=(writer,))
    writing.start()
    writing.join(0.3)
    assert writing.is_alive()
    # One for each thread, two that wait, one that is being filled, of at most two lengths each.
    assert writer.plain_bytes <= 6 * 2 * SMALL.segment_bytes
    let.set()
    writing.join(60)
    writer.finish()
    assert writer.plain_bytes == sum(map(len, SOURCES))


@pytest.mark.parametrize("sound", [0, 5])
def test_what_fails_in_a_thread_fails_the_output(sound: int) -> None:
    left, into = iter(range(sound)), encoder(Compression.GZIP)
    Watched(into, lambda: require(next(left, None) is not None))
    lake = store()
    writer = OutputWriter(lake, "lake", "out", into, limits=SMALL)
    with pytest.raises(Refused):
        fill_and_finish(writer)
    writer.abort()
    assert lake.unfinished_uploads("lake") == {}


def fill_and_finish(writer: OutputWriter) -> None:
    fill(writer)
    writer.finish()


@pytest.mark.parametrize("end", [OutputWriter.finish, OutputWriter.abort])
def test_no_thread_is_left(end: Callable[[OutputWriter], object]) -> None:
    before = {*threading.enumerate()}
    writer = OutputWriter(store(), "lake", "out", encoder(Compression.GZIP), limits=SMALL)
    fill(writer)
    end(writer)
    assert {*threading.enumerate()} <= before


def test_as_many_encode_as_there_are_processors_up_to_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for count, expected in ((1, 1), (3, 3), (64, USUAL.encoding_threads)):
        processors(monkeypatch, count)
        assert segments.threads(USUAL) == expected
    monkeypatch.delattr("os.sched_getaffinity", raising=False)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    assert segments.threads(USUAL) == 2
