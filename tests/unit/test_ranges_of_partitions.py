"""Partitions that are counted in ranges of their keys by several invocations: as by one."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Container, Iterable, Iterator
from itertools import pairwise
from random import Random
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from compactor import layout
from compactor.discovery import ranges, search, survey, watch
from compactor.discovery.discover import discover, write_work
from compactor.discovery.divided import Ask, Part, count_stretch, discover_on
from compactor.discovery.fleet import Fleet
from compactor.discovery.parallel import Parallel
from compactor.discovery.pieces import Pieces
from compactor.discovery.search import Search
from compactor.discovery.work import Discovery
from compactor.model import Partition, Skipped
from compactor.settings.settings import Settings
from tests.support.examples import limited
from tests.support.memory_store import Call, Crashed, MemoryStore
from tests.unit.test_divided_discovery import NOW, RUN, Forever, Pages, dies_at, lists

# Of those that the engine draws: shared beginnings, levels, empty levels, and characters whose
# order in UTF-16, where they are two, is another one than in UTF-8.
ODD = st.text(st.sampled_from("ab/0 ~\u00e9\uffee\U00010000\U0010ffff"), min_size=1, max_size=6)
USUAL = hypothesis_settings(
    max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
GIANT = "giant/"


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page takes a second here, and has ten keys."""
    monkeypatch.setattr(watch, "LOOK_SECONDS", 4.0)
    monkeypatch.setattr(watch, "STRETCH_SECONDS", 10.0)
    monkeypatch.setattr(ranges, "SHARE_SECONDS", 15.0)
    monkeypatch.setattr(ranges, "_PAGES_PER_SECOND", 1.0)
    monkeypatch.setattr(survey, "PAGES_PER_RANGE", 2)
    monkeypatch.setattr(survey, "_LEAST_PROBES", 40)


def settings(**given: Any) -> Settings:
    uris = {"s3_source_uri": "s3://source/logs/", "s3_destination_uri": "s3://lake/data/"}
    return limited({**uris, "depth": 1, "lambda_max_objects": 100_000, **given})


def a_store(names: Iterable[str], page_size: int = 10) -> MemoryStore:
    store = MemoryStore(page_size=page_size)
    store.add_bucket("source")
    store.add_bucket("lake")
    for number, name in enumerate(names):
        store.seed("source", f"logs/{name}", b"x" * (number % 5))
    return store


class Taking(Pages):
    """An invocation in which threads come to their turns, as where each page is waited for."""

    def __call__(self, call: Call) -> None:
        super().__call__(call)
        if call.bucket == "source":
            time.sleep(0.0002)


class Run:
    """The invocations of a discovery.

    Attributes:
        parts: what those answered that were not the last.
    """

    def __init__(
        self,
        store: MemoryStore,
        pages: float = 60,
        *,
        named: Container[bytes] = frozenset(),
        **given: Any,
    ) -> None:
        self.store = store
        self.settings = given.pop("settings", None) or settings()
        self.parts: list[Part] = []
        self._named = named
        self._pages = pages
        self._workers = given.pop("workers", 4)
        self._hooks = given.pop("hooks", ())

    def __iter__(self) -> Iterator[None]:
        """One invocation after the other, until the lists are written."""
        while True:
            answer = discover_on(self._ask(shares=True))
            if not isinstance(answer, Part):
                if isinstance(answer, Discovery):
                    write_work(answer, self.settings, RUN, self.store)
                return
            self.parts.append(answer)
            assert len(self.parts) < 100, "it does not get on"
            yield
            for number in answer.stretches:
                while not count_stretch(self._ask(), number):
                    yield
                yield

    def to_its_end(self) -> Run:
        for _ in self:
            pass
        return self

    def _ask(self, **more: Any) -> Ask:
        self.store.hooks.after[:] = self._hooks
        deadline = Taking(self.store, self._pages)
        known = self._named
        ask = (self.settings, RUN, self.store, NOW, lambda _: known, deadline)
        return Ask(*ask, workers=self._workers, **more)

    @property
    def divisions(self) -> int:
        pieces = Pieces(self.settings, RUN, self.store)
        division, found = pieces.division(), 0
        while division is not None:
            division, found = pieces.ranges(division), found + 1
        return found


def naively(
    store: MemoryStore, wanted: Settings, named: Container[bytes] = frozenset()
) -> tuple[Any, Any]:
    found = discover(wanted, store, NOW, committed=lambda _: named)
    return [i.to_dict() for i in found.items], [i.to_dict() for i in found.oversized]


@given(
    names=st.sets(ODD, max_size=300),
    small=st.integers(0, 3),
    pages=st.integers(40, 90),
    workers=st.integers(1, 8),
)
@USUAL
def test_whatever_the_keys_ranges_count_what_one_listing_counts(
    names: set[str], small: int, pages: int, workers: int
) -> None:
    around = [f"{part}{number}/{n}" for part in "az" for number in range(small) for n in range(3)]
    store = a_store([*(GIANT + one for one in sorted(names)), *around])
    Run(store, pages, workers=workers).to_its_end()
    assert lists(store) == naively(store, settings())


