"""Newlines are counted by jumping from one to the next, and are as many as looking finds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.formats.lines import count_newlines

LENGTHS = [0, 1, 1_023, 1_024, 2_047, 2_048, 65_535, 65_536, 65_537, 200_000]


def looked_for(data: bytes) -> int:
    return sum(1 for byte in data if byte == 10)


@pytest.mark.parametrize("every", [1, 2, 30, 40, 41, 400, 300_000])
@pytest.mark.parametrize("length", LENGTHS)
def test_lines_of_any_length_are_counted(length: int, every: int) -> None:
    data = (b"x" * (every - 1) + b"\n") * (length // every) + b"y" * (length % every)
    assert count_newlines(data) == count_newlines(memoryview(data)) == looked_for(data)


@given(
    st.lists(st.tuples(st.integers(0, 5_000), st.integers(0, 60)), max_size=60),
    st.integers(0, 100),
)
def test_lines_are_counted_wherever_they_lie(runs: list[tuple[int, int]], start: int) -> None:
    """Runs of other bytes and of newlines: what begins sparse may go on dense."""
    data = b"".join(b"x" * others + b"\n" * newlines for others, newlines in runs)
    assert count_newlines(memoryview(data)[start:]) == looked_for(data[start:])
