from __future__ import annotations

import bisect
import contextlib
import itertools
import threading
import time
import uuid
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.errors import IntegrityError
from compactor.model import SourceObject
from compactor.s3 import listing
from compactor.s3.key_ranges import key_ahead

PAGE = 10
DAY = "logs/2026-01-31-"


class Pages:
    """A listing of some keys, page by page, that counts what it was asked."""

    def __init__(self, keys, page=PAGE, empty_every=0):
        self.keys = sorted(keys)
        self.page = page
        self.empty_every = empty_every
        self.asked = []
        self.lock = threading.Lock()

    def __call__(self, place):
        with self.lock:
            self.asked.append(place)
            number = len(self.asked)
        at = int(place.token) if place.token else bisect.bisect_right(self.keys, place.key)
        if self.empty_every and number % self.empty_every == 0 and at < len(self.keys):
            return [], str(at)
        end = at + self.page
        found = [SourceObject("b", key, "e", 1, 0.0) for key in self.keys[at:end]]
        return found, str(end) if end < len(self.keys) else ""

    def listed(self, fixed=0):
        objects, token = self(listing._Place(""))
        found = [objects]
        if token:
            found += listing._Ranges(self, fixed=fixed).after(objects, token)
        return [one.key for page in found for one in page]


def ids(count):
    random = Random(7)
    return [str(uuid.UUID(int=random.getrandbits(128))) for _ in range(count)]


SPREADS = {
    "numbers": [f"{DAY}{number:06}.json" for number in range(2_000)],
    "numbers that grow in length": [f"{DAY}{number}.json" for number in range(2_000)],
    "UUIDs": [f"logs/{one}.gz" for one in ids(2_000)],
    "times": [f"logs/{n // 60:02}:{n % 60:02}:{s:02}Z" for n in range(500) for s in (1, 7, 30, 59)],
    "one dense hour in a thin day": [f"logs/12/{n:05}" for n in range(1_900)]
    + [f"logs/{hour:02}/00000" for hour in range(24)],
    "words": sorted({f"logs/{a}{b}{c}" for a in "aeiou" for b in "klmnp" for c in "xyz019AZ"}),
}


@pytest.mark.parametrize("keys", SPREADS.values(), ids=SPREADS)
def test_every_key_is_listed_once_and_in_order(keys) -> None:
    assert Pages(keys).listed(fixed=len("logs/")) == sorted(keys)


@given(st.sets(st.text(max_size=6), max_size=120), st.integers(1, 7), st.integers(0, 3))
def test_any_keys_are_listed_once_and_in_order(keys, page, empty_every) -> None:
    # A first page may be empty and still have more behind it.
    pages = Pages(keys - {""}, page, empty_every and empty_every + 1)
    assert pages.listed() == sorted(keys - {""})


MANY = {
    "numbers": [f"{DAY}{number:06}.json" for number in range(10_000)],
    "numbers that grow in length": [f"{DAY}{number}.json" for number in range(10_000)],
    "UUIDs": [f"logs/{one}.gz" for one in ids(10_000)],
    "times": [
        f"logs/{d:02}/{n // 60:02}:{n % 60:02}:{s:02}Z"
        for d in range(1, 4)
        for n in range(24 * 60)
        for s in (1, 30, 59)
    ],
    "one dense hour in a thin day": [f"logs/12/{n:06}" for n in range(9_000)]
    + [f"logs/{hour:02}/{n:06}" for hour in range(24) for n in range(3)],
}


@pytest.mark.parametrize("keys", MANY.values(), ids=MANY)
@pytest.mark.parametrize("page", [20, 50, 500])
def test_concurrent_ranges_list_at_most_a_tenth_more_pages_than_the_keys_fill(keys, page) -> None:
    pages = Pages(keys, page)
    assert pages.listed(fixed=len("logs/")) == sorted(keys)
    # One that is not full comes last.
    assert len(pages.asked) <= 1.1 * len(keys) / page + 1


