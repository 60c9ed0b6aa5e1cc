"""Finds dates in the levels of a key, in ``date_format``'s directives. Pure; all times are UTC."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache

# Dates of logs; other numbers of four digits are mostly outside 1970 to 2100.
_FIRST_YEAR, _LAST_YEAR = 1970, 2100
_YEAR, _MONTH, _DAY, _HOUR = r"(?P<Y>\d{4})", r"(?P<m>\d\d)", r"(?P<d>\d\d)", r"(?P<H>\d\d)"
_OF_YEAR = r"(?P<j>\d{3})"
_FORMS = tuple(
    re.compile(form)
    for form in (
        rf"{_YEAR}(?P<s>[-_.]?){_MONTH}(?P=s){_DAY}(?:[-_.T]?{_HOUR})?",
        rf"{_DAY}(?P<s>[-_.]){_MONTH}(?P=s){_YEAR}",
        rf"{_MONTH}(?P<s>[-_.]){_DAY}(?P=s){_YEAR}",
        rf"{_YEAR}[-_.]?{_MONTH}",
        rf"{_YEAR}[-_.]?{_OF_YEAR}",
        rf"{_MONTH}[-_.]{_DAY}",
        *(_YEAR, _MONTH, _DAY, _HOUR, _OF_YEAR),
    )
)
# Common names of levels that have one number of a date.
_NAMES: Mapping[str, frozenset[str]] = {
    "Y": frozenset(("year", "yyyy", "yr", "y")),
    "m": frozenset(("month", "mm", "mon", "m")),
    "d": frozenset(("day", "dd", "d", "dom")),
    "H": frozenset(("hour", "hh", "hr", "h")),
    "j": frozenset(("doy", "yday", "j")),
}
# Text without digits, and without characters that are special in date_format, then a number.
_NUMBERED = re.compile(r"([^0-9%*]*)([0-9].*)", re.DOTALL)
_UNPADDED = re.compile(
    r"(?:^|/)(?:[a-z_]+=)?(?:19|20)\d\d/(?:(?:[a-z_]+=)?\d{1,2}/)?(?:[a-z_]+=)?\d/", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Dated:
    """One way to read some levels of a key as a date.

    Attributes:
        lead: the levels before the date.
        format: for ``date_format``.
        begin, end: start and end (exclusive) of the period it names, UNIX seconds.
        levels: number of levels up to the end of the date.
    """

    lead: tuple[str, ...]
    format: str
    begin: float
    end: float
    levels: int

    @property
    def precision(self) -> int:
        """Number of different directives in the format."""
        return len(_directives(self.format))

    @property
    def usual(self) -> bool:
        """True if year, month and day are in this order."""
        return is_usual(self.format)


def is_usual(date_format: str) -> bool:
    """Return whether year, month (or day of the year) and day are in this order."""
    order = list(re.findall("%([YmdHj])", date_format))
    return order == sorted(order, key="YmjdH".index)


def readings(levels: Sequence[str]) -> tuple[Dated, ...]:
    """Return the most precise dates that levels can be read as, the usual order first.

    Args:
        levels: of a key below some prefix, without its name.

    Returns:
        Nothing if there is no date that ``date_format`` can express; several if the order of day
        and month is ambiguous.
    """
    found = [
        dated
        for at in range(len(levels))
        for dated in (_dated(levels, at, *one) for one in _grown(levels, at, {}, ()))
        if dated is not None
    ]
    most = max((one.precision for one in found), default=0)
    # In 2026/11/2026-11-25, all three levels belong to the date.
    first = min((len(one.lead) for one in found if one.precision == most), default=0)
    best = {
        one.format: one
        for one in reversed(found)
        if one.precision == most and len(one.lead) == first
    }
    return tuple(sorted(best.values(), key=lambda one: (not one.usual, one.levels)))


def is_unpadded(levels: Sequence[str]) -> bool:
    """Return whether a year is followed by a month or day without a leading zero."""
    return _UNPADDED.search("".join(f"{level}/" for level in levels)) is not None


def _grown(
    levels: Sequence[str], at: int, known: Mapping[str, str], formats: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], Mapping[str, str]]]:
    """Yield all dates that start at a level: the formats of its levels, and the numbers."""
    if formats:
        yield formats, known
    if at == len(levels):
        return
    for form, numbers in _numbers(levels[at]):
        if any(known.get(name, number) != number for name, number in numbers):
            continue
        grown = {**known, **dict(numbers)}
        if len(grown) > len(known) and _in_order(known, grown):
            yield from _grown(levels, at + 1, grown, (*formats, form))


def _in_order(known: Mapping[str, str], grown: Mapping[str, str]) -> bool:
    new = grown.keys() - known.keys()
    if "H" in new and not ("j" in grown or {"m", "d"} <= grown.keys()):
        return False
    if "j" in grown and ("Y" not in grown or "m" in grown):
        return False
    # Day, month and year may come in any order, but with nothing between them.
    return "Y" not in new or not known or {"m", "d"} <= grown.keys()


@lru_cache(4096)
def _numbers(level: str) -> tuple[tuple[str, tuple[tuple[str, str], ...]], ...]:
    """Return the possible formats of one level, each with its numbers by directive."""
    match = _NUMBERED.fullmatch(level)
    if match is None:
        return ()
    literal, body = match.groups()
    name = literal.rstrip("=_-. ").lower()
    found = []
    for form in _FORMS:
        numbers = form.fullmatch(body)
        if numbers is None:
            continue
        groups = {key: one for key, one in numbers.groupdict().items() if key != "s" and one}
        if len(groups) == 1 and name and name not in _NAMES[next(iter(groups))]:
            continue
        text = body
        for key in sorted(groups, key=numbers.start, reverse=True):
            text = f"{text[: numbers.start(key)]}%{key}{text[numbers.end(key) :]}"
        found.append((literal + text, tuple(groups.items())))
    return tuple(found)


def _dated(
    levels: Sequence[str], at: int, formats: tuple[str, ...], numbers: Mapping[str, str]
) -> Dated | None:
    if "Y" not in numbers or ("d" in numbers and "m" not in numbers):
        return None
    if len(numbers) == 1 and formats[0] == "%Y":
        # A number of four digits alone need not be a year.
        return None
    period = _period(numbers)
    if period is None:
        return None
    used = at + len(formats)
    return Dated(tuple(levels[:at]), "/".join(formats), *period, used)


def _period(numbers: Mapping[str, str]) -> tuple[float, float] | None:
    year = int(numbers["Y"])
    if not _FIRST_YEAR <= year <= _LAST_YEAR:
        return None
    month, day = int(numbers.get("m", 1)), int(numbers.get("d", 1))
    try:
        begin = datetime(year, month, day, int(numbers.get("H", 0)), tzinfo=UTC)
        if "j" in numbers:
            begin += timedelta(days=int(numbers["j"]) - 1)
    except ValueError:
        return None
    if begin.year != year:
        return None
    return begin.timestamp(), _end(begin, numbers).timestamp()


def _end(begin: datetime, numbers: Mapping[str, str]) -> datetime:
    if "H" in numbers:
        return begin + timedelta(hours=1)
    if "d" in numbers or "j" in numbers:
        return begin + timedelta(days=1)
    if "m" in numbers:
        return (begin + timedelta(days=32)).replace(day=1)
    return begin.replace(year=begin.year + 1)


def _directives(date_format: str) -> frozenset[str]:
    return frozenset(re.findall("%([YmdHj])", date_format))
