"""Listings: order, pages, levels."""

from __future__ import annotations

import pytest

from tests.contract.benches import Bench
from tests.contract.cases import keys_of


def test_a_listing_is_in_utf8_order_and_has_key_etag_size_and_time(bench: Bench) -> None:
    names = ["b", "a/b", "a.b", "a0", "é", "\uffee", "😀", "Z"]
    seeded = {name: bench.seed(name, name.encode() * 3) for name in names}
    found = [one for page in bench.store.list_objects(bench.bucket, "") for one in page]
    assert [one.key for one in found] == sorted(names, key=str.encode)
    for one in found:
        expected = seeded[one.key]
        assert (one.bucket, one.etag, one.size) == (bench.bucket, expected.etag, expected.size)
        assert one.last_modified == pytest.approx(expected.last_modified, abs=1)
        assert one.storage_class == "STANDARD"


def test_a_listing_keeps_to_its_prefix_and_starts_after_a_key(bench: Bench) -> None:
    for name in ("day=1/a", "day=1/b", "day=1/c", "day=10/a", "day=2/a"):
        bench.seed(name)
    listed = bench.store.list_objects
    assert keys_of(listed(bench.bucket, "day=1/")) == ["day=1/a", "day=1/b", "day=1/c"]
    behind = listed(bench.bucket, "day=1/", start_after="day=1/a")
    assert keys_of(behind) == ["day=1/b", "day=1/c"]
    between = listed(bench.bucket, "day=1/", start_after="day=1/aa")
    assert keys_of(between) == ["day=1/b", "day=1/c"]
    assert keys_of(listed(bench.bucket, "day=1/", start_after="day=1/c")) == []
    assert keys_of(listed(bench.bucket, "nothing/")) == []


def test_a_long_listing_comes_in_pages_without_gap_or_repetition(bench: Bench) -> None:
    names = [f"n/{number:04}" for number in range(1_003)]
    bench.seed_many(names)
    pages = list(bench.store.list_objects(bench.bucket, "n/"))
    assert keys_of(pages) == names
    assert len(pages) == 2
    behind = bench.store.list_objects(bench.bucket, "n/", start_after=names[500])
    assert keys_of(behind) == names[501:]


def test_one_level_shows_objects_directly_below_and_each_prefix_once(bench: Bench) -> None:
    for name in ("p/a", "p/b/1", "p/b/2", "p/c d/1", "p/é+%/1", "p/z", "q/a", "p.json"):
        bench.seed(name)
    pages = list(bench.store.list_level(bench.bucket, "p/"))
    assert [one.key for page in pages for one in page.objects] == ["p/a", "p/z"]
    prefixes = [prefix for page in pages for prefix in page.prefixes]
    assert prefixes == ["p/b/", "p/c d/", "p/é+%/"]
    top = list(bench.store.list_level(bench.bucket, ""))
    assert [prefix for page in top for prefix in page.prefixes] == ["p/", "q/"]
    assert [one.key for page in top for one in page.objects] == ["p.json"]


def test_a_long_level_comes_in_pages_without_gap_or_repetition(bench: Bench) -> None:
    bench.seed_many(f"l/{number:04}/x" for number in range(950))
    bench.seed_many(f"l/{number:04}.json" for number in range(0, 950, 10))
    pages = list(bench.store.list_level(bench.bucket, "l/"))
    prefixes = [prefix for page in pages for prefix in page.prefixes]
    assert prefixes == [f"l/{number:04}/" for number in range(950)]
    objects = [one.key for page in pages for one in page.objects]
    assert objects == [f"l/{number:04}.json" for number in range(0, 950, 10)]
    assert len(pages) > 1


def test_a_key_may_go_on_where_another_ends(bench: Bench) -> None:
    names = ["p", "p/a", "p/a/b", "p//a", "p/"]
    for name in names:
        bench.seed(name, b"")
    assert keys_of(bench.store.list_objects(bench.bucket, "")) == sorted(names)
    below = list(bench.store.list_level(bench.bucket, "p/"))
    assert [one.key for page in below for one in page.objects] == ["p/", "p/a"]
    assert [prefix for page in below for prefix in page.prefixes] == ["p//", "p/a/"]
