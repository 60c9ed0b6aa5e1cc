"""Encodings: what goes in comes out, whatever the cuts; what is damaged never passes for whole."""

from __future__ import annotations

import contextlib
import gzip
import itertools
import os
import random
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from compactor.encoding.codecs import (
    beginning,
    decompress_stream,
    decompress_whole,
    detect_compression,
)
from compactor.encoding.encoders import BLOCK_BYTES, encoder
from compactor.errors import UnreadableSource
from compactor.model import Compression, QuarantineReason

MIB = 1 << 20
ENCODED = [Compression.GZIP, Compression.ZSTD]


def log_like(seed: int, size: int) -> bytes:
    source = random.Random(seed)
    lines = (
        b'{"id":%d,"user":"user%d","status":%d}\n'
        % (source.getrandbits(40), source.randrange(99), source.choice([200, 404, 500]))
        for _ in itertools.count()
    )
    content = bytearray()
    while len(content) < size:
        content += next(lines)
    return bytes(content[:size])


def cut(content: bytes, sizes: list[int]) -> Iterator[bytes]:
    at = 0
    for size in itertools.cycle(sizes):
        if at >= len(content):
            return
        yield content[at : at + size]
        at += size


def encode(compression: Compression, writes: Iterator[bytes] | list[bytes]) -> bytes:
    target = encoder(compression)
    return b"".join([*(target.write(data) for data in writes), target.finish()])


def compressed(compression: Compression, content: bytes) -> bytes:
    if compression is Compression.GZIP:
        return gzip.compress(content, 6, mtime=0)
    return zstandard.ZstdCompressor(write_checksum=True).compress(content)


def in_whole(content: bytes, compression: Compression) -> bytes:
    if compression is not Compression.NONE:
        plain = decompress_whole(content, compression, max_expansion=None, most_bytes=16 * MIB)
        if plain is not None:
            return plain
    return b"".join(decompress_stream((content,), compression))


def in_crumbs(content: bytes, compression: Compression) -> bytes:
    crumbs = cut(content, [1, 2, 3, 700])
    return b"".join(decompress_stream(crumbs, compression))


BOTH_WAYS = pytest.mark.parametrize("decode", [in_whole, in_crumbs])
Decode = Callable[[bytes, Compression], bytes]


def refused(decode: Decode, content: bytes, compression: Compression) -> str:
    with pytest.raises(UnreadableSource) as caught:
        decode(content, compression)
    return caught.value.reason


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (gzip.compress(b"x", mtime=0), Compression.GZIP),
        (zstandard.compress(b"x"), Compression.ZSTD),
        (b"\x5e\x2a\x4d\x18\x00\x00\x00\x00", Compression.ZSTD),
        (b'{"a": 1}', Compression.NONE),
        (b"\x1f\x8b", Compression.NONE),
        (b"", Compression.NONE),
        (b"\x4f\x2a\x4d\x18", Compression.NONE),
    ],
)
def test_the_first_bytes_alone_decide_the_compression(head: bytes, expected: Compression) -> None:
    assert detect_compression(head) is expected


