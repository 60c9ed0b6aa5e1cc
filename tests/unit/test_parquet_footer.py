"""Footers are read as far as they go, and anything else is refused, not misread."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.encoding.parquet_footer import ParquetFooter, footer_bytes, parse_footer, read_footer
from compactor.errors import UnreadableSource
from tests.support.parquet_example import PARQUET


def read(body: bytes) -> ParquetFooter:
    return read_footer(lambda start, length: body[start : start + length], len(body))


def renamed(name: bytes) -> bytes:
    """The example with its column, a name of two letters, called otherwise."""
    return PARQUET.replace(b"\x02id", b"\x02" + name).replace(b'"id"', b'"' + name + b'"')


def test_a_footer_shows_rows_row_groups_and_codec() -> None:
    footer = read(PARQUET)
    assert (footer.rows, footer.row_groups, footer.codec) == (3, 1, "gzip")


def test_objects_of_equal_columns_have_equal_digests_and_others_do_not() -> None:
    assert read(renamed(b"no")).schema_digest != read(PARQUET).schema_digest
    assert read(renamed(b"no")).schema_digest == read(renamed(b"no")).schema_digest
    # Neither who wrote an object nor what it holds is part of its columns.
    other = PARQUET.replace(b"version 1.16.0", b"version 9.99.9")
    assert other != PARQUET
    assert read(other).schema_digest == read(PARQUET).schema_digest


def test_a_footer_longer_than_the_first_look_takes_a_second_read() -> None:
    asked: list[tuple[int, int]] = []
    # A longer footer that parses: the text of its writer is followed by nothing.
    length = footer_bytes(PARQUET[-8:], len(PARQUET))
    footer = PARQUET[-8 - length : -8]
    writer = b"parquet-mr version 1.16.0 (build 402c3810c372d29603e181771acebfecc71bef61)"
    assert writer in footer
    longer = footer.replace(bytes([len(writer)]) + writer, b"\xf0\xa2\x04" + b"x" * 70_000)
    body = b"PAR1" + longer + len(longer).to_bytes(4, "little") + b"PAR1"

    def read_range(start: int, count: int) -> bytes:
        asked.append((start, count))
        return body[start : start + count]

    assert read_footer(read_range, len(body)).rows == 3
    assert [count for _, count in asked] == [65_536, len(longer) + 8]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "truncated"),
        (b"PAR1", "truncated"),
        (PARQUET[:-1], "truncated"),
        (b"any other content that is long enough", "truncated"),
        (PARQUET[:-4] + b"PARE", "unknown_format"),
        (b"PAR1" + b"\0\0\0\0" + b"PAR1", "corrupt_compression"),
        (b"PAR1" + b"\xff\xff\xff\x7f" + b"PAR1", "corrupt_compression"),
        (b"PAR1" + b"\xff" * 400 + (400).to_bytes(4, "little") + b"PAR1", "corrupt_compression"),
        (b"PAR1" + b"\0" * 9 + (9).to_bytes(4, "little") + b"PAR1", "corrupt_compression"),
    ],
)
def test_what_is_no_whole_parquet_object_is_refused(body: bytes, reason: str) -> None:
    with pytest.raises(UnreadableSource) as refused:
        read(body)
    assert refused.value.reason == reason


@given(st.binary(max_size=200), st.integers(0, 300))
def test_damaged_footers_are_read_or_refused_and_nothing_else(junk: bytes, at: int) -> None:
    length = footer_bytes(PARQUET[-8:], len(PARQUET))
    footer = bytearray(PARQUET[-8 - length : -8])
    footer[at : at + len(junk)] = junk
    reason = ""
    try:
        parse_footer(bytes(footer))
    except UnreadableSource as refused:
        reason = refused.reason
    assert reason in {"", "corrupt_compression"}
