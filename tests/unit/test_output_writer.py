"""Outputs encoded in a thread of their own: the same bytes however they are written, one member."""

from __future__ import annotations

import gzip
import random
import subprocess
import threading
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from shutil import which
from typing import NamedTuple

import pytest
import zstandard
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from isal import igzip

from compactor.encoding.encoders import Encoder, encoder
from compactor.limits import WorkerLimits
from compactor.model import Compression
from compactor.outputs.output_writer import OutputWriter
from tests.support.memory_store import ManualClock, MemoryStore

SMALL = WorkerLimits(block_bytes=4_000)
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


def store() -> MemoryStore:
    lake = MemoryStore(ManualClock(1_700_000_000.0))
    lake.add_bucket("lake")
    return lake


def fill(
    writer: OutputWriter, sources: Sequence[bytes] = SOURCES, write: Write = in_one_piece
) -> None:
    for source in sources:
        write(writer, source)


def made(
    sources: Sequence[bytes] = SOURCES,
    *,
    compression: Compression = Compression.GZIP,
    limits: WorkerLimits = SMALL,
    write: Write = in_one_piece,
) -> Made:
    lake = store()
    writer = OutputWriter(lake, "lake", "out", encoder(compression), limits=limits)
    fill(writer, sources, write)
    upload_id, parts = writer.finish()
    lake.complete_upload("lake", "out", upload_id, parts, crc32=writer.crc32)
    return Made(lake.get("lake", "out"), writer)


class Watched:
    """An encoder that does something before each block."""

    def __init__(self, into: Encoder, before: Callable[[], None]) -> None:
        self._into = into
        self._before = before

    def write(self, data: bytes | memoryview) -> bytes:
        self._before()
        return self._into.write(data)

    def finish(self) -> bytes:
        return self._into.finish()


class Refused(Exception):
    """What the encoding thread fails with."""


@pytest.mark.parametrize("compression", list(Compression))
@given(seed=st.integers(0, 2**32), block_bytes=st.sampled_from([1, 4_000, 100_000]))
@hypothesis_settings(max_examples=30, deadline=None)
def test_bytes_do_not_depend_on_the_cuts_between_writes(
    seed: int, block_bytes: int, compression: Compression
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

    limits = WorkerLimits(block_bytes=block_bytes)
    expected = made(sources, compression=compression)
    assert made(sources, compression=compression, limits=limits, write=in_pieces).body == (
        expected.body
    )


def test_what_the_writer_says_of_an_output_is_true_of_its_bytes() -> None:
    body, writer = made()
    plain = b"".join(SOURCES)
    assert (writer.size, writer.crc32) == (len(body), zlib.crc32(body))
    assert (writer.plain_bytes, writer.newlines) == (len(plain), plain.count(b"\n"))


def test_a_gzip_output_is_one_member_without_name_or_time() -> None:
    body, plain = made().body, b"".join(SOURCES)
    assert body[:9] == b"\x1f\x8b\x08\0\0\0\0\0\0"
    member = zlib.decompressobj(31)
    assert member.decompress(body) == plain
    assert (member.eof, member.unused_data) == (True, b"")
    assert gzip.decompress(body) == igzip.decompress(body) == plain


@pytest.mark.parametrize("sources", [[], [b""]])
def test_an_output_without_content_is_one_empty_member_or_frame(sources: list[bytes]) -> None:
    for compression, read in (
        (Compression.GZIP, gzip.decompress),
        (Compression.ZSTD, zstandard.decompress),
    ):
        body = made(sources, compression=compression).body
        assert (len(body) > 0, read(body)) == (True, b"")


@pytest.mark.parametrize("program", ["zcat", "gunzip -c"])
def test_programs_of_others_read_it_whole(program: str, tmp_path: Path) -> None:
    words = program.split()
    if which(words[0]) is None:
        pytest.skip(f"no {words[0]} here")
    path = tmp_path / "output.gz"
    path.write_bytes(made().body)
    read = subprocess.run([*words, path], capture_output=True, check=True)
    assert read.stdout == b"".join(SOURCES)


def test_a_few_blocks_are_held_however_slowly_they_are_encoded() -> None:
    let = threading.Event()
    slow = Watched(encoder(Compression.GZIP), lambda: require(let.wait(60)))
    writer = OutputWriter(store(), "lake", "out", slow, limits=SMALL)
    writing = threading.Thread(target=fill, args=(writer,))
    writing.start()
    writing.join(0.3)
    assert writing.is_alive()
    # Four that wait or are encoded, and one that is being filled, of less than two lengths each.
    assert writer.plain_bytes <= 5 * 2 * SMALL.block_bytes
    let.set()
    writing.join(60)
    writer.finish()
    assert writer.plain_bytes == sum(map(len, SOURCES))


def require(allowed: bool) -> None:
    if not allowed:
        raise Refused


@pytest.mark.parametrize("sound", [0, 5])
def test_what_fails_in_the_thread_fails_the_output(sound: int) -> None:
    left = iter(range(sound))
    failing = Watched(encoder(Compression.GZIP), lambda: require(next(left, None) is not None))
    lake = store()
    writer = OutputWriter(lake, "lake", "out", failing, limits=SMALL)
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