@pytest.mark.parametrize("compression", list(Compression))
@given(
    seed=st.integers(0, 9),
    size=st.sampled_from([0, 1, 1000, BLOCK_BYTES - 1, BLOCK_BYTES, 3 * BLOCK_BYTES + 77]),
    sizes=st.lists(st.integers(1, 2 * BLOCK_BYTES), min_size=1, max_size=4),
)
@settings(max_examples=25, deadline=None)
def test_encoded_bytes_do_not_depend_on_the_cuts_between_writes(
    compression: Compression, seed: int, size: int, sizes: list[int]
) -> None:
    content = log_like(seed, size)
    sizes = [max(s, size // 500) for s in sizes]
    encoded = encode(compression, cut(content, sizes))
    assert encoded == encode(compression, [content])
    assert in_whole(encoded, compression) == content


def test_views_are_written_as_bytes_are() -> None:
    content = log_like(1, 2 * BLOCK_BYTES)
    for compression in Compression:
        target = encoder(compression)
        view = memoryview(content)
        pieces = [target.write(view[:100]), target.write(view[100:]), target.finish()]
        assert b"".join(pieces) == encode(compression, [content])


def test_a_gzip_output_is_one_member_without_name_or_time() -> None:
    content = log_like(2, 5 * BLOCK_BYTES)
    encoded = encode(Compression.GZIP, cut(content, [100_000]))
    assert encoded[:8] == b"\x1f\x8b\x08\x00\x00\x00\x00\x00"
    member = zlib.decompressobj(31)
    assert member.decompress(encoded) == content
    assert member.eof
    assert not member.unused_data


def test_a_zstd_output_is_one_frame_with_a_checksum() -> None:
    encoded = encode(Compression.ZSTD, [log_like(3, 1000)])
    assert zstandard.get_frame_parameters(encoded).has_checksum
    member = zstandard.ZstdDecompressor().decompressobj()
    assert member.decompress(encoded) == log_like(3, 1000)
    assert member.eof
    assert not member.unused_data


@given(
    contents=st.lists(
        st.one_of(st.binary(max_size=300), st.integers(0, 3 * MIB).map(bytes)),
        min_size=1,
        max_size=4,
    ),
    compression=st.sampled_from(ENCODED),
    sizes=st.lists(st.integers(1, 5000), min_size=1, max_size=3),
)
@settings(max_examples=60, deadline=None)
def test_all_members_and_frames_of_a_source_are_read(
    contents: list[bytes], compression: Compression, sizes: list[int]
) -> None:
    encoded = b"".join(compressed(compression, content) for content in contents)
    assert in_whole(encoded, compression) == b"".join(contents)
    pieces = list(decompress_stream(cut(encoded, sizes), compression))
    assert b"".join(pieces) == b"".join(contents)
    assert all(len(piece) <= MIB for piece in pieces)


@BOTH_WAYS
def test_optional_gzip_header_fields_are_skipped(decode: Decode) -> None:
    content = log_like(4, 3000)
    body = gzip.compress(content, mtime=0)[10:]
    extra, name, comment = b"\x05\x00extra", b"a.log\0", b"c" * 20_000 + b"\0"
    for flags, fields in ((8, name), (16, comment), (4, extra), (28, extra + name + comment)):
        encoded = b"\x1f\x8b\x08" + bytes([flags]) + bytes(6) + fields + body
        assert decode(encoded + encoded, Compression.GZIP) == content * 2


@BOTH_WAYS
@pytest.mark.parametrize("compression", ENCODED)
def test_a_source_cut_anywhere_is_never_taken_for_a_shorter_one(
    decode: Decode, compression: Compression
) -> None:
    encoded = compressed(compression, log_like(5, 2500))
    for length in range(4, len(encoded)):
        assert refused(decode, encoded[:length], compression) == QuarantineReason.TRUNCATED


@pytest.mark.parametrize("compression", ENCODED)
def test_most_of_what_precedes_the_cut_is_decoded(compression: Compression) -> None:
    content = log_like(5, MIB)
    encoded = compressed(compression, content)
    plain, complete = beginning(encoded[: len(encoded) * 9 // 10], complete=False)
    assert content.startswith(plain)
    assert (len(plain) > MIB // 2, complete) == (True, False)


@BOTH_WAYS
@pytest.mark.parametrize("compression", ENCODED)
def test_a_second_member_cut_within_its_header_is_noticed(
    decode: Decode, compression: Compression
) -> None:
    encoded = compressed(compression, b"first")
    second = compressed(compression, b"second")
    for length in range(1, 8):
        found = refused(decode, encoded + second[:length], compression)
        assert found in {QuarantineReason.TRUNCATED, QuarantineReason.CORRUPT}


@pytest.mark.parametrize("compression", ENCODED)
def test_one_flipped_bit_never_gives_other_content(compression: Compression) -> None:
    content = log_like(6, 900)
    encoded = compressed(compression, content)
    for at, bit in itertools.product(range(len(encoded)), range(8)):
        damaged = bytearray(encoded)
        damaged[at] ^= 1 << bit
        with contextlib.suppress(UnreadableSource):
            assert in_whole(bytes(damaged), compression) == content


@BOTH_WAYS
def test_zero_padding_after_a_gzip_member_is_accepted(decode: Decode) -> None:
    encoded = gzip.compress(b"content", mtime=0)
    for padding in (1, 511, 300_000):
        assert decode(encoded + bytes(padding), Compression.GZIP) == b"content"


@BOTH_WAYS
@pytest.mark.parametrize(
    "garbage", [b"garbage", b"\0\0x", bytes(600_000) + b"x", b"\x1f\x8c", b"x" * 99]
)
def test_other_bytes_after_a_gzip_member_are_refused(decode: Decode, garbage: bytes) -> None:
    found = refused(decode, gzip.compress(b"content", mtime=0) + garbage, Compression.GZIP)
    # What is shorter than a header may be the begin of one.
    assert found in {QuarantineReason.TRUNCATED, QuarantineReason.CORRUPT}


@BOTH_WAYS
def test_bytes_after_a_zstd_frame_are_corrupt(decode: Decode) -> None:
    found = refused(decode, zstandard.compress(b"content") + b"garbage", Compression.ZSTD)
    assert found == QuarantineReason.CORRUPT


@BOTH_WAYS
def test_skippable_zstd_frames_are_skipped(decode: Decode) -> None:
    skippable = b"\x53\x2a\x4d\x18" + (700).to_bytes(4, "little") + os.urandom(700)
    content = zstandard.compress(b"content")
    assert decode(skippable + content + skippable, Compression.ZSTD) == b"content"
    assert decode(skippable, Compression.ZSTD) == b""
    found = refused(decode, content + skippable[:-1], Compression.ZSTD)
    assert found == QuarantineReason.TRUNCATED


@pytest.mark.parametrize("compression", ENCODED)
def test_a_bomb_is_given_up_early_and_in_bounded_memory(compression: Compression) -> None:
    bomb = encode(compression, itertools.repeat(bytes(MIB), 200))
    tracemalloc.start()
    received: list[int] = []
    try:
        with pytest.raises(UnreadableSource) as caught:
            received.extend(map(len, decompress_stream([bomb], compression, max_expansion=10)))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert caught.value.reason == QuarantineReason.BOMB
    assert peak < 24 * MIB
    assert 0 < sum(received) <= 16 * MIB


@pytest.mark.parametrize("said", [0, 5, 16 * MIB, 200 * MIB - 1])
def test_no_more_is_inflated_in_one_piece_than_a_member_says_it_has(said: int) -> None:
    member = encode(Compression.GZIP, [bytes(MIB)] * 200)
    lying = member[:-4] + said.to_bytes(4, "little")
    tracemalloc.start()
    try:
        found = decompress_whole(lying, Compression.GZIP, max_expansion=10, most_bytes=16 * MIB)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found is None
    assert peak < 18 * MIB
    with pytest.raises(UnreadableSource):
        list(decompress_stream((lying,), Compression.GZIP, max_expansion=10))


@pytest.mark.parametrize("compression", ENCODED)
def test_one_sound_member_or_frame_is_inflated_in_one_piece_where_so_much_is_wanted(
    compression: Compression,
) -> None:
    content = log_like(9, MIB // 2)
    encoded = compressed(compression, content)

    def at_once(stored: bytes, most: int) -> bytes | None:
        return decompress_whole(stored, compression, max_expansion=None, most_bytes=most)

    assert at_once(encoded, len(content)) == content
    assert at_once(encoded, len(content) - 1) is None
    assert at_once(encoded + encoded, len(content)) is None
    assert at_once(encoded[:-1], len(content)) is None


def test_a_small_source_may_expand_as_it_likes() -> None:
    content = bytes(16 * MIB)
    for compression in ENCODED:
        encoded = encode(compression, [content])
        pieces = decompress_stream((encoded,), compression, max_expansion=1)
        assert b"".join(pieces) == content


def test_a_zstd_window_that_would_take_a_gibibyte_is_refused() -> None:
    window_log_30 = bytes([(30 - 10) << 3])
    frame = b"\x28\xb5\x2f\xfd\x00" + window_log_30 + b"\x01\x00\x00"
    assert refused(in_whole, frame, Compression.ZSTD) == QuarantineReason.BOMB


@pytest.mark.timeout(60)
@pytest.mark.parametrize("compression", ENCODED)
def test_the_work_grows_with_the_members_and_not_with_their_square(
    compression: Compression,
) -> None:
    content = random.Random(8).randbytes(200)
    # With the rest copied at every member it would be four terabytes.
    members = 200_000
    assert in_whole(compressed(compression, content) * members, compression) == content * members


def test_uncompressed_chunks_pass_untouched_and_large_ones_in_pieces() -> None:
    small, large = b"small", bytes(3 * MIB + 5)
    pieces = list(decompress_stream([small, large], Compression.NONE))
    assert pieces[0] is small
    assert b"".join(pieces) == small + large
    assert max(map(len, pieces)) <= MIB


def test_threads_do_not_share_a_decoder() -> None:
    contents = [random.Random(seed).randbytes(300_000) + bytes(600_000) for seed in range(40)]
    # Without checksums, so that content mixed up by two threads would pass for sound.
    encoded = [zstandard.ZstdCompressor().compress(content) for content in contents]
    with ThreadPoolExecutor(8) as pool:
        decoded = pool.map(lambda data: in_whole(data, Compression.ZSTD), encoded)
        assert list(decoded) == contents


def test_content_that_is_not_encoded_is_corrupt_to_a_decoder() -> None:
    for compression in ENCODED:
        assert refused(in_whole, b"plain text, not encoded", compression) == "corrupt_compression"
