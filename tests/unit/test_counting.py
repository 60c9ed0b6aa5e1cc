"""The count of one partition: listed once, left between two pages, and resumed."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor import layout
from compactor.discovery import counting
from compactor.discovery.counting import Count, Tally
from compactor.discovery.fleet import Fleet
from compactor.errors import TransientStoreError
from compactor.model import Partition
from compactor.settings.settings import Settings
from tests.support.examples import limited
from tests.support.memory_store import MemoryStore

DAY = Partition("source", "logs/day/", "day/")
PAGE = 10


def settings(**given: Any) -> Settings:
    uris = {"s3_source_uri": "s3://source/logs/", "s3_destination_uri": "s3://lake/data/"}
    return limited({**uris, "depth": 1, **given})


def a_store(objects: int, page_size: int = PAGE) -> tuple[MemoryStore, list[bytes]]:
    store = MemoryStore(page_size=page_size)
    store.add_bucket("source")
    store.add_bucket("lake")
    made = [store.seed("source", f"logs/day/{n:05}", b"x" * (n % 7)) for n in range(objects)]
    return store, [one.identity for one in made]


def with_a_log(store: MemoryStore, wanted: Settings) -> None:
    store.seed(*layout.commit_key(wanted, DAY, 1), b"what it says is told by the test")


def nothing_kept(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(counting, "_KEPT_OBJECTS", most)


@pytest.mark.parametrize("kept", [0, 15, 16_000])
def test_a_partition_with_a_log_is_listed_once_whatever_that_names(
    monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    nothing_kept(monkeypatch, kept)
    wanted = settings(lambda_max_objects=45)
    for named, oversized, objects in ((300, False, 0), (260, False, 40), (200, True, 50)):
        store, identities = a_store(300)
        with_a_log(store, wanted)
        known = set(identities[:named])
        count = Count(wanted, store, {DAY: known}.__getitem__, Fleet())
        _, tally = count((DAY, None))
        assert (tally.complete, tally.oversized, tally.objects) == (True, oversized, objects)
        assert store.count("list_objects", prefix=DAY.prefix) <= 300 / PAGE
        item = tally.work_item(DAY)
        assert item is not None
        assert item.bytes == sum(n % 7 for n in range(named, named + objects))


def test_it_is_asked_once_whether_there_is_a_log_and_only_of_large_partitions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nothing_kept(monkeypatch, 100)
    wanted = settings(lambda_max_objects=1_000)
    prefix = layout.commits_prefix(wanted, DAY)[1]
    for objects, asked in ((100, 0), (300, 1)):
        store, _ = a_store(objects)
        Count(wanted, store, lambda _: frozenset(), Fleet())((DAY, None))
        assert store.count("list_objects", prefix=prefix) == asked


def test_a_log_that_came_while_its_partition_was_counted_is_taken_into_account(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nothing_kept(monkeypatch, 0)
    store, identities = a_store(300)
    # When it was asked whether there is one, there was none.
    count = Count(settings(lambda_max_objects=45), store, lambda _: set(identities), Fleet())
    _, tally = count((DAY, None))
    assert (tally.oversized, tally.objects, tally.against_log) == (False, 0, True)


class EachPage:
    """Stops every count after so many looks at it."""

    def __init__(self, looks: int) -> None:
        self.looks = looks

    def __call__(self) -> bool:
        self.looks -= 1
        return self.looks < 0


def counted(wanted: Settings, store: MemoryStore, known: Container[bytes], looks: int) -> Tally:
    """A count in as many parts as it takes, each through JSON as an invocation leaves it."""
    tally = None
    for _ in range(200):
        count = Count(wanted, store, lambda _: known, Fleet(), EachPage(looks))
        _, tally = count((DAY, tally))
        if tally.complete:
            return tally
        tally = msgspec.json.decode(msgspec.json.encode(tally), type=Tally)
    raise AssertionError("it does not get on")


@given(
    objects=st.integers(0, 130),
    named=st.sets(st.integers(0, 129)),
    limit=st.integers(1, 130),
    looks=st.integers(1, 5),
    kept=st.sampled_from([0, 25, 16_000]),
)
def test_a_count_in_parts_is_the_count_in_one_go(
    objects: int, named: set[int], limit: int, looks: int, kept: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        nothing_kept(patch, kept)
        wanted = settings(lambda_max_objects=limit)
        store, identities = a_store(objects)
        if named:
            with_a_log(store, wanted)
        known = {one for number, one in enumerate(identities) if number in named}
        _, whole = Count(wanted, store, lambda _: known, Fleet())((DAY, None))
        parts = counted(wanted, store, known, looks)
    assert parts.work_item(DAY) == whole.work_item(DAY)
    assert parts.oversized == whole.oversized


def test_a_partition_whose_keys_would_be_too_long_is_summed_up_in_parts_as_well() -> None:
    store, _ = a_store(0)
    long = "y" * 900 + "/"
    partition = Partition("source", f"logs/{long}", long)
    for n in range(35):
        store.seed("source", f"logs/{long}{n:02}", b"xy")
    tally: Tally | None = None
    while tally is None or not tally.complete:
        count = Count(settings(), store, lambda _: frozenset(), Fleet(), EachPage(1))
        _, tally = count((partition, tally))
    assert (tally.alone, tally.objects, tally.size) == (True, 35, 70)
    assert tally.examples == tuple(f"logs/{long}{n:02}" for n in range(5))
    assert tally.work_item(partition) is None


def test_what_was_counted_is_kept_when_the_time_is_too_short_for_the_next_page() -> None:
    store, _ = a_store(35)
    pages = 0

    def failing(bucket: str, prefix: str, *, start_after: str = "", until: str = "") -> Any:
        nonlocal pages
        for page in MemoryStore.list_objects(store, bucket, prefix, start_after=start_after):
            pages += 1
            if pages == 3:
                raise TransientStoreError("no answer in time")
            yield page

    store.list_objects = failing  # type: ignore[method-assign] # of this one store
    count = Count(settings(), store, lambda _: frozenset(), Fleet(), lambda: pages >= 3)
    _, tally = count((DAY, None))
    assert (tally.complete, tally.objects, tally.after) == (False, 20, "logs/day/00019")
    pages = 0
    with pytest.raises(TransientStoreError, match="no answer in time"):
        Count(settings(), store, lambda _: frozenset(), Fleet())((DAY, None))
