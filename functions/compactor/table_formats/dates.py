"""Partitions by time, of any year: Python's own dates are those from the year 1 to 9999 alone.

The calendar repeats itself every 400 years, so a date is moved by as many of these as it takes.
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
    """What a transform makes of a value.

    Args:
        transform: takes values of this type.
        kind: dates as days, and timestamps as microseconds, since 1970.
    """
    if not isinstance(transform, YearTransform | MonthTransform):
        return transform.transform(kind)
    per = 1 if isinstance(kind, DateType) else _DAY_MICROSECONDS
    months = 12 if isinstance(transform, YearTransform) else 1
    return lambda value: _months(value // per) // months


def text_of(transform: Transform[Any, Any], kind: IcebergType, value: Any) -> str:
    """The value of a partition for a person and an engine, by ISO 8601 beyond 9999 as well.

    Args:
        transform: of the partition's field.
        kind: what the transform results in.
        value: as manifests have it.
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
    """A date between 1970 and 2369, and the years by which the one of this day is later."""
    cycles, rest = divmod(days, _CYCLE_DAYS)
    return _EPOCH + timedelta(rest), cycles * _CYCLE_YEARS


def _months(days: int) -> int:
    """Months since 1970."""
    at, years = _moved(days)
    return (at.year + years - _EPOCH.year) * 12 + at.month - 1


def _day(days: int) -> str:
    at, years = _moved(days)
    year = at.year + years
    # A year of more than four digits, or before 0, has a sign (ISO 8601).
    shown = f"{year:04d}" if 0 <= year <= _LAST_PLAIN_YEAR else f"{year:+05d}"
    return f"{shown}-{at:%m-%d}"
