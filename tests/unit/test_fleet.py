"""How many partitions one child execution is given."""

from __future__ import annotations

from unittest import mock

import pytest

from compactor.discovery import fleet
from compactor.discovery.fleet import Fleet
from compactor.discovery.speed import WorkerSpeed, speeds_of
from compactor.discovery.work_items import Largest
from compactor.settings.settings import Settings

_PLACES = {"s3_source_uri": "s3://source/logs/", "s3_destination_uri": "s3://lake/compacted/"}


# The measured ones change with each measurement.
_SPEEDS = [
    WorkerSpeed(per_million_objects=100, per_gb=10),
    WorkerSpeed(per_million_objects=700, per_gb=20),
]


@pytest.mark.parametrize(
    ("partitions", "objects", "at_once", "batch"),
    [
        # A worker takes 8 s for the slow kind of 10,000 objects of 4 KB, and 1.5 s beside them.
        (10_000, 10_000, 100, 9),
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
    with mock.patch.object(fleet, "speeds_of", return_value=_SPEEDS):
        found = Fleet().batch_partitions(partitions, largest, settings)
    assert found == batch


@pytest.mark.parametrize("given", [{}, {"output_format": "parquet"}, {"format": "parquet"}])
@pytest.mark.parametrize("objects", [100, 3_000, 10_000, 100_000])
def test_no_batch_of_several_takes_more_than_two_minutes_by_the_measured_speeds(
    objects: int, given: dict[str, str]
) -> None:
    settings = Settings.from_input({**_PLACES, **given})
    largest = Largest(objects, objects * 4_096)
    count = Fleet().batch_partitions(100_000, largest, settings)
    for speed in speeds_of(settings):
        assert count == 1 or count * speed.seconds(largest.objects, largest.bytes) < 120
