"""What CloudWatch makes of an alarm on one metric.

From "Using Amazon CloudWatch alarms" and "Configuring how CloudWatch alarms treat missing data":
an alarm begins as INSUFFICIENT_DATA, is judged by more periods than it evaluates (the evaluation
range), and acts only when its state changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

#: The state of every alarm that was just made.
NEW = "INSUFFICIENT_DATA"
_WITHOUT_DATA = {"missing": NEW, "breaching": "ALARM", "notBreaching": "OK"}
_ACTIONS = {"ALARM": "AlarmActions", "OK": "OKActions", NEW: "InsufficientDataActions"}
# 5 periods for 3, in the manual's example.
_MORE_PERIODS = 2


def state_of(alarm: Mapping[str, Any], before: str, values: Sequence[float | None]) -> str:
    """The state after these values, one a period, the latest last; None where there is none."""
    periods = alarm["EvaluationPeriods"]
    treated = alarm.get("TreatMissingData", "missing")
    found = [value for value in values[-periods - _MORE_PERIODS :] if value is not None]
    if not found:
        return _WITHOUT_DATA.get(treated, before)
    breaching = [_breaches(alarm, value) for value in found[-periods:]]
    if len(breaching) < periods and treated in {"breaching", "notBreaching"}:
        breaching += [treated == "breaching"] * (periods - len(breaching))
    enough = min(alarm.get("DatapointsToAlarm", periods), len(breaching))
    return "ALARM" if sum(breaching) >= enough else "OK"


def told(alarm: Mapping[str, Any], before: str, values: Sequence[float | None]) -> bool:
    """Whether anybody is told of it."""
    after = state_of(alarm, before, values)
    return after != before and bool(alarm.get(_ACTIONS[after]))


def _breaches(alarm: Mapping[str, Any], value: float) -> bool:
    threshold = alarm["Threshold"]
    if alarm["ComparisonOperator"] == "GreaterThanThreshold":
        return bool(value > threshold)
    assert alarm["ComparisonOperator"] == "LessThanThreshold"
    return bool(value < threshold)
