from __future__ import annotations

from datetime import date, datetime
from typing import Any

import pytest

from compactor.errors import InvalidInput
from compactor_cli.generator import CompressionChoice, GeneratorSpec, LogFormat
from compactor_cli.generator.spec import parse_formats, parse_start

BAD = [
    ("objects", 0, "whole number from 1"),
    ("objects", 2**32 + 1, "whole number from 1"),
    ("objects", 1.5, "whole number"),
    ("objects", True, "whole number"),
    ("rows", 0, "whole number from 1 to 1000000"),
    ("rows", "20", "whole number"),
    ("formats", (), "at least one of json, csv"),
    ("formats", ("json",), "at least one of json"),
    ("formats", (LogFormat.CSV, LogFormat.CSV), "each once"),
    ("start", "2026-01-01", "a date"),
    ("start", datetime(2026, 1, 1), "a date"),  # noqa: DTZ001 - naive on purpose
    ("start", date(1969, 12, 31), "1970-01-01 or later"),
    ("start", date(9999, 12, 31), "before 9999"),
    ("days", 0, "whole number from 1 to 3660"),
    ("days", 3_661, "whole number from 1 to 3660"),
    ("date_format", "", "%Y"),
    ("date_format", "%m/%d", "%Y among them"),
    ("date_format", "%Y/%q", "strftime directives"),
    ("date_format", "%Y%", "strftime directives"),
    ("date_format", "/%Y/%m", "single '/'"),
    ("date_format", "%Y//%m", "single '/'"),
    ("date_format", "%Y/../%m", "segments"),
    ("date_format", "%Y %m", "strftime directives"),
    ("date_format", None, "strftime directives"),
    ("seed", -1, "whole number from 0"),
    ("compression", "gzip", "native, none, gzip, mixed"),
    ("empty_rate", -0.01, "number from 0 to 1"),
    ("late_rate", 1.01, "number from 0 to 1"),
    ("missing_newline_rate", float("nan"), "number from 0 to 1"),
    ("size_sigma", 2.1, "number from 0 to 2"),
    ("size_sigma", "1", "number from 0 to 2"),
    ("accounts", 0, "whole number from 1 to 1000"),
    ("regions", 9, "whole number from 1 to 8"),
]


@pytest.mark.parametrize(("field", "value", "accepted"), BAD)
def test_a_wrong_field_is_refused_by_name_with_what_is_accepted(
    field: str, value: Any, accepted: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        GeneratorSpec(**{field: value})
    assert caught.value.field == field
    assert accepted in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "date_format",
    ["%Y/%m/%d", "%Y/%m/%d/%H", "dt=%Y-%m-%d", "year=%Y/month=%m/day=%d/hour=%H", "%Y/%j"],
)
def test_the_usual_date_formats_are_accepted(date_format: str) -> None:
    assert GeneratorSpec(date_format=date_format).date_format == date_format


def test_formats_may_be_repeated_comma_separated_or_mixed() -> None:
    assert parse_formats(["csv,json", "json", " vpc "]) == (
        LogFormat.CSV,
        LogFormat.JSON,
        LogFormat.VPC,
    )
    assert parse_formats(["mixed"]) == tuple(LogFormat)


@pytest.mark.parametrize("name", ["xml", "", "JSON", "json,,csv"])
def test_an_unknown_format_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="cloudtrail"):
        parse_formats([name])


def test_a_start_may_be_given_relative_to_today() -> None:
    today = date(2026, 3, 1)
    assert parse_start("2026-02-28") == date(2026, 2, 28)
    assert parse_start("today", today=today) == today
    assert parse_start("today-1", today=today) == date(2026, 2, 28)


@pytest.mark.parametrize(
    "text", ["", "yesterday", "2026-02-30", "20260101", "2026-1-1", "today+1", "today-"]
)
def test_a_start_that_is_no_date_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="YYYY-MM-DD") as caught:
        parse_start(text)
    assert caught.value.field == "start"


def test_a_start_further_back_than_the_calendar_is_refused() -> None:
    with pytest.raises(InvalidInput, match="start"):
        parse_start("today-999999", today=date(2026, 3, 1))


def test_every_choice_of_compression_is_accepted() -> None:
    for choice in CompressionChoice:
        assert GeneratorSpec(compression=choice).compression is choice
