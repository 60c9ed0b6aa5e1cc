"""Reading ahead: in order, within a budget of bytes, and no thread is left."""

from __future__ import annotations

import gc
import random
import threading
import time
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.errors import TransientStoreError
from compactor.model import SourceObject
from compactor.ports import SourceBody
from compactor.s3.limiter import START
from compactor.s3.readahead import RUN_BYTES, RUN_OBJECTS, read_ahead


@pytest.fixture(autouse=True, scope="module")
def _only_threads_of_these_tests() -> None:
    # An error that a test of another module was after holds on to what raised it, in a cycle.
    gc.collect()


def sized(*sizes: int) -> list[SourceObject]:
    return [SourceObject("b", f"{n:05}", f"e{n}", size, 0.0) for n, size in enumerate(sizes)]


def body_of(source: SourceObject) -> SourceBody:
    return SourceBody(source, content=bytes(source.size))


def readers() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name.startswith("read")]


class Ledger:
    """Counts what was fetched and not yet given up by the consumer."""

    def __init__(self, sources: Iterable[SourceObject]) -> None:
        self.sizes = {source.key: source.size for source in sources}
        self.lock = threading.Lock()
        self.fetched = 0
        self.used = 0
        self.most = 0
        self.at_once = 0
        self.most_at_once = 0

    def fetch(self, source: SourceObject) -> SourceBody:
        with self.lock:
            self.fetched += source.size
            self.most = max(self.most, self.fetched - self.used)
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        time.sleep(0.001)
        with self.lock:
            self.at_once -= 1
        return body_of(source)

    def use(self, body: SourceBody) -> None:
        with self.lock:
            self.used += body.source.size


@given(st.lists(st.sampled_from([0, 1, 700, 5_000]), max_size=60), st.integers(1, 5))
def test_bodies_come_in_the_order_asked_for(sizes: list[int], threads: int) -> None:
    sources = sized(*sizes)
    chance = random.Random(len(sizes))

    def fetch(source: SourceObject) -> SourceBody:
        time.sleep(chance.random() / 5_000)
        return body_of(source)

    found = list(read_ahead(sources, fetch, threads=threads, budget_bytes=3_000))
    assert [body.source for body in found] == sources
    assert [len(body.content or b"") for body in found] == sizes
    assert not readers()


@pytest.mark.parametrize("budget", [1, 4_000, 20_000])
def test_no_more_than_the_budget_and_one_run_is_held(budget: int) -> None:
    sources = sized(*[1_000] * 300)
    ledger = Ledger(sources)
    for body in read_ahead(sources, ledger.fetch, threads=8, budget_bytes=budget):
        ledger.use(body)
    run = RUN_OBJECTS * 1_000
    # What the consumer works through counts, until it asks for the run behind it.
    assert ledger.most <= budget + run
    assert ledger.fetched == 300_000


def test_a_slow_consumer_does_not_make_the_readers_run_ahead() -> None:
    sources = sized(*[1_000] * 400)
    ledger = Ledger(sources)
    bodies = read_ahead(sources, ledger.fetch, threads=4, budget_bytes=10_000)
    next(bodies)
    time.sleep(0.2)
    assert ledger.fetched <= 10_000 + RUN_OBJECTS * 1_000
    bodies.close()  # type: ignore[attr-defined] # a generator behind the Iterator


def test_several_sources_are_read_concurrently_but_no_more_than_threads() -> None:
    sources = sized(*[10] * 200)
    ledger = Ledger(sources)
    list(read_ahead(sources, ledger.fetch, threads=4, budget_bytes=1_000_000))
    assert ledger.most_at_once == 4


def test_what_was_used_up_makes_room_for_more() -> None:
    sources = sized(*[1_000] * 400)
    ledger = Ledger(sources)
    for number, body in enumerate(
        read_ahead(sources, ledger.fetch, threads=4, budget_bytes=40_000)
    ):
        ledger.use(body)
        if number == 200:
            ledger.most_at_once = 0
    assert ledger.most_at_once > 1, "the second half was read one after the other"


def test_a_source_larger_than_the_budget_is_read_alone() -> None:
    sources = sized(10, 50_000, 10)
    ledger = Ledger(sources)
    for body in read_ahead(sources, ledger.fetch, threads=4, budget_bytes=1_000):
        ledger.use(body)
    assert ledger.used == 50_020


