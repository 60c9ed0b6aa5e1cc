"""Where a listing of one partition ends, and what it holds."""

from __future__ import annotations

from typing import Any

import pytest

from compactor.errors import IntegrityError, TransientStoreError
from compactor.limits import WorkerLimits
from compactor.log.digests import Digests
from compactor.model import Listing, SourceObject
from compactor.partition.listing import Window
from compactor.planning.partition_listing import Onward, Pages, listing_of, take_listing
from tests.support.examples import PARTITION
from tests.support.memory_store import ManualClock, MemoryStore

NAMES = [f"{number:02}" for number in range(20)]


EIGHT = WorkerLimits(window_objects=8)


def store_of(page_size: int) -> MemoryStore:
    store = MemoryStore(ManualClock(1_000.0), page_size=page_size)
    for age, name in enumerate(NAMES):
        store.seed("source", PARTITION.prefix + name, b"x", last_modified=900.0 - age)
    return store


def taken(
    store: MemoryStore, *window: str, committed: Digests | None = None, **limits: Any
) -> Listing:
    return take_listing(
        listing_of(store, PARTITION), PARTITION, committed or Digests(), *window, **limits
    )


def names(found: Listing) -> list[str]:
    return [one.key.removeprefix(PARTITION.prefix) for one in found.objects]


@pytest.mark.parametrize("page_size", [1, 3, 7, 8, 20, 1_000])
def test_a_listing_ends_at_the_same_object_however_the_store_cuts_its_pages(
    page_size: int,
) -> None:
    store = store_of(page_size)
    found: list[list[str]] = []
    last_key = ""
    complete = False
    while not complete:
        window = take_listing(
            listing_of(store, PARTITION), PARTITION, Digests(), last_key, limits=EIGHT
        )
        found.append(names(window))
        last_key, complete = window.last_key, window.complete
    assert found == [NAMES[:8], NAMES[8:16], NAMES[16:]]


@pytest.mark.parametrize("page_size", [1, 3, 7, 8, 20, 1_000])
@pytest.mark.parametrize("most", [1, 2, 5, 8, 19, 20, 21])
def test_consecutive_windows_are_listed_once(page_size: int, most: int) -> None:
    store, anew = store_of(page_size), store_of(page_size)
    lists, limits = Onward(listing_of(store, PARTITION)), WorkerLimits(window_objects=most)
    last_key, complete = "", False
    while not complete:
        window = take_listing(lists, PARTITION, Digests(), last_key, limits=limits)
        assert window == take_listing(
            listing_of(anew, PARTITION), PARTITION, Digests(), last_key, limits=limits
        )
        last_key, complete = window.last_key, window.complete
    assert store.snapshot()["LIST"] == -(-len(NAMES) // page_size)


def test_what_was_listed_ahead_is_for_the_place_where_the_window_before_ended() -> None:
    store = store_of(6)
    lists = Onward(listing_of(store, PARTITION))
    first = take_listing(lists, PARTITION, Digests(), limits=EIGHT)
    store.seed("source", PARTITION.prefix + "035", b"x", last_modified=1.0)
    assert "035" in names(take_listing(lists, PARTITION, Digests(), PARTITION.prefix + "02"))
    assert "035" in names(take_listing(lists, PARTITION, Digests(), limits=EIGHT))
    lists.drop()
    assert names(take_listing(lists, PARTITION, Digests(), first.last_key)) == NAMES[8:]


def test_a_listing_that_broke_off_is_no_listing_that_ended() -> None:
    store = store_of(6)
    pages = iter(store.list_objects("source", PARTITION.prefix))

    starts: list[str] = []

    def breaking(after: str) -> Pages:
        starts.append(after)
        if len(starts) > 1:
            yield from listing_of(store, PARTITION)(after)
            return
        yield next(pages)
        yield next(pages)
        raise TransientStoreError("no answer")

    lists = Onward(breaking)
    first = take_listing(lists, PARTITION, Digests(), limits=EIGHT)
    with pytest.raises(TransientStoreError):
        take_listing(lists, PARTITION, Digests(), first.last_key, limits=EIGHT)
    again = take_listing(lists, PARTITION, Digests(), first.last_key, limits=EIGHT)
    assert (names(again), again.complete) == (NAMES[8:16], False)


@pytest.mark.parametrize(
    ("pages", "after"),
    [
        ((["a", "a"],), ""),
        ((["b", "a"],), ""),
        ((["a"], ["a"]), ""),
        ((["a", "b"], [], ["a"]), ""),
        ((["a"],), "a"),
    ],
)
def test_no_listing_of_whatever_kind_names_a_key_twice(
    pages: tuple[list[str], ...], after: str
) -> None:
    start_after = PARTITION.prefix + after if after else ""
    listed = [
        [SourceObject("b", PARTITION.prefix + name, "e", 1, 0.0) for name in page] for page in pages
    ]
    with pytest.raises(IntegrityError, match="does not list keys in order, each once"):
        take_listing(lambda after: iter(listed), PARTITION, Digests(), start_after)


def test_what_commits_name_takes_no_room_in_a_listing() -> None:
    store = store_of(5)
    everything = take_listing(
        listing_of(store, PARTITION), PARTITION, Digests(), "", PARTITION.prefix + "99"
    ).objects
    committed = Digests(one.identity for one in everything[4:16])
    found = taken(store, committed=committed, limits=EIGHT)
    assert names(found) == NAMES[:4] + NAMES[16:]
    assert (found.complete, found.committed_objects, found.committed_bytes) == (True, 12, 12)
    assert found.last_key == PARTITION.prefix + NAMES[-1]


def test_a_listing_up_to_a_key_holds_all_before_it_and_is_not_the_end() -> None:
    store = store_of(4)
    store.remove("source", PARTITION.prefix + "09")
    first, last = PARTITION.prefix + "03", PARTITION.prefix + "09"
    few = WorkerLimits(window_objects=3)
    found = take_listing(
        listing_of(store, PARTITION), PARTITION, Digests(), first, last, limits=few
    )
    assert names(found) == ["04", "05", "06", "07", "08"]
    assert (found.complete, found.last_key) == (False, PARTITION.prefix + "09")
    assert found.newest == 896.0, "that of its own objects"


def test_only_a_window_that_was_cut_has_another_after_it() -> None:
    assert Window("a", "m", listed=True).following() == Window("m")
    assert Window("a", None, listed=True).following() is None
