from __future__ import annotations

import pytest

from compactor.money.estimate import (
    CLOUDTRAIL_GZIP,
    LINES,
    LINES_GZIP,
    ROWS,
    ROWS_GZIP,
    ROWS_PARQUET,
    SPEEDS,
    WorkerSpeed,
    speed_for,
)
from tests.support.examples import settings


def test_seconds_grow_with_objects_and_with_bytes() -> None:
    speed = WorkerSpeed(per_million_objects=200, per_gb=10)
    assert speed.seconds(1_000_000, 0) == 200
    assert speed.seconds(0, 3 * 10**9) == 30
    assert speed.seconds(500_000, 10**9) == 110


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("a/b.json", LINES),
        ("a/b.csv", LINES),
        ("a/no-extension", LINES),
        ("a/b.json.gz", LINES_GZIP),
        ("a/b.log.zst", LINES_GZIP),
        ("a/1_CloudTrail_eu-west-1_x.json.gz", CLOUDTRAIL_GZIP),
        ("a/1_CloudTrail_eu-west-1_x.json", CLOUDTRAIL_GZIP),
    ],
)
def test_a_key_decides_which_speed_counts(key, kind) -> None:
    assert speed_for(key, settings()) is SPEEDS[kind]


@pytest.mark.parametrize(
    ("key", "given", "kind"),
    [
        ("a/b.json", {"output_format": "parquet"}, ROWS),
        ("a/1_CloudTrail_eu-west-1_x.json.gz", {"output_format": "parquet"}, ROWS_GZIP),
        ("a/b.parquet", {"format": "parquet"}, ROWS_PARQUET),
    ],
)
def test_rows_have_speeds_of_their_own(key, given, kind) -> None:
    assert speed_for(key, settings(**given)) is SPEEDS[kind]
