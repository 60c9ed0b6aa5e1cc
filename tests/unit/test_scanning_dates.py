"""Dates in the levels of a key, in the words of the settings' date_format."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from compactor.scanning.dates import date_in, is_unpadded
from compactor.settings.windows import expand, parse_date_format


def read(path: str) -> tuple[str, str] | None:
    """What lies before the date, and its format."""
    date = date_in(tuple(path.split("/")))
    return None if date is None else ("/".join(date.lead), date.format)


@pytest.mark.parametrize(
    ("path", "lead", "date_format"),
    [
        ("2026/11/25", "", "%Y/%m/%d"),
        ("2026/11/25/07", "", "%Y/%m/%d/%H"),
        ("2026/11/25/31", "", "%Y/%m/%d"),
        ("web/dt=2026-11-25", "web", "dt=%Y-%m-%d"),
        ("web/dt=2026-11-25/hour=07", "web", "dt=%Y-%m-%d/hour=%H"),
        ("dt=2026-11-25-07", "", "dt=%Y-%m-%d-%H"),
        ("year=2026/month=11/day=25/hour=07", "", "year=%Y/month=%m/day=%d/hour=%H"),
        ("y=2026/m=11/d=25", "", "y=%Y/m=%m/d=%d"),
        ("20261125", "", "%Y%m%d"),
        ("logs-2026.11.25", "", "logs-%Y.%m.%d"),
        ("2026-11", "", "%Y-%m"),
        ("2026/11/2026-11-25", "2026/11", "%Y-%m-%d"),
        ("year=2026", "", "year=%Y"),
        (
            "AWSLogs/218007301253/CloudTrail/us-east-1/2023/07/25",
            "AWSLogs/218007301253/CloudTrail/us-east-1",
            "%Y/%m/%d",
        ),
    ],
)
def test_levels_are_read_as_the_date_they_have(path: str, lead: str, date_format: str) -> None:
    assert read(path) == (lead, date_format)


@pytest.mark.parametrize(
    "path",
    ["", "raw/orders", "2026", "part=01/chunk=02", "v2026", "8080/11/25", "2026x11x25", "12/31",
     "00/11/22", "218007301253", "shard=2026-13-45", "2026%m/11", "2026*/11",
     "25/11/2026", "2026/02/30"],
)  # fmt: skip
def test_what_is_no_date_is_not_read_as_one(path: str) -> None:
    assert read(path) is None


@pytest.mark.parametrize(
    "path",
    ["2026/11/25", "dt=2026-11-25/hour=07", "20261125-07",
     "year=2026/month=11", "20261125"],
)  # fmt: skip
def test_a_run_with_the_format_expands_the_period_to_the_very_levels(path: str) -> None:
    one = date_in(tuple(path.split("/")))
    assert one is not None
    begin, end = (datetime.fromtimestamp(at, UTC) for at in (one.begin, one.end))
    assert parse_date_format(one.format) == one.format
    assert expand(one.format, begin, end) == (f"{path}/",)


def test_dates_without_zeros_in_front_are_distinguished():
    assert is_unpadded(["2026", "1", "5"])
    assert is_unpadded(["web", "year=2026", "month=11", "day=5"])
    assert not is_unpadded(["2026", "11", "05", "7"])
    assert not is_unpadded(["web", "5", "7"])
