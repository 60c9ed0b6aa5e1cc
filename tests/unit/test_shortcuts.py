"""What one search finds is what a closer look finds."""

from __future__ import annotations

import random

import pytest

from compactor.formats import json_text

_JSON = (
    b'{"a":1}',
    b"{",
    b"}",
    b'"a"',
    b":",
    b"1",
    b",",
    b"\n",
    b"\r\n",
    b" ",
    b"[",
    b"{}",
    b"NaN",
)


def test_lines_that_are_one_array_are_lines_one_by_one() -> None:
    chance = random.Random(1)
    texts = [
        b"".join(chance.choice(_JSON) for _ in range(chance.randint(1, 7))) for _ in range(40_000)
    ]
    found = [text for text in texts if json_text._are_plain_lines(text)]
    assert len({text for text in found if b"\n" in text.strip()}) > 5
    assert all(json_text._are_any_lines(text) for text in found)


@pytest.mark.parametrize("text", [b'{"a":1}{"b":2}\n', b'{"a":1\n"b":2}', b'{"a":\n1}\n{"b":2}'])
def test_no_array_hides_that_a_line_is_no_object(text: bytes) -> None:
    assert not json_text.are_json_lines(text)
