"""Partitions by time, of any year. Python's own dates only cover the years 1 to 9999.

The calendar repeats every 400 years, so dates are shifted by multiples of that.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

from pyiceberg.transforms import HourTransform, MonthTransform, Transform, YearTransform
from pyiceberg.types import DateType, IcebergType, TimestamptzType

_EPOCH = date(1970, 1, 1)
_MIDNIGHT = datetime(1970, 1, 1, tzinfo=UTC)
_CYCLE_YEARS, _CYCLE_DAYS = 400, 146_097
_DAY_MICROSECONDS = 86_400_000_000
_LAST_PLAIN_YEAR = 9999


def applied(transform: Transform[Any, Any], kind: IcebergType) -> Callable[[Any], Any]:
    """Return a transform as a function of a value.

    Args:
        transform: the transform.
        kind: type of its values: dates are days, timestamps microseconds, since 1970.
    """
    if not isinstance(transform, YearTransform | MonthTransform):
        return transform.transform(kind)
    per = 1 if isinstance(kind, DateType) else _DAY_MICROSECONDS
    months = 12 if isinstance(transform, YearTransform) else 1
    return lambda value: _months(value // per) // months


def text_of(transform: Transform[Any, Any], kind: IcebergType, value: Any) -> str:
    """Return a partition value as text, in ISO 8601 also for years beyond 9999.

    Args:
        transform: of the partition field.
        kind: the type that the transform results in.
        value: as in manifests.
    """
    try:
        return transform.to_human_string(kind, value)
    except OverflowError:
        pass
    if isinstance(transform, HourTransform):
        days, hours = divmod(value, 24)
        return f"{_day(days)}-{hours:02d}"
    if isinstance(kind, DateType):
        return _day(value)
    days, micros = divmod(value, _DAY_MICROSECONDS)
    at = _MIDNIGHT + timedelta(microseconds=micros)
    zone = "+00:00" if isinstance(kind, TimestamptzType) else ""
    return f"{_day(days)}T{at.time().isoformat()}{zone}"


def _moved(days: int) -> tuple[date, int]:
    """Return the equivalent date from 1970 to 2369, and how many years later the day really is."""
    cycles, rest = divmod(days, _CYCLE_DAYS)
    return _EPOCH + timedelta(rest), cycles * _CYCLE_YEARS


def _months(days: int) -> int:
    """Return the number of months since 1970."""
    at, years = _moved(days)
    return (at.year + years - _EPOCH.year) * 12 + at.month - 1


def _day(days: int) -> str:
    at, years = _moved(days)
    year = at.year + years
    # ISO 8601: a year of more than four digits, or before 0, has a sign.
    shown = f"{year:04d}" if 0 <= year <= _LAST_PLAIN_YEAR else f"{year:+05d}"
    return f"{shown}-{at:%m-%d}"
