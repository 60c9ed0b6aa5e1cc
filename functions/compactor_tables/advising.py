"""Recommends how often to maintain a table, by its history. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import linear_regression, median

from compactor_tables.observations import COMPARED, History, Look
from compactor_tables.schedules import QuietHours

_HOUR, _DAY = 3_600.0, 86_400.0
# Hours between two runs -> cron expression for them; H is the hour of the day.
_CRONS = {
    1: "cron(0 * * * ? *)",
    2: "cron(0 0/2 * * ? *)",
    3: "cron(0 0/3 * * ? *)",
    4: "cron(0 0/4 * * ? *)",
    6: "cron(0 0/6 * * ? *)",
    8: "cron(0 0/8 * * ? *)",
    12: "cron(0 0/12 * * ? *)",
    24: "cron(0 H * * ? *)",
    48: "cron(0 H 1/2 * ? *)",
    72: "cron(0 H 1/3 * ? *)",
    168: "cron(0 H ? * SUN *)",
    336: "cron(0 H 1,15 * ? *)",
    720: "cron(0 H 1 * ? *)",
}
_USUAL_HOUR = 3


@dataclass(frozen=True, slots=True)
class Advice:
    """A recommended schedule.

    Attributes:
        cron: expression for EventBridge, in UTC; empty if there is no recommendation.
        reason: human-readable reason for the recommendation, or for its absence.
    """

    cron: str
    reason: str


def advise(
    history: History, source: str, share: float, quiet_hours: Sequence[QuietHours] = ()
) -> Advice:
    """Recommend a cron expression.

    Args:
        history: of the table.
        source: of the latency.
        share: by which the table may become slower than it was right after a compaction.
        quiet_hours: hours in which nothing may run.
    """
    stretches = [one for one in _stretches(history, source) if len(one) > 1][-COMPARED:]
    if not stretches:
        return Advice("", "not enough is known: it takes a compaction and two looks after it")
    hours = [found for one in stretches if (found := _hours_until(one, share)) is not None]
    if not hours:
        days = sum(one[-1].at - one[0].at for one in stretches) / _DAY
        return Advice(
            "",
            f"it did not become slower in {days:,.1f} days after compactions: let it be maintained"
            " only when it is due",
        )
    needed = median(hours)
    every = max((one for one in _CRONS if one <= needed), default=1)
    hour = _quietest(history, quiet_hours)
    cron = _CRONS[every].replace("H", str(hour), 1)
    reason = (
        f"it was {share:.0%} slower {_span(needed)} after a compaction (median of {len(hours)})"
    )
    if "H" in _CRONS[every].partition("(")[2]:
        reason += f"; {hour:02}:00 is the hour with the fewest commits"
    return Advice(cron, reason)


def _stretches(history: History, source: str) -> list[list[Look]]:
    """Return the looks with a latency after each compaction."""
    found: list[list[Look]] = []
    for one in history.looks:
        if one.is_compaction:
            found.append([])
        elif found and one.latency is not None and one.source == source:
            found[-1].append(one)
    return found


def _hours_until(looks: Sequence[Look], share: float) -> float | None:
    """Return the hours from a stretch's first look until the table is slower by this share.

    If it did not become that slow, the time is extrapolated by a linear fit; None if the fit does
    not rise.
    """
    first, last = looks[0], looks[-1]
    bound = (first.latency or 0.0) * (1 + share)
    for one in looks[1:]:
        if (one.latency or 0.0) > bound:
            return (one.at - first.at) / _HOUR
    if last.at <= first.at:
        return None
    times = [(one.at - first.at) / _HOUR for one in looks]
    slope = linear_regression(times, [one.latency or 0.0 for one in looks]).slope
    return (bound - (first.latency or 0.0)) / slope if slope > 0 else None


def _quietest(history: History, quiet_hours: Sequence[QuietHours]) -> int:
    """Return the hour of the day with the fewest commits in it and the next one."""
    counts = next((one.hours for one in reversed(history.looks) if one.hours), ())
    allowed = [
        hour for hour in range(24) if not any(one.holds(hour * _HOUR) for one in quiet_hours)
    ] or list(range(24))
    if not counts:
        return min(allowed, key=lambda hour: abs(hour - _USUAL_HOUR))
    return min(allowed, key=lambda hour: (counts[hour] + counts[(hour + 1) % 24], hour))


def _span(hours: float) -> str:
    return f"{hours / 24:,.1f} days" if hours >= 48 else f"{hours:,.1f} hours"
