"""Recommends settle_seconds and open_partition_seconds from how late objects arrive. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import cast

from compactor.scanning.choosing import Layout
from compactor.scanning.listing_sums import Quantiles
from compactor.settings.fields import FIELDS

_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
_WEEK = 7 * _DAY
# The maximum that the fields accept.
_MOST_SECONDS = 366 * _DAY
# With fewer objects, the 99th percentile is chance.
_ENOUGH = 100


@dataclass(frozen=True, slots=True)
class Advice:
    """A recommended value for one setting.

    Attributes:
        field: its name.
        seconds: recommended.
        reason: for the user.
        measured: derived from the objects; otherwise it is the default.
    """

    field: str
    seconds: int
    reason: str
    measured: bool

    @property
    def is_default(self) -> bool:
        """True if the setting can be left out."""
        return self.seconds == FIELDS[self.field].default


def advise(
    layout: Layout | None, stamps: Quantiles, total: int, arrived_within: float
) -> tuple[Advice, Advice]:
    """Return the two settings that decide which objects are left to a later run.

    Args:
        layout: of the keys; None if it is not clear.
        stamps: how long after the time in their name objects arrived.
        total: number of all keys.
        arrived_within: seconds from the first arrival to the last.
    """
    return _settle(stamps, total, arrived_within), _open(layout, arrived_within)


def _settle(stamps: Quantiles, total: int, arrived_within: float) -> Advice:
    half, most = stamps.at(0.5), stamps.at(0.99)
    if half is None or most is None or stamps.count < max(_ENOUGH, 0.9 * total):
        return _usual("settle_seconds", "the keys have no time of day to count from")
    if half > _WEEK:
        return _usual("settle_seconds", _COPIED)
    if _came_together(stamps, arrived_within):
        return _usual("settle_seconds", _copied_together(arrived_within))
    spread = most - half
    seconds = max(_default("settle_seconds"), min(_rounded(spread), _DAY))
    reason = (
        f"of objects with the same time in their name the last 1 % arrives"
        f" {duration_text(spread)} after the middle one"
    )
    return Advice("settle_seconds", seconds, reason, measured=True)


def _open(layout: Layout | None, arrived_within: float) -> Advice:
    name = "open_partition_seconds"
    if layout is None or layout.way is None:
        return _usual(name, "the keys have no date to count from")
    way = layout.way
    half, most = way.after_end.at(0.5), way.after_end.at(0.99)
    if half is None or most is None or way.objects < _ENOUGH:
        return _usual(name, f"fewer than {_ENOUGH} objects show too little")
    if half > _WEEK:
        return _usual(name, _COPIED)
    if _came_together(way.after_end, arrived_within):
        return _usual(name, _copied_together(arrived_within))
    seconds = max(_default(name), min(_rounded(most), _MOST_SECONDS))
    if not way.late:
        reason = "no object arrived after the period in its key was over"
        return Advice(name, seconds, reason, measured=True)
    within = f"within {duration_text(most)} of its end" if most else "before its end"
    reason = (
        f"{way.late / way.objects:.2%} of the objects arrived after the period in their key was"
        f" over, and 99 % of all {within}"
    )
    return Advice(name, seconds, reason, measured=True)


_COPIED = (
    "half of the objects were put there more than a week after the date in their key, as copies"
    " are: their Last-Modified does not show how late they come"
)


def _came_together(late: Quantiles, arrived_within: float) -> bool:
    """Return whether objects arrived closer together than their dates are, as copies do."""
    low, high = late.at(0.1), late.at(0.9)
    return low is not None and high is not None and high - low > arrived_within


def _copied_together(arrived_within: float) -> str:
    return (
        f"all objects arrived within {duration_text(arrived_within)}, closer together than"
        " their dates are, as copies do: their Last-Modified does not show how late they come"
    )


def _usual(name: str, reason: str) -> Advice:
    return Advice(name, _default(name), reason, measured=False)


def _default(name: str) -> int:
    return cast(int, FIELDS[name].default)


def _rounded(seconds: float) -> int:
    """Round up to whole minutes, hours or days."""
    found = 0
    for unit, least in ((_MINUTE, 0), (_HOUR, 2 * _HOUR), (_DAY, 2 * _DAY)):
        if seconds >= least:
            found = ceil(seconds / unit) * unit
    return found


def duration_text(seconds: float) -> str:
    """Format a duration, such as ``40 s`` or ``3.5 h``."""
    for name, unit in (("d", _DAY), ("h", _HOUR), ("min", _MINUTE)):
        if seconds >= 2 * unit:
            return f"{seconds / unit:,.1f} {name}"
    return f"{max(0.0, seconds):,.0f} s"
