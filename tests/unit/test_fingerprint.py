"""The digest of a listing: the same wherever pages end."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.fingerprint import Fingerprint, Seen
from compactor.model import SourceObject

ONE = SourceObject("b", "logs/a.json", "e" * 32, 10, 1_767_323_045.0)


def seen(*pages: list[SourceObject]) -> Seen:
    made = Fingerprint()
    for page in pages:
        made.add(page)
    return made.seen


@given(st.lists(st.integers(0, 10), max_size=6))
def test_where_pages_end_makes_no_difference(sizes: list[int]) -> None:
    objects = [replace(ONE, key=f"k{number:03}", size=number) for number in range(sum(sizes))]
    pages, start = [], 0
    for size in sizes:
        pages.append(objects[start : start + size])
        start += size
    assert seen(*pages) == seen(objects)


@pytest.mark.parametrize(
    "other",
    [
        replace(ONE, key="logs/b.json"),
        replace(ONE, etag="f" * 32),
        replace(ONE, size=11),
        replace(ONE, last_modified=ONE.last_modified + 1),
        replace(ONE, last_modified=ONE.last_modified + 0.001),
        replace(ONE, storage_class="GLACIER"),
        replace(ONE, restored_until=1.0),
    ],
)
def test_whatever_a_listing_says_of_an_object_counts(other: SourceObject) -> None:
    assert seen([other]).digest != seen([ONE]).digest


def test_a_value_is_not_the_beginning_of_the_next() -> None:
    first = [replace(ONE, key="ab"), replace(ONE, key="c")]
    second = [replace(ONE, key="a"), replace(ONE, key="bc")]
    assert seen(first) != seen(second)


def test_a_copy_goes_its_own_way() -> None:
    made = Fingerprint()
    made.add([ONE])
    other = made.copy()
    other.add([ONE])
    assert made.seen == seen([ONE])
    assert other.seen == seen([ONE, ONE])