@given(st.sets(ODD, min_size=1, max_size=200), st.lists(ODD, max_size=12))
def test_cuts_anywhere_lose_no_key_and_double_none(names: set[str], cuts: list[str]) -> None:
    store = a_store(names, page_size=3)
    # Also some that are keys.
    edges = sorted({"logs/" + one for one in (*cuts, *sorted(names)[::7])})
    found = []
    for since, until in zip(["", *edges], [*edges, ""], strict=True):
        for page in store.list_objects("source", "logs/", start_after=since, until=until):
            found += [one.key for one in page]
    assert found == sorted("logs/" + one for one in names)


def numbered(many: int) -> list[str]:
    return [f"{GIANT}2026-01-{n // 100:02}-{n % 100:02}.json" for n in range(many)]


def test_a_level_of_its_own_is_counted_by_several_invocations_at_once() -> None:
    store = a_store(one.removeprefix(GIANT) for one in numbered(3_000))
    flat = settings(depth=0)
    run = Run(store, settings=flat).to_its_end()
    assert len(run.parts[0].stretches) > 5
    assert lists(store) == naively(store, flat)
    assert [item["objects"] for item in lists(store)[0]] == [3_000]


@pytest.mark.parametrize("pages", [40, 60, 200])
def test_one_huge_partition_among_small_ones_is_shared_when_they_are_counted(pages: int) -> None:
    small = [f"{part}-{number:03}/1" for part in ("a", "z") for number in range(30)]
    store = a_store([*small, *numbered(3_000)])
    run = Run(store, pages).to_its_end()
    assert run.divisions >= 2
    assert max(len(one.stretches) for one in run.parts) > 5
    assert lists(store) == naively(store, settings())


def test_ranges_that_are_much_denser_than_others_are_divided_once_more() -> None:
    dense = [f"{GIANT}12/{n:06}" for n in range(4_000)]
    store = a_store([*dense, *(f"{GIANT}{hour:02}/{n}" for hour in range(24) for n in range(3))])
    run = Run(store).to_its_end()
    assert run.divisions >= 3
    assert lists(store) == naively(store, settings())


def with_a_log(store: MemoryStore, wanted: Settings, path: str) -> None:
    partition = Partition("source", f"logs/{path}", path)
    store.seed(*layout.commit_key(wanted, partition, 1), b"what it says is told by the test")


@pytest.mark.parametrize("most", [150, 100_000])
@pytest.mark.parametrize("fresh", [100, 1_000])
def test_ranges_of_a_partition_with_a_log_count_what_no_commit_names(fresh: int, most: int) -> None:
    store = a_store(numbered(3_000))
    wanted = settings(lambda_max_objects=most)
    with_a_log(store, wanted, GIANT)
    every = [one.identity for page in store.list_objects("source", "logs/") for one in page]
    named = set(Random(3).sample(every, 3_000 - fresh))
    Run(store, named=named, settings=wanted).to_its_end()
    items, oversized = lists(store)
    if fresh > most:
        assert (items, len(oversized)) == ([], 1)
        assert oversized[0]["objects"] > most
    else:
        assert oversized == []
        assert [one["objects"] for one in items] == [fresh]


def test_a_partition_is_oversized_also_where_none_of_its_ranges_is() -> None:
    store = a_store(numbered(3_000))
    wanted = settings(lambda_max_objects=2_000)
    Run(store, settings=wanted).to_its_end()
    items, oversized = lists(store)
    assert items == []
    assert [one["path"] for one in oversized] == [GIANT]
    assert 2_000 < oversized[0]["objects"] <= 3_000
    # An answer that was lost is asked for once more.
    again = Run(store, settings=wanted).to_its_end()
    assert again.parts == []
    assert lists(store) == (items, oversized)


SPREADS = {
    "numbers": numbered(9_000),
    "UUIDs": [f"{GIANT}{uuid.UUID(int=Random(n).getrandbits(128))}" for n in range(9_000)],
    "times": [
        f"{GIANT}{day:02}/{n // 60:02}:{n % 60:02}:{second:02}Z"
        for day in range(1, 4)
        for n in range(24 * 60)
        for second in (1, 30)
    ],
}


