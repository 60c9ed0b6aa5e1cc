"""Parquet footers made to exhaust their readers."""

from __future__ import annotations

import pytest

from compactor.encoding.parquet_footer import footer_bytes, parse_footer
from compactor.errors import UnreadableSource
from compactor.model import QuarantineReason

MIB = 1 << 20
LONG = b"\xfc\x80\x80\x40"  # a list of 2**20 structs
TRAPS = {
    "a number without an end": b"\x36" + b"\xff" * MIB,
    "a list longer than its bytes": bytes([0x49, 0xFC]) + b"\xff" * 8 + b"\x7f",
    "lists in lists": bytes([0x49]) + bytes([0x19]) * MIB,
    "structs in structs": b"\x4c" * MIB,
    "a map": b"\x1b\x01\x11",
    "a value of no kind": b"\x1f",
    "row groups that are a number": b"\x29\x1c\x00\x16\x02\x16\x02",
    "a negative number of rows": b"\x29\x1c\x00\x16\x01\x19\x0c",
    "nothing": b"\x00",
}


@pytest.mark.parametrize("footer", TRAPS.values(), ids=TRAPS)
def test_a_footer_that_goes_on_without_end_or_makes_no_sense_is_refused(footer: bytes) -> None:
    with pytest.raises(UnreadableSource) as refused:
        parse_footer(footer)
    assert refused.value.reason is QuarantineReason.CORRUPT


def test_a_million_empty_row_groups_are_counted_and_not_kept() -> None:
    footer = b"\x29\x1c\x00\x16\x02\x19" + LONG + bytes(MIB) + b"\x00"
    found = parse_footer(footer)
    assert (found.rows, found.row_groups, found.codec) == (1, MIB, "none")


def test_a_footer_of_more_than_64_mib_is_not_even_read() -> None:
    trailer = (64 * MIB + 1).to_bytes(4, "little") + b"PAR1"
    with pytest.raises(UnreadableSource) as refused:
        footer_bytes(trailer, 1 << 40)
    assert refused.value.reason is QuarantineReason.TOO_LARGE
