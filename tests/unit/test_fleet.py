"""How many partitions one child execution is given."""

from __future__ import annotations

import pytest

from compactor.discovery.fleet import Fleet
from compactor.discovery.work import Largest
from compactor.settings.settings import Settings

_PLACES = {"s3_source_uri": "s3://source/logs/", "s3_destination_uri": "s3://lake/compacted/"}


@pytest.mark.parametrize(
    ("partitions", "objects", "at_once", "batch"),
    [
        # A worker takes eight seconds for the slowest kind of 10,000 objects of 4 KB.
        (10_000, 10_000, 100, 11),
        (10_000, 10_000, 5_000, 2),
        (10_000, 10, 100, 40),
        (10_000, 1_000_000, 100, 1),
        (99, 10, 100, 1),
        (0, 0, 100, 1),
    ],
)
def test_a_batch_takes_a_minute_or_two_and_leaves_no_worker_without_one(
    partitions: int, objects: int, at_once: int, batch: int
) -> None:
    settings = Settings.from_input({**_PLACES, "max_concurrency": at_once})
    largest = Largest(objects, objects * 4_096)
    fleet = Fleet(3_008 / 1_769)
    assert fleet.batch_partitions(partitions, largest, settings) == batch


def test_where_the_account_runs_few_functions_batches_are_for_these() -> None:
    settings = Settings.from_input({**_PLACES, "max_concurrency": 1_000})
    assert Fleet().batch_partitions(1_000, Largest(1, 1), settings) == 1
    assert Fleet(at_once=50).batch_partitions(1_000, Largest(1, 1), settings) == 20
