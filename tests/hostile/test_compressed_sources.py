"""Malformed and unusual gzip and zstd: exact content, or quarantine with a reason."""

from __future__ import annotations

import gzip
import struct
import zlib
from itertools import product

import pytest
import zstandard

from compactor.encoding.codecs import decompress_stream, detect_compression
from compactor.errors import UnreadableSource
from compactor.model import QuarantineReason
from tests.hostile.outcomes import compacted, quarantined
from tests.hostile.zstd import COMPRESSED, RAW, RESERVED, RLE, block, frame

PLAIN = b"one\ntwo\n"
LONG = b"".join(b"line %d\n" % n for n in range(9_000))
MEMBER = gzip.compress(PLAIN, mtime=0)
EMPTY = gzip.compress(b"", mtime=0)
DEFLATED = MEMBER[10:]
START = b"\x1f\x8b\x08"
FRAME = zstandard.ZstdCompressor(write_checksum=True).compress(PLAIN)
SKIPPABLE = b"\x5a\x2a\x4d\x18" + struct.pack("<I", 5) + b"abcde"
ZSTD_START = b"\x28\xb5\x2f\xfd"


def with_header(flags: int, fields: bytes) -> bytes:
    return START + bytes([flags]) + bytes(6) + fields + DEFLATED


def header_checked(fields: bytes = b"") -> bytes:
    head = START + bytes([2]) + bytes(6) + fields
    return head + struct.pack("<H", zlib.crc32(head) & 0xFFFF) + DEFLATED


EXACT = {
    "a plain member": (MEMBER, PLAIN),
    "padded with zeros": (MEMBER + bytes(4_000), PLAIN),
    "an empty member": (EMPTY, b""),
    "an empty member before the content": (EMPTY + MEMBER, PLAIN),
    "empty members around the content": (EMPTY * 40 + MEMBER + EMPTY * 40 + bytes(3), PLAIN),
    "nothing but ten thousand empty members": (EMPTY * 10_000, b""),
    "ten thousand members": (MEMBER * 10_000, PLAIN * 10_000),
    "a line cut by a member's end": (
        gzip.compress(b"on", mtime=0) + gzip.compress(b"e\ntwo\n", mtime=0),
        PLAIN,
    ),
    "a name and a comment": (with_header(24, b"a name\0a comment\0"), PLAIN),
    "an extra field of 65,535 bytes": (with_header(4, b"\xff\xff" + bytes(65_535)), PLAIN),
    "a name of 100,000 bytes": (with_header(8, b"n" * 100_000 + b"\0"), PLAIN),
    "a checked header": (header_checked(), PLAIN),
    "stored without compression": (gzip.compress(LONG, 0, mtime=0), LONG),
    "flags from the future": (START + b"\x80" + MEMBER[4:], PLAIN),
    "a time and another system": (START + b"\0\xff\xff\xff\xff\2\7" + DEFLATED, PLAIN),
}


@pytest.mark.parametrize(("stored", "plain"), EXACT.values(), ids=EXACT)
def test_odd_gzip_that_is_sound_is_compacted_exactly(stored: bytes, plain: bytes) -> None:
    compacted(".log.gz", stored, plain, format="text")


CUT, WRONG = QuarantineReason.TRUNCATED, QuarantineReason.CORRUPT
BROKEN = {
    "garbage behind it": (MEMBER + b"garbage behind it", WRONG),
    "garbage behind zeros": (MEMBER + bytes(600) + b"garbage behind zeros", WRONG),
    "less garbage than a header has": (MEMBER + b"x", CUT),
    "half a magic number behind it": (MEMBER + START[:2], CUT),
    "half a header behind it": (MEMBER + MEMBER[:9], CUT),
    "no trailer": (MEMBER[:-8], CUT),
    "half a trailer": (MEMBER[:-3], CUT),
    "a wrong length": (MEMBER[:-4] + b"\1\2\3\4", WRONG),
    "a wrong checksum": (MEMBER[:-8] + b"\1\2\3\4" + MEMBER[-4:], WRONG),
    "a wrong length in its second member": (MEMBER + MEMBER[:-4] + b"\1\2\3\4", WRONG),
    "only a header": (MEMBER[:10], CUT),
    "only the magic number": (START, CUT),
    "a wrong header checksum": (with_header(2, b"\1\2"), WRONG),
    "a name without an end": (with_header(8, b"n" * 300_000), WRONG),
    "a block of a kind that does not exist": (MEMBER[:10] + b"\7" + MEMBER[11:], WRONG),
}


@pytest.mark.parametrize(("stored", "reason"), BROKEN.values(), ids=BROKEN)
def test_broken_gzip_is_left_alone_with_a_reason(stored: bytes, reason: QuarantineReason) -> None:
    assert quarantined(".log.gz", stored) is reason


def test_gzip_within_gzip_is_left_alone_as_binary_content() -> None:
    assert quarantined(".log.gz", gzip.compress(MEMBER, mtime=0)) is QuarantineReason.BINARY
    nested = PLAIN
    for _ in range(40):
        nested = gzip.compress(nested, mtime=0)
    assert quarantined(".log.gz", nested) is QuarantineReason.BINARY


