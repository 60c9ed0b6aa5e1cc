"""Finds the date in the levels of a key, in ``date_format``'s directives. All times are UTC."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import NamedTuple


def _level(names: str) -> str:
    """Return what may stand between two numbers: a separator, or a level with one of the names."""
    return rf"(?:[-_.T]?|/(?:(?:{names})[-_=.]?)?)"


_YEARS = "year|yyyy|yr|y"
_HOUR = rf"(?:{_level('hour|hh|hr|h')}(?P<H>[01]\d|2[0-3]))?"
_DAY = rf"{_level('day|dd|dom|d')}(?P<d>0[1-9]|[12]\d|3[01]){_HOUR}"
_MONTH = rf"{_level('month|mon|mm|m')}(?P<m>0[1-9]|1[0-2])(?:{_DAY})?"
# Other numbers of four digits are rarely years. The text before it has no digits, and nothing that
# date_format treats as special.
_DATE = re.compile(
    rf"(?P<text>[^0-9/%*]*)(?P<Y>19[7-9]\d|20\d\d)(?:{_MONTH})?(?=/|\Z)", re.IGNORECASE
)
_UNPADDED = re.compile(
    r"(?:^|/)(?:[a-z_]+=)?(?:19|20)\d\d/(?:(?:[a-z_]+=)?\d{1,2}/)?(?:[a-z_]+=)?\d/", re.IGNORECASE
)


class Dated(NamedTuple):
    """The date in some levels of a key.

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


@lru_cache(4096)
def date_in(levels: tuple[str, ...]) -> Dated | None:
    """Return the most precise date, the first of several; None if there is none."""
    path = "/".join(levels)
    starts = (sum(len(level) + 1 for level in levels[:at]) for at in range(len(levels)))
    matches = (_DATE.match(path, start) for start in starts)
    dates = [dated for match in matches if match and (dated := _dated(path, match))]
    return max(dates, key=lambda dated: dated.format.count("%"), default=None)


def is_unpadded(levels: Sequence[str]) -> bool:
    """Return whether a year is followed by a month or day without a leading zero."""
    return _UNPADDED.search("".join(f"{level}/" for level in levels)) is not None


def _dated(path: str, match: re.Match[str]) -> Dated | None:
    numbers = {name: text for name, text in match.groupdict().items() if text and name != "text"}
    name = match["text"].rstrip("=_-. ").lower()
    is_alone = match.end("Y") == len(path) or path[match.end("Y")] == "/"
    if is_alone and (name or len(numbers) == 1) and name not in _YEARS.split("|"):
        # v2026/11, or a number of four digits alone, need not be a year.
        return None
    texts, directives = " ".join(numbers.values()), " ".join(f"%{name}" for name in numbers)
    try:
        begin = datetime.strptime(f"{texts} +0000", f"{directives} %z")
    except ValueError:
        return None
    text, at = "", match.start()
    for directive in numbers:
        text += f"{path[at : match.start(directive)]}%{directive}"
        at = match.end(directive)
    before = path[: match.start()].count("/")
    lead = tuple(path.split("/")[:before])
    return Dated(lead, text, begin.timestamp(), _end(begin, numbers), before + text.count("/") + 1)


def _end(begin: datetime, numbers: dict[str, str]) -> float:
    if "H" in numbers:
        return (begin + timedelta(hours=1)).timestamp()
    if "d" in numbers:
        return (begin + timedelta(days=1)).timestamp()
    if "m" in numbers:
        return (begin + timedelta(days=32)).replace(day=1).timestamp()
    return begin.replace(year=begin.year + 1).timestamp()
