"""Alarms fire when they should, and not before, as CloudWatch's manual has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from cdk.readers import alarm_hours
from tests.infrastructure.cloud.alarms import NEW, state_of, told
from tests.infrastructure.conftest import Synthesized


def _alarms(name: str, synthesized: Synthesized) -> dict[str, Mapping[str, Any]]:
    found = synthesized(name).resources("AWS::CloudWatch::Alarm").values()
    return {one["AlarmName"].rpartition("-")[2]: one for one in found}


@pytest.fixture
def no_run(synthesized: Synthesized) -> Mapping[str, Any]:
    alarm = _alarms("everything set", synthesized)["NoRun"]
    assert (alarm["Period"], alarm["EvaluationPeriods"]) == (3_600, 12)
    return alarm


@pytest.mark.parametrize(
    ("schedule", "hours"),
    [
        ("rate(5 minutes)", 2),
        ("rate(6 hours)", 12),
        ("rate(5 days)", 168),
        ("rate(7 days)", 168),
        ("rate(8 days)", None),
        ("cron(0 3 * * ? *)", 48),
        ("cron(0 3 ? * * *)", 48),
        ("cron(0 3 ? * MON-FRI *)", 168),
        ("cron(0 3 ? * 2#1 *)", None),
        ("cron(0 3 ? * 6L *)", None),
        ("cron(0 3 1 * ? *)", None),
        ("cron(0 3 * JAN ? *)", None),
    ],
)
def test_how_long_no_run_is_too_long_follows_from_the_schedule(
    schedule: str, hours: int | None
) -> None:
    assert alarm_hours(schedule) == hours


def test_switching_the_schedule_on_raises_no_alarm_that_no_run_started(
    no_run: Mapping[str, Any],
) -> None:
    assert not told(no_run, NEW, [None] * 24)


def test_runs_in_time_raise_no_alarm(no_run: Mapping[str, Any]) -> None:
    values: list[float | None] = [None] * 24
    values[5] = values[11] = values[17] = 1
    state = NEW
    for hour in range(1, 25):
        assert not told(no_run, state, values[:hour])
        state = state_of(no_run, state, values[:hour])
    assert state == "OK"


def test_a_schedule_that_no_longer_starts_runs_is_reported_once(no_run: Mapping[str, Any]) -> None:
    values: list[float | None] = [1, *[None] * 40]
    state, times = NEW, 0
    for hour in range(1, len(values) + 1):
        times += told(no_run, state, values[:hour])
        state = state_of(no_run, state, values[:hour])
        # Not before the hours that were asked for.
        assert not times or hour > no_run["EvaluationPeriods"]
    assert times == 1


@pytest.mark.parametrize(
    ("kind", "metrics"),
    [
        ("nothing set", {"ExecutionsFailed", "ExecutionsTimedOut", "ExecutionsAborted"}),
        ("standalone", {"Errors"}),
    ],
)
def test_each_way_to_fail_is_reported_though_the_others_never_happened(
    kind: str, metrics: set[str], synthesized: Synthesized
) -> None:
    alarms = _alarms(kind, synthesized)
    by_metric = {one.get("MetricName"): one for one in alarms.values()}

    for metric in metrics:
        alarm = by_metric[metric]
        assert (alarm["Statistic"], alarm["EvaluationPeriods"]) == ("Sum", 1)
        assert told(alarm, NEW, [None, None, 1])
        assert not told(alarm, "OK", [1, None, None, None, None])
    # A sum of metrics is at the mercy of what a metric without any value is taken for.
    queries = [query for one in alarms.values() for query in one.get("Metrics", ())]
    assert [query for query in queries if "Expression" in query] == []