@given(st.sets(st.text("ab01/", min_size=1, max_size=6), max_size=300), st.integers(1, 7))
def test_whatever_the_keys_few_pages_are_asked_for_in_vain(keys, page) -> None:
    pages = Pages(keys, page)
    assert pages.listed() == sorted(keys)
    assert len(pages.asked) <= 1.1 * len(keys) / page + 2


@pytest.mark.parametrize("name", MANY)
def test_few_pages_are_listed_one_after_the_other_and_none_in_vain(name) -> None:
    keys = MANY[name][:500]
    pages = Pages(keys, 50)
    pages.listed(fixed=len("logs/"))
    assert len(pages.asked) == len(keys) / 50


@pytest.mark.parametrize("name", ["numbers", "UUIDs", "times"])
def test_evenly_spread_keys_are_listed_from_several_places_concurrently(name) -> None:
    pages = Pages(MANY[name], 50)
    running = most = 0
    changed = threading.Condition()

    def counted(place):
        nonlocal running, most
        with changed:
            running += 1
            most = max(most, running)
            changed.notify_all()
            # Until several were there at once, each gives the others time to come.
            changed.wait_for(lambda: most >= 3, 0.02)
        try:
            return pages(place)
        finally:
            with changed:
                running -= 1

    objects, token = pages(listing._Place(""))
    for _ in listing._Ranges(counted, fixed=len("logs/")).after(objects, token):
        pass
    assert 3 <= most <= listing.MOST_RANGES


def test_a_listing_that_is_given_up_asks_for_nothing_more() -> None:
    pages = Pages(SPREADS["numbers"])
    objects, token = pages(listing._Place(""))
    ahead = listing._Ranges(pages, fixed=len("logs/")).after(objects, token)
    with contextlib.closing(ahead):  # type: ignore[type-var]  # it is a generator
        assert list(itertools.islice(ahead, 3))
    asked = len(pages.asked)
    time.sleep(0.05)
    assert len(pages.asked) == asked < 60


def test_a_store_that_does_not_list_from_the_given_key_is_refused() -> None:
    pages = Pages(SPREADS["UUIDs"])
    objects, token = pages(listing._Place(""))
    deaf = listing._Ranges(lambda place: pages(listing._Place("")), fixed=len("logs/"))
    with pytest.raises(IntegrityError, match="does not list keys in order"):
        list(deaf.after(objects, token))


def test_an_error_after_the_first_page_reaches_the_caller() -> None:
    pages = Pages(SPREADS["UUIDs"])

    def failing(place):
        if len(pages.asked) > 20:
            raise OSError("gone")
        return pages(place)

    objects, token = pages(listing._Place(""))
    with pytest.raises(OSError, match="gone"):
        list(listing._Ranges(failing, fixed=len("logs/")).after(objects, token))


@pytest.mark.parametrize(
    ("first", "last", "start", "expected"),
    [
        ("p/000000.json", "p/000999.json", "p/000999.json", "p/002997.json"),
        ("p/000000.json", "p/000999.json", "p/001", "p/002998"),
        ("p/00ff", "p/01ff", "p/01ff", "p/03ff"),
        # A carry goes through what all keys have had in common so far, but not beyond the prefix.
        ("p/0950", "p/0999", "p/0999", "p/1097"),
        ("p/9500", "p/9999", "p/9999", None),
        ("p/same", "p/same", "p/same", None),
        ("p/a", "p/ab", "p/ab", None),
        ("", "", "", None),
    ],
)
def test_a_cut_is_as_far_ahead_as_two_pages_reach(first, last, start, expected) -> None:
    cut = key_ahead(first, last, start, 2, fixed=len("p/"))
    assert (cut and cut[: len(expected or "")]) == expected


@given(st.text(max_size=8), st.text(max_size=8), st.text(max_size=8), st.integers(0, 3))
def test_a_cut_lies_after_its_start_and_keeps_the_prefix(first, last, start, fixed) -> None:
    first, last = sorted((first, last))
    cut = key_ahead(first, last, start, 2, fixed=fixed)
    assert cut is None or (cut > start and cut[:fixed] == start[:fixed])
