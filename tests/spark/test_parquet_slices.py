"""How many tasks read the sources of a conversion, and how often Spark goes over them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark import SparkContext

from compactor.sizes import MIB
from compactor_spark.columnar.blocks import slices_for
from tests.spark.row_world import RowWorld
from tests.support.examples import source

Rows = Callable[..., RowWorld]


def slices(count: int, size: int, cores: int) -> int:
    return slices_for([source(f"{number}.json", size) for number in range(count)], cores)


@pytest.mark.parametrize(
    ("count", "size", "cores", "expected"),
    [
        # A task reads 128 sources at once: with eight to a task 4,000 would be read 16 at a time.
        (4_000, 3_000, 2, 4),
        (20_000, 3_000, 64, 128),
        (100, 3_000, 64, 2),
        (1, 3_000, 64, 1),
        # What a task that is tried again would read again.
        (50_000, 100, 2, 13),
        (8, 80 * MIB, 2, 8),
        (128, MIB, 2, 8),
        (50_000, 64 * MIB, 2, 256),
    ],
)
def test_tasks_are_few_where_sources_are_small_and_many_where_they_are_large(
    count: int, size: int, cores: int, expected: int
) -> None:
    assert slices(count, size, cores) == expected


def test_records_that_all_fit_are_converted_by_few_jobs_of_a_handful_of_tasks(
    rows: Rows,
) -> None:
    world = rows(output_format="parquet")
    for number in range(200):
        world.put_lines(f"{number:03}.json", {"id": number})
    done = _jobs(world.session.sparkContext)
    (commit,) = world.run()
    assert commit.output is not None
    assert commit.output.records == 200
    found = _jobs(world.session.sparkContext) - done
    # Read and counted, columns found out, written by two, columns and rows read back by three.
    assert len(found) <= 8
    assert _tasks(world.session.sparkContext, found) <= 30


def _jobs(context: SparkContext) -> set[int]:
    return set(context.statusTracker().getJobIdsForGroup(None))


def _tasks(context: SparkContext, jobs: set[int]) -> int:
    tracker = context.statusTracker()
    told = [tracker.getJobInfo(job) for job in jobs]
    stages = {stage for job in told if job is not None for stage in job.stageIds}
    return sum(one.numTasks for one in map(tracker.getStageInfo, stages) if one is not None)
