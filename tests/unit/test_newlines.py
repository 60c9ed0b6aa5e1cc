"""Newlines are counted by jumping from one to the next, and are as many as looking finds."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from compactor.formats.lines import count_newlines

LENGTHS = [0, 1, 1_023, 1_024, 2_047, 2_048, 65_535, 65_536, 65_537, 200_000]


def looked_for(data: bytes) -> int:
    return sum(1 for byte in data if byte == 10)


def test_lines_of_any_length_are_counted() -> None:
    for length, every in itertools.product(LENGTHS, [1, 2, 30, 40, 41, 400, 300_000]):
        data = (b"x" * (every - 1) + b"\n") * (length // every) + b"y" * (length % every)
        found = (count_newlines(data), count_newlines(memoryview(data)))
        assert found == (looked_for(data),) * 2, (length, every)


@given(
    st.lists(st.tuples(st.integers(0, 5_000), st.integers(0, 60)), max_size=60),
    st.integers(0, 100),
)
def test_lines_are_counted_wherever_they_lie(runs: list[tuple[int, int]], start: int) -> None:
    """Runs of other bytes and of newlines: what begins sparse may go on dense."""
    data = b"".join(b"x" * others + b"\n" * newlines for others, newlines in runs)
    assert count_newlines(memoryview(data)[start:]) == looked_for(data[start:])
