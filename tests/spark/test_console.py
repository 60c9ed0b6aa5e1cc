"""The lines a person waits with."""

from __future__ import annotations

import io
from itertools import count

import pytest

from compactor.model import ObjectGroup
from compactor_spark.console import Console
from tests.support.examples import source

_ids = count()


class Seconds:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def group(objects: int, size: int = 100) -> ObjectGroup:
    return ObjectGroup(str(next(_ids)), tuple(source(f"{n}", size) for n in range(objects)))


def console() -> tuple[Console, Seconds]:
    clock = Seconds()
    return Console(io.StringIO(), clock), clock


def said(one: Console) -> list[str]:
    assert isinstance(one.stream, io.StringIO)
    return one.stream.getvalue().splitlines()


def test_before_a_group_has_finished_the_time_left_is_unknown() -> None:
    one, clock = console()
    one.begin_round([group(10), group(10)], more=False)
    clock.now += 60
    assert said(one) == ["compact_partitions: 0/2 groups, no group finished yet, time left unknown"]
    assert one.line(more=False).endswith("time left unknown")


def test_the_rate_is_that_of_finished_groups_and_gives_the_time_left() -> None:
    one, clock = console()
    groups = [group(1_000) for _ in range(4)]
    one.begin_round(groups, more=False)
    clock.now += 10
    one.finish(groups[0])
    assert one.line(more=False) == "1/4 groups, 100 objects/s, 30 s left"
    assert one.line(more=True) == "1/4 groups (more to list), 100 objects/s, 30 s left for these"


def test_few_large_objects_have_a_rate_too() -> None:
    one, clock = console()
    groups = [group(2), group(2)]
    one.begin_round(groups, more=False)
    clock.now += 5
    one.finish(groups[0])
    assert one.line(more=False) == "1/2 groups, 0.4 objects/s, 5 s left"


@pytest.mark.parametrize(
    ("objects", "size", "left"),
    [(400, 100, "6 min 40 s"), (10, 10_000, "16 min 40 s"), (10_000, 1, "2 h 46 min")],
)
def test_the_time_left_goes_by_objects_or_by_bytes_whichever_takes_longer(
    objects: int, size: int, left: str
) -> None:
    one, clock = console()
    first = group(10, 100)
    one.begin_round([first, group(objects, size)], more=False)
    clock.now += 10
    one.finish(first)
    assert one.line(more=False).endswith(f", {left} left")


def test_time_between_rounds_does_not_slow_the_rate_down() -> None:
    one, clock = console()
    groups = [group(100), group(100)]
    one.begin_round(groups[:1], more=True)
    clock.now += 10
    one.finish(groups[0])
    one.end_round()
    clock.now += 1_000
    one.begin_round(groups[1:], more=False)
    clock.now += 10
    one.finish(groups[1])
    assert one.line(more=False) == "2/2 groups, 10 objects/s, 0 s left"


def test_lines_are_at_least_five_seconds_apart() -> None:
    one, clock = console()
    one.begin_round([group(1)], more=False)
    for _ in range(12):
        clock.now += 1
        one.show(more=False)
    assert len(said(one)) == 1 + 2
