"""Dates in the levels of a key, in the words of the settings' date_format."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from compactor.scanning.date_levels import is_unpadded, readings
from compactor.settings.windows import expand, parse_date_format


def read(path: str) -> list[tuple[str, str]]:
    """What lies before the date, and the format, of each way to read a directory."""
    return [("/".join(one.lead), one.format) for one in readings(path.split("/"))]


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
        ("2026/329", "", "%Y/%j"),
        ("2026-11", "", "%Y-%m"),
        ("2026/11/2026-11-25", "", "%Y/%m/%Y-%m-%d"),
        ("year=2026", "", "year=%Y"),
        (
            "AWSLogs/218007301253/CloudTrail/us-east-1/2023/07/25",
            "AWSLogs/218007301253/CloudTrail/us-east-1",
            "%Y/%m/%d",
        ),
        ("25/11/2026", "", "%d/%m/%Y"),
        ("11-25-2026", "", "%m-%d-%Y"),
        ("2026/25/11", "", "%Y/%d/%m"),
    ],
)
def test_levels_are_read_as_the_date_they_have(path: str, lead: str, date_format: str) -> None:
    assert read(path) == [(lead, date_format)]


@pytest.mark.parametrize(
    "path",
    ["", "raw/orders", "2026", "part=01/chunk=02", "v2026", "8080/11/25", "2026x11x25", "12/31",
     "00/11/22", "218007301253", "shard=2026-13-45", "2026%m/11", "2026*/11"],
)  # fmt: skip
def test_what_is_no_date_is_not_read_as_one(path: str) -> None:
    assert read(path) == []


def test_day_and_month_that_may_be_either_are_both_reported_the_usual_one_first():
    assert [one for _, one in read("2026/05/04")] == ["%Y/%m/%d", "%Y/%d/%m"]
    assert sorted(one for _, one in read("05/04/2026")) == ["%d/%m/%Y", "%m/%d/%Y"]


@pytest.mark.parametrize(
    "path",
    ["2026/11/25", "dt=2026-11-25/hour=07", "2026/329", "25/11/2026", "2026/11/2026-11-25",
     "year=2026/month=11", "20261125"],
)  # fmt: skip
def test_a_run_with_the_format_expands_the_period_to_the_very_levels(path: str) -> None:
    (one,) = readings(path.split("/"))
    begin, end = (datetime.fromtimestamp(at, UTC) for at in (one.begin, one.end))
    assert parse_date_format(one.format) == one.format
    assert expand(one.format, begin, end) == (f"{path}/",)


def test_dates_without_zeros_in_front_are_distinguished():
    assert is_unpadded(["2026", "1", "5"])
    assert is_unpadded(["web", "year=2026", "month=11", "day=5"])
    assert not is_unpadded(["2026", "11", "05", "7"])
    assert not is_unpadded(["web", "5", "7"])
