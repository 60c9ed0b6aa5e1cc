"""How groups are divided among Spark's tasks."""

from __future__ import annotations

from compactor.destination import Destination
from compactor.model import SourceObject
from compactor.planning.packing import make_group
from compactor.sizes import MIB
from compactor_spark.answers import GroupTask
from compactor_spark.rounds import slices_of
from tests.support.examples import settings

CORES = 2


def tasks(count: int, sources: int, size: int) -> list[GroupTask]:
    """As many groups, each of so many sources of this size."""
    made = []
    for number in range(count):
        listed = [
            SourceObject("source", f"logs/{number}/{n}.log", f"{number}-{n}", size, 0.0)
            for n in range(sources)
        ]
        made.append(GroupTask(number, make_group(listed, settings()), Destination("lake", "a/")))
    return made


def shape(slices: list[list[GroupTask]]) -> list[int]:
    return [len(one) for one in slices]


def test_a_group_of_the_usual_size_has_a_task_of_its_own() -> None:
    assert shape(slices_of(tasks(20, 2, 128 * MIB), CORES)) == [1] * 20


def test_tiny_groups_share_a_task_up_to_32_mib() -> None:
    given = tasks(2_000, 1, MIB)
    slices = slices_of(given, CORES)
    assert shape(slices) == [32] * 62 + [16]
    assert [task for one in slices for task in one] == given


def test_groups_of_tiny_objects_share_a_task_up_to_2000_sources() -> None:
    assert shape(slices_of(tasks(50, 500, 10), CORES)) == [4] * 12 + [2]


def test_a_few_tiny_groups_are_spread_over_all_cores() -> None:
    assert shape(slices_of(tasks(16, 3, 10), CORES)) == [2] * 8
    assert shape(slices_of(tasks(5, 3, 10), CORES)) == [1] * 5


def test_a_group_without_bytes_has_a_task_as_well() -> None:
    assert sum(shape(slices_of(tasks(9, 1, 0), CORES))) == 9
    assert shape(slices_of(tasks(1, 1, 0), CORES)) == [1]


def test_a_large_group_between_tiny_ones_shares_with_none_before_it() -> None:
    given = [*tasks(40, 1, 10), *tasks(1, 1, 100 * MIB), *tasks(2, 1, 10)]
    assert shape(slices_of(given, 1)) == [10, 10, 10, 10, 1, 2]
