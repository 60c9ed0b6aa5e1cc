"""Several partitions in one call, each as if it were alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import pytest

from compactor.errors import IntegrityError, InvalidInput, SourceChanged, TransientStoreError
from compactor.partition.batches import Batch
from tests.support.memory_store import ManualClock

Compact = Callable[[Mapping[str, Any]], dict[str, Any]]


COMMON = {"run_id": "run-1", "settings": {}}


class Time:
    """A deadline after so many seconds of this clock."""

    def __init__(self, clock: ManualClock, seconds: float) -> None:
        self._clock = clock
        self._end = clock.now() + seconds

    def remaining_seconds(self) -> float:
        return self._end - self._clock.now()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_000.0)


def batch_of(*paths: str) -> Batch:
    return Batch.from_state({"BatchInput": COMMON, "Items": [{"path": path} for path in paths]})


def compacting(
    called: list[str],
    clock: ManualClock,
    seconds: float = 0.0,
    trouble: Mapping[str, str | Exception] = MappingProxyType({}),
) -> Compact:
    """What happens to a partition: an error, a status, or all is well."""

    def compact(one: Mapping[str, Any]) -> dict[str, Any]:
        path = one["partition"]["path"]
        called.append(path)
        clock.advance(seconds)
        what = trouble.get(path, "done")
        if isinstance(what, Exception):
            raise what
        return {**one, "status": what, "counts": {"calls": 1}}

    return compact


def paths_of(batch: Batch) -> list[str]:
    return [one["partition"]["path"] for one in batch.left]


def test_all_of_a_batch_are_compacted_in_order(clock: ManualClock) -> None:
    called: list[str] = []
    batch = batch_of("a", "b", "c").worked_off(compacting(called, clock), Time(clock, 100))
    assert called == ["a", "b", "c"]
    counts = {"calls": 1}
    assert batch.to_state() == {
        "BatchInput": COMMON,
        "Items": [],
        "counts": {},
        "done": [{"path": path, "counts": counts} for path in "abc"],
        "status": "done",
    }


def test_a_partition_that_is_not_done_is_the_first_of_the_next_call_with_its_counts(
    clock: ManualClock,
) -> None:
    called: list[str] = []
    compact = compacting(called, clock, trouble={"b": "more"})
    batch = batch_of("a", "b", "c").worked_off(compact, Time(clock, 100))
    assert called == ["a", "b"]
    state = batch.to_state()
    assert (state["status"], state["Items"]) == ("more", [{"path": "b"}, {"path": "c"}])
    assert state["counts"] == {"b": {"calls": 1}}
    assert [one["path"] for one in state["done"]] == ["a"]
    again = Batch.from_state(state)
    assert [(one["run_id"], one["counts"]) for one in again.left] == [
        ("run-1", {"calls": 1}),
        ("run-1", None),
    ]
    rest = again.worked_off(compacting(called, clock), Time(clock, 100))
    assert called == ["a", "b", "b", "c"]
    assert [one["path"] for one in rest.done] == ["a", "b", "c"]


def test_no_partition_is_begun_when_half_of_the_time_is_gone(clock: ManualClock) -> None:
    called: list[str] = []
    compact = compacting(called, clock, seconds=30)
    batch = batch_of("a", "b", "c").worked_off(compact, Time(clock, 100))
    assert (called, paths_of(batch)) == (["a", "b"], ["c"])
    alone = batch_of("a").worked_off(compact, Time(clock, 1))
    assert not alone.left


def test_what_fails_is_tried_again_after_all_others(clock: ManualClock) -> None:
    called: list[str] = []
    compact = compacting(
        called, clock, trouble={"a": TransientStoreError("slow down"), "c": "more"}
    )
    batch = batch_of("a", "b", "c", "d").worked_off(compact, Time(clock, 100))
    assert called == ["a", "b", "c"]
    assert paths_of(batch) == ["c", "d", "a"]
    assert [(one.path, str(one.error)) for one in batch.failed] == [("a", "slow down")]


def test_a_partition_that_was_begun_and_fails_then_keeps_its_counts(clock: ManualClock) -> None:
    counts = {"a": {"calls": 2}}
    items = [{"path": "a"}, {"path": "b"}]
    given = Batch.from_state({"BatchInput": COMMON, "Items": items, "counts": counts})
    compact = compacting([], clock, trouble={"a": TransientStoreError("slow down")})
    assert given.worked_off(compact, Time(clock, 100)).to_state()["counts"] == counts


@pytest.mark.parametrize(
    ("errors", "told"),
    [
        ([IntegrityError("a gap"), TransientStoreError("slow")], TransientStoreError),
        ([InvalidInput("x", 1, "y"), SourceChanged("k", "e", "f")], SourceChanged),
        ([SourceChanged("k", "e", "f"), TransientStoreError("slow")], TransientStoreError),
        ([IntegrityError("a gap"), KeyError("b")], KeyError),
        ([IntegrityError("a gap")], IntegrityError),
    ],
)
def test_where_all_that_is_left_fails_the_error_is_raised_that_is_retried_most_often(
    errors: list[Exception], told: type[Exception], clock: ManualClock
) -> None:
    called: list[str] = []
    compact = compacting(called, clock, trouble=dict(zip("ab", errors, strict=False)))
    with pytest.raises(told):
        batch_of(*"ab"[: len(errors)]).worked_off(compact, Time(clock, 100))
    assert len(called) == len(errors)


def test_a_call_that_is_repeated_begins_at_the_other_end(clock: ManualClock) -> None:
    orders = []
    for attempt in range(3):
        called: list[str] = []
        batch_of("a", "b", "c").worked_off(compacting(called, clock), Time(clock, 100), attempt)
        orders.append("".join(called))
    assert orders == ["abc", "cba", "abc"]


def test_a_batch_of_nothing_is_refused() -> None:
    with pytest.raises(InvalidInput, match="Items"):
        Batch.from_state({"Items": []})
