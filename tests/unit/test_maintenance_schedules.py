"""By the date: every so many days, or by a cron expression of EventBridge."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from compactor.errors import InvalidInput
from compactor_tables.policies import read_policies
from compactor_tables.schedules import parse_every


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


# 22 November 2026 is a Sunday.
@pytest.mark.parametrize(
    ("cron", "latest"),
    [
        ("cron(0 3 * * ? *)", "2026-11-22T03:00"),
        ("cron(0 23 * * ? *)", "2026-11-21T23:00"),
        ("cron(30 3 ? * SUN *)", "2026-11-22T03:30"),
        ("cron(30 3 ? * 7 *)", "2026-11-21T03:30"),
        ("cron(0 22 ? * MON-FRI *)", "2026-11-20T22:00"),
        ("cron(0/20 9-17 * * ? *)", "2026-11-22T12:00"),
        ("cron(5,50 0/6 * * ? *)", "2026-11-22T12:05"),
        ("cron(0 3 1,15 * ? *)", "2026-11-15T03:00"),
        ("cron(0 3 31 JAN,MAR ? *)", "2026-03-31T03:00"),
        ("cron(0 0 29 2 ? *)", "2024-02-29T00:00"),
        ("cron(0 3 * * ? 2025)", "2025-12-31T03:00"),
    ],
)
def test_the_last_moment_of_a_cron_expression_is_found(cron: str, latest: str) -> None:
    assert parse_every(cron).latest(at("2026-11-22T12:10:30")) == at(latest)


def test_a_date_that_never_comes_has_no_last_moment() -> None:
    assert parse_every("cron(0 3 31 2 ? *)").latest(at("2026-11-22T12:10")) is None


def test_it_is_time_again_once_the_date_has_passed_since_the_last_time() -> None:
    now = at("2026-11-22T12:10")
    nightly, weekly = parse_every("cron(0 3 * * ? *)"), parse_every(7)
    assert nightly.has_come(at("2026-11-22T02:59"), now)
    assert not nightly.has_come(at("2026-11-22T03:00"), now)
    assert weekly.has_come(at("2026-11-15T12:10"), now)
    assert not weekly.has_come(at("2026-11-15T12:11"), now)
    assert weekly.has_come(None, now)


@pytest.mark.parametrize(
    "every",
    [
        0,
        400,
        True,
        "7",
        "rate(1 day)",
        "cron(0 3 * * * *)",
        "cron(0 3 ? * ? *)",
        "cron(0 3 ? * 2#1 *)",
        "cron(0 3 L * ? *)",
        "cron(60 3 * * ? *)",
        "cron(0 5-3 * * ? *)",
        "cron(0 0/0 * * ? *)",
        "cron(? 3 ? * 1 *)",
    ],
)
def test_what_is_no_date_is_refused_with_the_rule_and_the_field(every: object) -> None:
    with pytest.raises(InvalidInput, match=r"policies\[1\]\.every") as refused:
        read_policies([{"match": ["*"], "every": every}])
    assert "cron(0 3 ? * SUN *)" in refused.value.accepted


@pytest.mark.parametrize("workgroup", ["", "a b", "w" * 129, 3])
def test_what_is_no_workgroup_is_refused(workgroup: object) -> None:
    with pytest.raises(InvalidInput, match="athena_workgroup"):
        read_policies([{"match": ["*"], "athena_workgroup": workgroup}])