class Asked:
    """Permits for every run, and of how many sources each was."""

    def __init__(self) -> None:
        self.runs: list[int] = []

    def permit(self, requests: int) -> AbstractContextManager[None]:
        self.runs.append(requests)
        return nullcontext()


def runs_of(sources: list[SourceObject], run_bytes: int = RUN_BYTES) -> list[int]:
    asked = Asked()
    list(
        read_ahead(
            sources, body_of, threads=1, budget_bytes=10**9, permits=asked, run_bytes=run_bytes
        )
    )
    return asked.runs


def test_one_run_has_few_bytes_even_of_few_objects() -> None:
    runs = runs_of(sized(*[1_000] * 7 * START), run_bytes=2_500)
    assert runs == [1] * START + [2] * (3 * START)


def test_runs_are_of_one_source_first_and_longer_once_many_were_read() -> None:
    runs = runs_of(sized(*[10] * (7 * START + 3 * RUN_OBJECTS)))
    assert runs == [1] * START + [2] * START + [4] * START + [RUN_OBJECTS] * 3


def test_few_sources_are_all_read_concurrently() -> None:
    sources = sized(*[10] * RUN_OBJECTS)
    together = threading.Barrier(RUN_OBJECTS)

    def fetch(source: SourceObject) -> SourceBody:
        together.wait(60)
        return body_of(source)

    bodies = read_ahead(sources, fetch, threads=RUN_OBJECTS, budget_bytes=1_000)
    assert [one.source for one in bodies] == sources


def test_a_listing_is_consumed_no_further_than_needed() -> None:
    taken = 0

    def endless() -> Iterable[SourceObject]:
        nonlocal taken
        while True:
            taken += 1
            yield SourceObject("b", str(taken), "e", 1_000, 0.0)

    bodies = read_ahead(endless(), body_of, threads=2, budget_bytes=20_000)
    for _ in range(10):
        next(bodies)
    assert taken < 100
    bodies.close()  # type: ignore[attr-defined] # a generator behind the Iterator


@pytest.mark.parametrize("bad", [0, 13, 99])
def test_an_error_in_one_fetch_surfaces_in_its_place_and_ends_every_thread(bad: int) -> None:
    sources = sized(*[10] * 100)

    def fetch(source: SourceObject) -> SourceBody:
        if source == sources[bad]:
            raise TransientStoreError("no answer")
        return body_of(source)

    before_it: list[SourceObject] = []
    bodies = read_ahead(sources, fetch, threads=4, budget_bytes=200)
    with pytest.raises(TransientStoreError, match="no answer"):
        before_it.extend(body.source for body in bodies)
    assert before_it == sources[:bad]
    assert not readers()


def test_an_iteration_given_up_leaves_no_thread() -> None:
    sources = sized(*[1_000] * 200)
    ledger = Ledger(sources)
    bodies = read_ahead(sources, ledger.fetch, threads=8, budget_bytes=50_000)
    next(bodies)
    assert readers()
    del bodies
    assert not readers()
    fetched = ledger.fetched
    time.sleep(0.02)
    assert ledger.fetched == fetched
    assert fetched < 200_000, "what was not begun is not fetched any more"


def test_what_waits_for_a_thread_is_not_read_once_it_is_not_wanted() -> None:
    sources = sized(*[1_000] * 200)
    ledger = Ledger(sources)
    bodies = read_ahead(sources, ledger.fetch, threads=1, budget_bytes=100_000)
    next(bodies)
    del bodies
    assert ledger.fetched < 50_000, "only the run under way is read to its end"


def test_an_error_of_the_consumer_leaves_no_thread() -> None:
    sources = sized(*[1_000] * 200)

    def consume() -> None:
        for _ in read_ahead(sources, body_of, threads=8, budget_bytes=50_000):
            raise ValueError("the consumer's own")

    with pytest.raises(ValueError, match="own"):
        consume()
    assert not readers()


def test_no_sources_start_no_thread() -> None:
    assert list(read_ahead([], body_of, threads=4, budget_bytes=1)) == []
    assert not readers()
