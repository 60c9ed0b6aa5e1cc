"""When something is due by the date, and when nothing may run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

import msgspec

EVERY_ACCEPTED = (
    'a number of days from 0.04 to 366, or a cron expression of EventBridge (UTC) such as "cron(0 3'
    ' ? * SUN *)", without L, W and #'
)
HOURS_ACCEPTED = 'a list of stretches of the day in UTC, such as ["22:00-04:30"]'
_DAY = 86_400.0
_MINUTES = re.compile(r"([01]\d|2[0-3]):([0-5]\d)")
_LEAST_DAYS, _MOST_DAYS = 0.04, 366.0
_CRON = re.compile(r"cron\((\S+) (\S+) (\S+) (\S+) (\S+) (\S+)\)")
_PART = re.compile(r"(\*|[A-Z0-9]+)(?:-([A-Z0-9]+))?(?:/(\d+))?")
_MONTH_NAMES = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_MONTHS = {name: number for number, name in enumerate(_MONTH_NAMES, start=1)}
_WEEKDAYS = {"SUN": 1, "MON": 2, "TUE": 3, "WED": 4, "THU": 5, "FRI": 6, "SAT": 7}
# Minutes, hours, days of the month, months, weekdays and years, from EventBridge's user guide.
_RANGES: tuple[tuple[int, int, Mapping[str, int]], ...] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, _MONTHS),
    (1, 7, _WEEKDAYS),
    (1970, 2199, {}),
)
_ANY = "?"
# 29 February occurs at least once in eight years.
_LOOKED_BACK_DAYS = 8 * 366


class Every(msgspec.Struct, frozen=True):
    """How often something is due, by the date alone.

    Attributes:
        text: as in a rule.
        days: days between two times; None for a cron expression.
        fields: the values that each field of the expression allows, in order; None for ``?``.
    """

    text: str
    days: float | None = None
    fields: tuple[frozenset[int] | None, ...] = ()

    def has_come(self, last: float | None, now: float) -> bool:
        """Return whether it is due again.

        Args:
            last: when it was last done, UNIX seconds; None for never.
            now: UNIX seconds.
        """
        if last is None:
            return True
        if self.days is not None:
            return now - last >= self.days * _DAY
        latest = self.latest(now)
        return latest is not None and latest > last

    def latest(self, now: float) -> float | None:
        """Return the last time of a cron expression up to now; None if there is none in 8 years.

        Args:
            now: UNIX seconds.
        """
        moment = datetime.fromtimestamp(now, UTC)
        for _ in range(_LOOKED_BACK_DAYS):
            if self._is_day(moment):
                found = self._time_of(moment)
                if found is not None:
                    return found.timestamp()
            moment = (moment - timedelta(days=1)).replace(hour=23, minute=59)
        return None

    def _is_day(self, moment: datetime) -> bool:
        _, _, days, months, weekdays, years = self.fields
        wanted = (
            (days, moment.day),
            (months, moment.month),
            (weekdays, moment.isoweekday() % 7 + 1),
            (years, moment.year),
        )
        return all(allowed is None or value in allowed for allowed, value in wanted)

    def _time_of(self, moment: datetime) -> datetime | None:
        """Return the last time of day that the expression allows, up to this one; None if none."""
        minutes, hours = self.fields[0] or frozenset(), self.fields[1] or frozenset()
        for hour in sorted((one for one in hours if one <= moment.hour), reverse=True):
            most = moment.minute if hour == moment.hour else 59
            found = [one for one in minutes if one <= most]
            if found:
                return moment.replace(hour=hour, minute=max(found), second=0, microsecond=0)
        return None


def parse_every(value: object) -> Every:
    """Parse a number of days, or a cron expression.

    Raises:
        ValueError: it is neither.
    """
    if isinstance(value, str):
        return _parse_cron(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError
    if not _LEAST_DAYS <= value <= _MOST_DAYS:
        raise ValueError
    return Every(f"every {value:g} days", float(value))


def _parse_cron(text: str) -> Every:
    found = _CRON.fullmatch(text)
    if found is None:
        raise ValueError
    parts = found.groups()
    # EventBridge rejects an expression with both a day of the month and a day of the week.
    if [parts[2], parts[4]].count(_ANY) != 1 or parts.count(_ANY) != 1:
        raise ValueError(f"{EVERY_ACCEPTED}; one of the two fields of days is ?, no other field")
    fields = tuple(
        None if part == _ANY else _numbers(part, *allowed)
        for part, allowed in zip(parts, _RANGES, strict=True)
    )
    return Every(text, fields=fields)


def _numbers(text: str, least: int, most: int, names: Mapping[str, int]) -> frozenset[int]:
    found: set[int] = set()
    for part in text.upper().split(","):
        match = _PART.fullmatch(part)
        if match is None or (match[1] == "*" and match[2]):
            raise ValueError
        first, last = _ends(match, least, most, names)
        step = int(match[3]) if match[3] else 1
        if step < 1 or not least <= first <= last <= most:
            raise ValueError
        found.update(range(first, last + 1, step))
    return frozenset(found)


def _ends(match: re.Match[str], least: int, most: int, names: Mapping[str, int]) -> tuple[int, int]:
    if match[1] == "*":
        return least, most
    first = _number(match[1], names)
    if match[2]:
        return first, _number(match[2], names)
    # 10/20 is every 20th from 10 on.
    return first, most if match[3] else first


def _number(text: str, names: Mapping[str, int]) -> int:
    if not text.isdecimal() and text not in names:
        raise ValueError
    return names[text] if text in names else int(text)


class QuietHours(tuple[int, int]):
    """A period of each day when nothing may run, in minutes (UTC). It may span midnight."""

    __slots__ = ()

    def holds(self, now: float) -> bool:
        """Return whether a time is within the period.

        Args:
            now: UNIX seconds.
        """
        moment = datetime.fromtimestamp(now, UTC)
        minute = moment.hour * 60 + moment.minute
        start, end = self
        return start <= minute < end if start < end else not end <= minute < start

    @property
    def text(self) -> str:
        """The period as in a rule."""
        start, end = self
        return f"{start // 60:02}:{start % 60:02}-{end // 60:02}:{end % 60:02}"


def parse_hours(value: object) -> tuple[QuietHours, ...]:
    """Parse periods of the day.

    Raises:
        ValueError: they are invalid.
    """
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise ValueError
    return tuple(_read_stretch(one) for one in value)


def _read_stretch(value: object) -> QuietHours:
    if not isinstance(value, str):
        raise ValueError
    found = [_MINUTES.fullmatch(one) for one in value.split("-")]
    match found:
        case [re.Match() as start, re.Match() as end] if start[0] != end[0]:
            return QuietHours(
                int(hour) * 60 + int(minute) for hour, minute in (start.groups(), end.groups())
            )
    raise ValueError
