"""Sizes and times with their units, as text in an input or on the command line."""

from __future__ import annotations

from typing import Any

import pytest

from compactor.errors import InvalidInput
from compactor.settings.settings import Settings

GIVEN = {
    "s3_source_uri": "s3://logs/raw/",
    "s3_destination_uri": "s3://lake/compacted/",
    "date_format": "%Y/%m/%d",
}


def read(name: str, value: object) -> Any:
    return getattr(Settings.from_input({**GIVEN, name: value}), name)


@pytest.mark.parametrize(
    ("name", "value", "meant"),
    [
        ("target_bytes", "128MiB", 128 << 20),
        ("target_bytes", "1GB", 10**9),
        ("target_bytes", "1.5 GiB", 3 << 29),
        ("target_bytes", "200mb", 200_000_000),
        ("target_bytes", "6000000B", 6_000_000),
        ("target_bytes", "1TiB", 1 << 40),
        ("lambda_max_bytes", "50GB", 50 * 10**9),
        ("settle_seconds", "90s", 90),
        ("settle_seconds", "10m", 600),
        ("settle_seconds", "1.5h", 5_400),
        ("delete_after", " 36h", "36h"),
        ("delete_after", "2w", "2w"),
        ("window", "2w", "14d"),
    ],
)
def test_a_number_may_come_with_a_unit(name: str, value: object, meant: float) -> None:
    assert read(name, value) == meant


@pytest.mark.parametrize(
    ("name", "value", "accepted"),
    [
        ("target_bytes", "128", "or a size such as 128MiB or 1GB"),
        ("target_bytes", "128M", "or a size such as 128MiB or 1GB"),
        ("target_bytes", "1MB", "a whole number from 5,242,880 to 4,398,046,511,104, or a size"),
        ("target_bytes", "5242880.5B", "a size such as"),
        ("target_bytes", "-128MiB", "a size such as"),
        ("target_bytes", "\u0661GB", "a size such as"),
        ("settle_seconds", "10x", "or a time such as 90s, 10m or 2h"),
        ("settle_seconds", "1.23s", "or a time such as"),
        ("settle_seconds", "600w", "or a time such as"),
        ("window", "36h", "days before today such as 7d or 2w"),
        ("delete_after", True, "a time such as 36h, 30d or 2w"),
        ("delete_after", "d", "a time such as 36h, 30d or 2w"),
    ],
)
def test_what_is_no_such_number_is_refused_by_name(name: str, value: object, accepted: str) -> None:
    with pytest.raises(InvalidInput, match=f"{name}: .*{accepted}"):
        read(name, value)
