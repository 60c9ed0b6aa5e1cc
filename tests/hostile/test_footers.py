"""Parquet footers made to exhaust their readers."""

from __future__ import annotations

import pytest

from compactor.encoding.parquet_file import open_parquet
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


def refusal(footer: bytes) -> QuarantineReason:
    body = b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1"
    with pytest.raises(UnreadableSource) as refused:
        open_parquet(lambda start, length: body[start : start + length], len(body))
    return QuarantineReason(refused.value.reason)


@pytest.mark.parametrize("footer", TRAPS.values(), ids=TRAPS)
def test_a_footer_that_goes_on_without_end_or_makes_no_sense_is_refused(footer: bytes) -> None:
    assert refusal(footer) is QuarantineReason.CORRUPT


def test_a_million_empty_row_groups_are_refused() -> None:
    assert refusal(b"\x29\x1c\x00\x16\x02\x19" + LONG + bytes(MIB) + b"\x00") is (
        QuarantineReason.CORRUPT
    )


def test_a_footer_of_more_than_64_mib_is_not_even_read() -> None:
    trailer = (64 * MIB + 1).to_bytes(4, "little") + b"PAR1"
    asked: list[int] = []

    def read_range(start: int, length: int) -> bytes:
        asked.append(length)
        return bytes(length - len(trailer)) + trailer

    with pytest.raises(UnreadableSource) as refused:
        open_parquet(read_range, 1 << 40)
    assert refused.value.reason is QuarantineReason.TOO_LARGE
    assert asked == [64 << 10]
