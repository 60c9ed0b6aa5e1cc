"""A discovery in several invocations finds what one would, whatever becomes of each of them."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from compactor.discovery import joined
from compactor.discovery.discover import discover, write_work
from compactor.discovery.discovery_pieces import Partitions, Piece, Pieces
from compactor.discovery.location_checks import NamedLevels
from compactor.discovery.resume import Ask, Part, discover_on
from compactor.discovery.work_items import Discovery, Joined
from compactor.errors import IntegrityError, InvalidInput
from compactor.model import Partition, Skipped
from compactor.ports import Deadline
from compactor.runs.partition_receipts import Counts
from compactor.runs.run_partition import PartitionRun, record_partition
from compactor.settings.settings import Settings
from tests.support.examples import limited
from tests.support.memory_store import Call, Crashed, ManualClock, MemoryStore

NOW = 1_770_000_000.0
DAY = 86_400.0
RUN = "run-1"
HOME = f"_compactor/data/runs/{RUN}/"


class Pages:
    """An invocation with time for so many pages of partitions; each takes a second."""

    def __init__(self, store: MemoryStore, pages: float) -> None:
        self.pages = pages
        store.hooks.after.append(self)

    def __call__(self, call: Call) -> None:
        if (call.name, call.bucket) == ("list_objects", "source"):
            self.pages -= 1

    def remaining_seconds(self) -> float:
        return self.pages


class Forever:
    def remaining_seconds(self) -> float:
        return math.inf


def settings(**given: Any) -> Settings:
    uris = {"s3_source_uri": "s3://source/logs/", "s3_destination_uri": "s3://lake/data/"}
    return limited({**uris, "depth": 1, "lambda_max_objects": 40, **given})


def a_store(sizes: list[int], page_size: int = 10) -> MemoryStore:
    store = MemoryStore(page_size=page_size)
    store.add_bucket("source")
    store.add_bucket("lake")
    store.seed("source", "logs/above", b"123")
    for number, objects in enumerate(sizes):
        for n in range(objects):
            store.seed("source", f"logs/{number:03}/{n:04}", b"x" * (n % 5))
    return store


def ask(store: MemoryStore, deadline: Deadline, **more: Any) -> Ask:
    wanted = more.pop("settings", None) or settings()
    return Ask(wanted, RUN, store, NOW, lambda _: frozenset(), deadline, **{"workers": 1, **more})


def lists(store: MemoryStore) -> tuple[Any, Any]:
    return read(store, "items.json"), read(store, "oversized.json")


def read(store: MemoryStore, name: str) -> Any:
    return json.loads(store.get("lake", HOME + name))


def in_one(store: MemoryStore, wanted: Settings | None = None) -> tuple[Any, Any]:
    found = discover(wanted or settings(), store, NOW, committed=lambda _: frozenset())
    return [i.to_dict() for i in found.items], [i.to_dict() for i in found.oversized]


def in_parts(store: MemoryStore, pages: float, **more: Any) -> list[Discovery | Part | Joined]:
    """The answers of as many invocations as it takes."""
    answers: list[Discovery | Part | Joined] = []
    while not answers or isinstance(answers[-1], Part):
        assert len(answers) < 300, "it does not get on"
        deadline = Pages(store, pages)
        answers.append(discover_on(ask(store, deadline, **more)))
        assert deadline.remaining_seconds() > -2, "time is kept, but for what is under way"
    return answers


def test_with_time_enough_nothing_is_stored() -> None:
    store = a_store([3, 50, 1])
    answer = discover_on(ask(store, Forever()))
    assert answer == discover(settings(), store, NOW, committed=lambda _: frozenset())
    assert store.contents("lake") == {}


@given(
    sizes=st.lists(st.integers(0, 70), min_size=1, max_size=12),
    pages=st.integers(2, 12),
    workers=st.integers(1, 3),
)
@hypothesis_settings(max_examples=60)
def test_the_lists_of_many_invocations_are_those_of_one(
    sizes: list[int], pages: int, workers: int
) -> None:
    store = a_store(sizes)
    answers = in_parts(store, pages, workers=workers)
    expected = in_one(store)
    if isinstance(answers[-1], Discovery):
        assert len(answers) == 1
        write_work(answers[-1], settings(), RUN, store)
    else:
        assert isinstance(answers[-1], Joined)
        counts = answers[-1].items, answers[-1].oversized
        assert counts == tuple(len(items) for items in expected)
        assert answers[-1].unpartitioned.objects == 1
    assert lists(store) == expected


def at_rest(store: MemoryStore, partitions: int) -> None:
    """All of them are compacted, and something new comes to every fourth."""
    for number in range(partitions):
        path = f"{number:03}/"
        partition = Partition("source", f"logs/{path}", path)
        run = PartitionRun(partition, settings(), store, ManualClock(NOW), Forever(), "run-0")
        assert record_partition(run, Counts()).status == "done"
    for number in range(0, partitions, 4):
        store.seed("source", f"logs/{number:03}/new", b"x", last_modified=NOW - DAY)


@pytest.mark.parametrize("pages", [3, 5, 9, 40, 900])
def test_partitions_at_rest_are_in_no_list_of_many_invocations_either(pages: int) -> None:
    store = MemoryStore(ManualClock(NOW), page_size=10)
    store.add_bucket("lake")
    for number in range(12):
        for n in range(25):
            key = f"logs/{number:03}/{n:04}.json"
            store.seed("source", key, b'{"id": %d}\n' % n, last_modified=NOW - DAY)
    at_rest(store, 12)
    one = discover(settings(), store, NOW, committed=lambda _: frozenset())
    assert (one.resting.partitions, one.resting.objects) == (9, 225)
    assert [item.path for item in one.items] == ["000/", "004/", "008/"]
    answers = in_parts(store, pages)
    found = answers[-1]
    if isinstance(found, Discovery):
        assert found == one
        return
    assert isinstance(found, Joined)
    paths = [item["path"] for item in lists(store)[0]]
    assert set(paths) >= {"000/", "004/", "008/"}
    # What an invocation leaves in the middle of a partition is not known to the next.
    assert found.items == len(paths) <= 3 + len(answers)
    assert found.resting.partitions == 12 - len(paths)
    assert found.resting.objects == 25 * found.resting.partitions
    committed = found.resting.skipped.get("already_committed", Skipped(0, 0))
    assert committed.objects == found.resting.objects


def test_it_gets_on_with_every_invocation_and_reports_how_far() -> None:
    store = a_store([30] * 20)
    answers = in_parts(store, 8)
    parts = [one for one in answers if isinstance(one, Part)]
    assert len(parts) > 5
    assert {part.partitions for part in parts} == {20}
    counted = [part.counted for part in parts]
    assert counted == sorted(counted)
    assert len(set(counted)) == len(counted)
    # Every page once, beside those that look whether the places are what they are taken for.
    assert store.count("list_objects", bucket="source") <= 20 * 3 + len(answers)


def test_a_partition_that_takes_several_invocations_is_resumed_in_its_middle() -> None:
    store = a_store([300])
    assert len(in_parts(store, 6, settings=settings(lambda_max_objects=1_000))) > 4
    assert lists(store) == in_one(store, settings(lambda_max_objects=1_000))


def test_an_invocation_that_is_repeated_counts_nothing_again() -> None:
    store = a_store([30] * 20)
    in_parts(store, 8)
    pages = store.count("list_objects", bucket="source")
    assert isinstance(discover_on(ask(store, Pages(store, 8))), Joined)
    assert store.count("list_objects", bucket="source") == pages


def test_of_two_invocations_that_do_the_same_the_first_to_store_it_counts() -> None:
    store = a_store([30] * 20)
    first = discover_on(ask(store, Pages(store, 8)))
    assert isinstance(first, Part)
    slow = Pieces(settings(), RUN, store)
    partitions = slow.partitions()
    assert partitions is not None
    assert slow.last(partitions) == (0, partitions.first)
    # This one has found other partitions, and comes too late.
    late = Piece(0, 0, [], [], 0, NamedLevels(), Skipped(0, 0), {})
    assert slow.begin(Partitions(["logs/other/"], late)) == partitions
    # Likewise one that has seen the same, and less.
    assert isinstance(discover_on(ask(store, Pages(store, 8))), Part)
    slow.add(1, Piece(first.counted, first.counted, [], [], 0, NamedLevels(), Skipped(0, 0), {}))
    in_parts(store, 8)
    assert lists(store) == in_one(store)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("pages", [4, 9])
def test_wherever_an_invocation_dies_the_next_goes_on_from_what_is_stored(
    pages: int, when: str
) -> None:
    sizes = [30, 0, 55, 10, 10, 25, 1]
    expected = in_one(a_store(sizes))
    for at in range(1, 100):
        store = a_store(sizes)
        died = dies_at(store, at, when)
        while True:
            try:
                in_parts(store, pages)
                break
            except Crashed:
                continue
        assert lists(store) == expected
        if not died:
            assert at > 5
            return
    raise AssertionError("it never ends without dying")


def dies_at(store: MemoryStore, at: int, when: str) -> list[int]:
    """Let one write of the state fail, the nth; returns where it is told that it did."""
    seen, died = 0, []

    def die(call: Call) -> None:
        nonlocal seen
        if call.bucket == "lake" and call.name in {"create", "put"}:
            seen += 1
            if seen == at:
                died.append(at)
                raise Crashed(str(at))

    (store.hooks.before if when == "before" else store.hooks.after).append(die)
    return died


def test_lists_that_are_long_are_stored_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joined, "_PART_BYTES", 6 << 20)
    monkeypatch.setattr(joined, "to_line", lambda item: b'"' + b"y" * (1 << 20) + b'"')
    store = a_store([10] * 20)
    answers = in_parts(store, 8)
    assert isinstance(answers[-1], Joined)
    items, oversized = lists(store)
    assert (len(items), oversized) == (20, [])
    assert {len(one) for one in items} == {1 << 20}
    # Once more, as after an answer that was lost.
    assert discover_on(ask(store, Forever())) == answers[-1]
    assert not list(store.list_uploads("lake", ""))


def test_a_piece_that_is_gone_halts_the_run() -> None:
    store = a_store([30] * 20)
    for _ in range(4):
        assert isinstance(discover_on(ask(store, Pages(store, 8))), Part)
    gone = [key for key in store.contents("lake") if key.endswith("pieces/000002.json")]
    store.remove("lake", gone[0])
    with pytest.raises(IntegrityError, match="discovery"):
        in_parts(store, 100)


def test_sources_in_levels_that_name_a_column_are_refused_also_when_counted_in_parts() -> None:
    store = a_store([])
    for number in range(20):
        for n in range(30):
            store.seed("source", f"logs/{number:03}/eu=1/{n}", b"x")
    store.remove("source", "logs/above")
    with pytest.raises(InvalidInput, match="depth"):
        in_parts(store, 8)
