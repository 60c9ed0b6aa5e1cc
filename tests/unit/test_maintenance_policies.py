"""Rules of who may touch what: the first that matches counts, and nonsense is an error."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from compactor.errors import InvalidInput
from compactor_tables.policies import USUAL, matches, read_policies


def at(hour: int, minute: int = 0) -> float:
    return datetime(2026, 11, 1, hour, minute, tzinfo=UTC).timestamp()


def test_the_first_rule_that_matches_counts() -> None:
    found = read_policies(
        [
            {"match": ["gold.orders"], "leave": True},
            {"match": ["bronze.*", "gold.*"], "engine": "spark", "sort": ["day", "id desc"]},
            {"match": ["*"], "engine": "athena"},
        ]
    )
    assert found.of("glue:gold.orders").number == 1
    assert found.of("glue:gold.orders").rule.leave
    second = found.of("rest:https://catalog#gold.returns")
    assert (second.number, second.pattern) == (2, "gold.*")
    assert second.rule.sort == ("day", "id desc")
    assert found.of("delta:s3://lake/silver/").text == "rule 3 (*)"


def test_without_a_rule_the_defaults_hold() -> None:
    found = read_policies([{"match": ["bronze.*"]}]).of("glue:silver.a")
    assert (found.rule, found.text) == (USUAL, "no rule")


@pytest.mark.parametrize(
    ("pattern", "name", "does"),
    [
        ("bronze.*", "glue:bronze.events", True),
        ("bronze.*", "glue:bronze_old.events", False),
        ("glue:bronze.*", "sql:sqlite:///x#bronze.events", False),
        ("delta:s3://lake/gold/*", "delta:s3://lake/gold/orders/", True),
        ("*.orders", "delta:s3://lake/x.orders/", False),
        ("*", "delta:s3://logs/app/", True),
        ("a.[b]", "glue:a.b", False),
    ],
)
def test_a_star_is_anything_and_all_else_itself(pattern: str, name: str, does: bool) -> None:
    assert matches(pattern, name) == does


def test_a_quiet_time_may_pass_midnight() -> None:
    (rule,) = read_policies([{"match": ["*"], "quiet_hours": ["22:30-04:00", "12:00-12:10"]}]).rules
    night, noon = rule.quiet_hours
    assert [night.holds(at(*moment)) for moment in ((22, 30), (3, 59), (4, 0), (22, 29))] == [
        True,
        True,
        False,
        False,
    ]
    assert [noon.holds(at(12, minute)) for minute in (0, 9, 10)] == [True, True, False]
    assert (night.text, noon.text) == ("22:30-04:00", "12:00-12:10")


@pytest.mark.parametrize(
    ("rule", "field"),
    [
        ({}, "policies[1].match"),
        ({"match": []}, "policies[1].match"),
        ({"match": ["*"], "engin": "spark"}, "policies[1].engin"),
        ({"match": ["*"], "engine": "hive"}, "policies[1].engine"),
        ({"match": ["*"], "quiet_hours": ["25:00-26:00"]}, "policies[1].quiet_hours"),
        ({"match": ["*"], "quiet_hours": ["12:00-12:00"]}, "policies[1].quiet_hours"),
        ({"match": ["*"], "sort": ["day up"]}, "policies[1].sort"),
        ({"match": ["*"], "zorder": ["a", "a"]}, "policies[1].zorder"),
        ({"match": ["*"], "sort": ["a"], "zorder": ["b"]}, "policies[1].zorder"),
        ({"match": ["*"], "num_files": 4, "sort": ["a"]}, "policies[1].num_files"),
        ({"match": ["*"], "keep_days": 6}, "policies[1].keep_days"),
        ({"match": ["*"], "orphan_days": 2}, "policies[1].orphan_days"),
    ],
)
def test_a_rule_that_makes_no_sense_is_reported_by_its_field(rule: object, field: str) -> None:
    with pytest.raises(InvalidInput) as told:
        read_policies([rule])
    assert told.value.field == field


def test_less_than_the_floor_has_to_be_said_twice() -> None:
    given = {"match": ["*"], "keep_days": 0, "orphan_days": 1}
    with pytest.raises(InvalidInput, match="below_floor"):
        read_policies([given])
    (rule,) = read_policies([{**given, "below_floor": True}]).rules
    assert (rule.keep_days, rule.orphan_days) == (0.0, 1.0)
