"""Deletes: exactly the named sources, each only while it is what was listed."""

from __future__ import annotations

import pytest

from compactor.model import SourceObject
from compactor.ports import Refused
from tests.contract.benches import Bench


def delete(bench: Bench, *sources: SourceObject) -> tuple[Refused, ...]:
    return bench.store.delete_sources(sources).refused


def changed(refused: tuple[Refused, ...]) -> list[str]:
    """Keys that stay because another object stands there now; all others are gone."""
    assert all(one.final and "PreconditionFailed" in one.reason for one in refused)
    return [one.key for one in refused]


def test_exactly_the_named_sources_are_deleted(bench: Bench) -> None:
    sources = [bench.seed(f"day=1/{n}") for n in range(5)]
    bench.remove(sources[2].key)
    assert delete(bench, *sources[1:4]) == (), "one already gone counts as deleted"
    assert set(bench.contents()) == {"day=1/0", "day=1/4"}
    assert delete(bench) == ()


def test_more_sources_than_one_request_takes_are_deleted(bench: Bench) -> None:
    kept = bench.seed("kept")
    bench.seed_many(f"s/{number:04}" for number in range(1_001))
    pages = bench.store.list_objects(bench.bucket, "s/")
    sources = [one for page in pages for one in page]
    assert len(sources) == 1_001
    assert delete(bench, *sources) == ()
    assert set(bench.contents()) == {kept.key}


def test_a_source_that_changed_is_not_deleted(bench: Bench) -> None:
    first, second = bench.seed("a"), bench.seed("b")
    bench.seed("a", b"new content")
    assert changed(delete(bench, first, second)) == ["a"]
    assert bench.contents() == {"a": b"new content"}


def test_a_changed_source_whose_key_no_xml_may_hold_is_not_deleted(bench: Bench) -> None:
    first, second = bench.seed("a\x01"), bench.seed("b\x02")
    bench.seed("a\x01", b"new content")
    assert changed(delete(bench, first, second)) == ["a\x01"]
    assert bench.contents() == {"a\x01": b"new content"}


def test_a_source_written_again_with_the_same_bytes_is_deleted(bench: Bench) -> None:
    source = bench.seed("a")
    bench.seed("a")
    assert delete(bench, source) == ()
    assert bench.contents() == {}


def test_a_source_gone_or_changed_does_not_keep_the_others_from_being_deleted(
    bench: Bench,
) -> None:
    sources = [bench.seed(f"s/{number}") for number in range(6)]
    bench.remove("s/1")
    bench.seed("s/3", b"new content")
    assert changed(delete(bench, *sources)) == ["s/3"]
    assert bench.contents() == {"s/3": b"new content"}


# Keys that no XML may hold are deleted one by one, with If-Match.


@pytest.mark.parametrize("key", ["a\x01", "b\x1f/c"], ids=["low", "high"])
def test_one_source_is_deleted_by_its_etag_and_one_that_is_gone_counts_as_deleted(
    bench: Bench, key: str
) -> None:
    source = bench.seed(key)
    assert delete(bench, source) == ()
    assert bench.store.head(bench.bucket, key) is None
    assert delete(bench, source) == ()