@pytest.mark.parametrize("names", SPREADS.values(), ids=SPREADS)
def test_probes_and_pages_in_vain_are_a_tenth_of_all_at_most(
    names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(survey, "PAGES_PER_RANGE", 30)
    # The proportions of pages of a thousand keys, listed for half a minute before they are left.
    monkeypatch.setattr(watch, "LOOK_SECONDS", 200.0)
    monkeypatch.setattr(watch, "STRETCH_SECONDS", 400.0)
    monkeypatch.setattr(ranges, "SHARE_SECONDS", 300.0)
    store = a_store(names)
    expected = naively(store, settings())
    before = store.count("list_objects", prefix=f"logs/{GIANT}")
    run = Run(store, 2_000).to_its_end()
    assert lists(store) == expected
    assert run.divisions >= 2
    # Beside those that each invocation asks to look at the places.
    asked = store.count("list_objects", prefix=f"logs/{GIANT}") - before
    assert asked <= 1.1 * len(names) / 10


@pytest.mark.parametrize("names", SPREADS.values(), ids=SPREADS)
def test_cuts_leave_no_range_with_more_than_four_times_its_share(names: list[str]) -> None:
    store = a_store(names, page_size=200)
    partition = Partition("source", f"logs/{GIANT}", GIANT)
    keys = sorted(f"logs/{one}" for one in names)
    surveyed = survey.survey(store, partition, keys[500], "", 1_000)
    assert store.count("list_objects", bucket="source") <= 40
    left = len(keys) - 501
    assert left / 200 / 3 <= surveyed.pages <= 3 * left / 200
    cuts = surveyed.cuts(32)
    assert len(cuts) == 31
    edges = [keys[500], *cuts, "\U0010ffff"]
    pairs = pairwise(edges)
    sizes = [sum(since < key <= until for key in keys) for since, until in pairs]
    assert sum(sizes) == left
    assert max(sizes) <= 4 * left / 32


def test_what_comes_and_goes_between_the_invocations_is_counted_as_it_lies_then() -> None:
    store = a_store(numbered(3_000))
    random, gone, come = Random(5), 0, 0
    for step, _ in enumerate(Run(store)):
        if step > 40:
            break
        key = f"logs/{numbered(3_000)[random.randrange(3_000)]}"
        if key in store.contents("source"):
            store.remove("source", key)
            gone += 1
        store.seed("source", f"{key}-{step}", b"x")
        come += 1
    Run(store).to_its_end()
    (item,) = lists(store)[0]
    assert 3_000 - gone <= item["objects"] <= 3_000 + come


@pytest.mark.parametrize("when", ["before", "after"])
def test_wherever_an_invocation_dies_ranges_are_gone_on_with(when: str) -> None:
    names = ["a/1", *numbered(800)]
    expected = naively(a_store(names), settings())
    for at in range(1, 200, 3):
        store = a_store(names)
        died = dies_at(store, at, when)
        hooks = list(store.hooks.after)
        while True:
            try:
                run = Run(store, hooks=hooks, workers=1).to_its_end()
                break
            except Crashed:
                continue
        assert lists(store) == expected
        if not died:
            assert at > 5
            assert run.divisions >= 2
            return
    raise AssertionError("it never ends without dying")


def test_what_fits_the_time_of_one_invocation_is_not_left_for_its_record_of_rest() -> None:
    store = a_store(numbered(3_000))

    def rested(call: Call) -> None:
        assert not call.key.endswith("ranges.json")

    store.hooks.before.append(rested)
    answer = discover_on(
        Ask(settings(), RUN, store, NOW, lambda _: frozenset(), Forever(), Fleet(), shares=True)
    )
    assert isinstance(answer, Discovery)
    assert answer.items[0].objects == 3_000


@given(names=st.sets(ODD, max_size=250), pages=st.integers(1, 4), depth=st.integers(1, 2))
@USUAL
def test_whatever_a_level_holds_it_is_searched_in_ranges_as_at_once(
    names: set[str], pages: int, depth: int
) -> None:
    store = a_store(names, page_size=5)
    wanted = settings(depth=depth)

    def searched() -> tuple[list[Partition], Skipped]:
        with Parallel(3) as parallel:
            found = Search(wanted, store, parallel)
            return list(found.partitions(None)), found.unpartitioned

    at_once = searched()
    with mock.patch.object(search, "_PAGES_ALONE", pages):
        assert searched() == at_once
        store.calls.clear()


def test_a_level_of_many_loose_objects_is_listed_by_many_threads_at_once() -> None:
    store = a_store([*(one.removeprefix(GIANT) for one in numbered(3_000)), "a/1", "z/1"])
    running = [0, 0]
    changed = threading.Condition()

    def waited(call: Call) -> None:
        if call.name == "list_level":
            with changed:
                running[0] += 1
                running[1] = max(running)
                changed.notify_all()
                # Until many were there at once, each gives the others time to come.
                changed.wait_for(lambda: running[1] >= 6, 0.05)
                running[0] -= 1

    store.hooks.before.append(waited)
    with mock.patch.object(search, "_PAGES_ALONE", 20), Parallel(8) as parallel:
        found = Search(settings(), store, parallel)
        assert [one.path for one in found.partitions(None)] == ["a/", "z/"]
    assert found.unpartitioned.objects == 3_000
    assert 6 <= running[1] <= 8
    # 301 pages, and what is asked for in vain.
    assert store.count("list_level", "list_objects", bucket="source") < 301 + 40 + 2 * 20