EXACT_ZSTD = {
    "a plain frame": (FRAME, PLAIN),
    "two frames": (FRAME + FRAME, PLAIN * 2),
    "a thousand frames": (FRAME * 1_000, PLAIN * 1_000),
    "skippable frames around it": (SKIPPABLE * 9 + FRAME + SKIPPABLE * 9, PLAIN),
    "nothing but skippable frames": (SKIPPABLE * 9, b""),
    "thousands of empty blocks": (
        frame()[:6] + block(RAW, 0, b"") * 9_000 + block(RAW, 3, b"ok\n", last=True),
        b"ok\n",
    ),
    "a content size that is right": (frame(b"right\n", content_size=6), b"right\n"),
}


@pytest.mark.parametrize(("stored", "plain"), EXACT_ZSTD.values(), ids=EXACT_ZSTD)
def test_odd_zstd_that_is_sound_is_compacted_exactly(stored: bytes, plain: bytes) -> None:
    compacted(".log.zst", stored, plain, format="text")


BOMB = QuarantineReason.BOMB
BROKEN_ZSTD = {
    "garbage behind it": (FRAME + b"garbage", WRONG),
    # zstd has no padding: its own command refuses these zeros, too.
    "zeros behind it": (FRAME + bytes(9), WRONG),
    "cut within the checksum": (FRAME[:-2], CUT),
    "cut within a block": (FRAME[:-8], CUT),
    "half a header": (FRAME[:5], CUT),
    "half a skippable frame": (FRAME + SKIPPABLE[:-1], CUT),
    "a skippable frame of four gigabytes that is not there": (SKIPPABLE[:4] + b"\xff" * 4, CUT),
    "a wrong checksum": (FRAME[:-1] + bytes([FRAME[-1] ^ 1]), WRONG),
    "a content size too small": (frame(b"12345\n", content_size=5), WRONG),
    "a content size too large": (frame(b"12345\n", content_size=7), WRONG),
    "a content size of a gibibyte": (frame(content_size=1 << 30), BOMB),
    "a content size of all bits": (frame(content_size=(1 << 64) - 1), BOMB),
    "a window of 256 MiB": (frame(window_log=28), BOMB),
    "a window of 2 TiB": (frame(window_log=41), BOMB),
    "a block of the reserved kind": (frame()[:6] + block(RESERVED, 1, b"x", last=True), WRONG),
    "a block larger than blocks may be": (
        frame()[:6] + block(RLE, (1 << 21) - 1, b"x", last=True),
        WRONG,
    ),
    "a compressed block of noise": (
        frame()[:6] + block(COMPRESSED, 5, b"noise", last=True),
        WRONG,
    ),
    "a dictionary that nobody has": (
        ZSTD_START + b"\x23\x07\x05" + block(RAW, 5, b"fine\n", last=True),
        WRONG,
    ),
}


@pytest.mark.parametrize(("stored", "reason"), BROKEN_ZSTD.values(), ids=BROKEN_ZSTD)
def test_broken_zstd_is_left_alone_with_a_reason(stored: bytes, reason: QuarantineReason) -> None:
    assert quarantined(".log.zst", stored) is reason


# A source may be 16 MiB of plain bytes before anybody asks how far it expanded.
BOMBS = {
    "one gzip member": gzip.compress(b"t" * (17 << 20), mtime=0),
    "seventeen gzip members": gzip.compress(b"t" * (1 << 20), mtime=0) * 17,
    "one zstd frame": zstandard.compress(b"t" * (17 << 20)),
    "zstd blocks of one byte": frame()[:6]
    + (block(RLE, 128 << 10, b"t") * 136)
    + block(RAW, 0, b"", last=True),
}


@pytest.mark.parametrize("stored", BOMBS.values(), ids=BOMBS)
def test_what_expands_beyond_reason_is_left_alone_as_a_bomb(stored: bytes) -> None:
    assert quarantined(".log.gz", stored) is BOMB


def test_what_expands_beyond_reason_is_compacted_where_the_settings_say_so() -> None:
    plain = b"t" * (17 << 20) + b"\n"
    compacted(".log.gz", gzip.compress(plain, mtime=0), plain, max_expansion=2_000, format="text")


def test_every_cut_of_a_compressed_source_is_noticed() -> None:
    for name, stored in ((".log.gz", MEMBER), (".log.zst", FRAME)):
        for size in range(5, len(stored)):
            assert quarantined(name, stored[:size]) is CUT, size


def decompressed(stored: bytes) -> tuple[bytes, QuarantineReason | None]:
    try:
        return b"".join(decompress_stream((stored,), detect_compression(stored))), None
    except UnreadableSource as error:
        return b"", QuarantineReason(error.reason)


@pytest.mark.parametrize(("name", "stored"), [(".log.gz", MEMBER), (".log.zst", FRAME)])
def test_no_flipped_bit_of_a_compressed_source_gives_other_content(
    name: str, stored: bytes
) -> None:
    """It is noticed, or it is one that means nothing: a header's time, padding after the end."""
    harmless = 0
    for at, bit in product(range(4, len(stored)), range(8)):
        hurt = stored[:at] + bytes([stored[at] ^ (1 << bit)]) + stored[at + 1 :]
        plain, refusal = decompressed(hurt)
        if refusal is None:
            assert plain == PLAIN, (at, bit)
            harmless += 1
        else:
            assert quarantined(name, hurt) is refusal
    assert harmless < 60
