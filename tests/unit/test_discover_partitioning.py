"""Which prefixes a window has, and what a wildcard matches."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.settings.windows import (
    days_before_today,
    expand,
    matches,
    parse_date_format,
    parse_moment,
    window_end,
    window_start,
    window_steps,
)

FORMATS = [
    "%Y/%m/%d",
    "dt=%Y-%m-%d",
    "year=%Y/month=%m/day=%d",
    "%Y%m%d",
    "%Y/%j",
    "%Y/%m/%d/%H",
    "dt=%Y-%m-%d-%H",
    "year=%Y/month=%m",
    "%Y",
]
moments = st.integers(86_400_000, 32_000_000_000_000).map(
    lambda milliseconds: datetime.fromtimestamp(milliseconds / 1_000, UTC)
)
lengths = st.timedeltas(timedelta(seconds=1), timedelta(days=400))


NOW = datetime(2026, 11, 26, 23, 59, 59, tzinfo=UTC).timestamp()


def window(start: str, end: str) -> tuple[datetime, datetime]:
    return window_start(parse_moment(start), NOW), window_end(parse_moment(end), NOW)


@pytest.mark.parametrize(
    ("start", "end", "same_start", "same_end"),
    [
        ("today", "today", "2026-11-26", "2026-11-26"),
        ("today-1", "today-1", "2026-11-25", "2026-11-25"),
        ("today-26", "today-0", "2026-10-31", "2026-11-26"),
        ("2026-11-01", "today", "2026-11-01", "2026-11-26"),
        ("today-2", "2026-11-25T12:00:00Z", "2026-11-24", "2026-11-25T12:00:00Z"),
    ],
)
def test_relative_dates_are_days_of_utc_before_the_run(start, end, same_start, same_end) -> None:
    assert window(start, end) == window(same_start, same_end)


@given(moments, st.integers(1, 800))
def test_a_duration_is_so_many_whole_days_that_end_before_today(now: datetime, days: int) -> None:
    start, end = days_before_today(now.timestamp(), days)
    assert expand("%Y-%m-%d", start, end) == tuple(
        f"{now.date() - timedelta(days=back):%Y-%m-%d}/" for back in range(days, 0, -1)
    )
    assert len(expand("%Y/%j/%H", start, end)) == 24 * days


@given(st.sampled_from(FORMATS), moments, lengths)
def test_a_window_has_the_partition_of_each_of_its_instants_and_no_other(
    date_format: str, start: datetime, length: timedelta
) -> None:
    end = start + length
    prefixes = expand(date_format, start, end)
    hours = int(length / timedelta(hours=1)) + 1
    instants = [
        start + timedelta(hours=n) for n in range(hours) if n * 3600 < length.total_seconds()
    ]
    instants.append(end - timedelta(microseconds=1))
    expected = {instant.strftime(date_format) + "/" for instant in instants}
    assert set(prefixes) == expected
    assert list(prefixes) == sorted(prefixes)
    assert len(prefixes) <= window_steps(date_format, start, end)


@given(st.sampled_from(FORMATS), moments, lengths)
def test_no_prefix_of_a_window_contains_another(
    date_format: str, start: datetime, length: timedelta
) -> None:
    prefixes = sorted(expand(date_format, start, start + length))
    assert all(one.endswith("/") for one in prefixes)
    assert not any(two.startswith(one) for one, two in pairwise(prefixes))


def test_the_last_day_of_february_in_a_leap_year_is_there() -> None:
    assert expand("%Y/%m/%d", *window("2024-02-28", "2024-03-01")) == (
        "2024/02/28/",
        "2024/02/29/",
        "2024/03/01/",
    )
    assert expand("%Y/%j", *window("2024-12-31", "2025-01-01")) == ("2024/366/", "2025/001/")


def test_an_end_that_is_a_date_is_included_and_an_end_that_is_a_time_is_not() -> None:
    assert len(expand("%Y/%m/%d/%H", *window("2026-01-01", "2026-01-01"))) == 24
    hours = expand("%H/%Y/%j", *window("2026-01-01T22:30:00Z", "2026-01-02T00:00:00Z"))
    assert hours == ("22/2026/001/", "23/2026/001/")
    assert expand("%Y/%m/%d", *window("2026-01-01T22:30:00Z", "2026-01-02T00:00:00Z")) == (
        "2026/01/01/",
    )
    assert expand("%Y/%m/%d", *window("2026-01-01", "2026-01-02T00:00:01Z")) == (
        "2026/01/01/",
        "2026/01/02/",
    )


def test_months_that_overlap_a_window_come_once_each() -> None:
    days = window("2026-01-31", "2026-03-01")
    assert expand("year=%Y/month=%m", *days) == (
        "year=2026/month=01/",
        "year=2026/month=02/",
        "year=2026/month=03/",
    )


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("2026-01-31", "2026-01-31"),
        ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00Z"),
        ("2026-01-31T12:00", "2026-01-31T12:00:00Z"),
        ("2026-01-31T12:00:00+02:00", "2026-01-31T10:00:00Z"),
        ("2026-01-31T12:00:00.5Z", "2026-01-31T12:00:00.500000Z"),
    ],
)
def test_times_are_kept_in_utc_and_read_back_unchanged(text: str, normal: str) -> None:
    assert parse_moment(text) == normal
    assert parse_moment(normal) == normal


def test_a_date_format_is_kept_without_the_slashes_around_it() -> None:
    assert parse_date_format("/dt=%Y-%m-%d/") == "dt=%Y-%m-%d"


@pytest.mark.parametrize(
    ("pattern", "segment", "fits"),
    [
        ("*", "123456789012", True),
        ("*", "", False),
        ("o-*", "o-abc", True),
        ("o-*", "o-", True),
        ("o-*", "ou-abc", False),
        ("*-east-*", "us-east-1", True),
        ("a.b*", "axb1", False),
        ("[a]*", "[a]1", True),
        ("x*", "xa/b", False),
        ("CloudTrail", "CloudTrail", True),
        ("CloudTrail", "CloudTrail-Digest", False),
    ],
)
def test_an_asterisk_stands_for_characters_within_one_segment(
    pattern: str, segment: str, fits: bool
) -> None:
    assert matches(pattern, segment) is fits
