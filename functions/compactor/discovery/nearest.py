"""Which dates below a source have objects, where a run's window has none. Reads only.

Prefixes are listed level by level, those first whose dates can be nearest to the window.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count, islice

from compactor.discovery.search import Search
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings

_MOST_LISTS, _PAGES_OF_ONE = 100, 10
_PARENTS_LOOKED_AT = 16
_DIGITS: Mapping[str, str] = {
    "Y": r"\d{4}",
    "m": r"\d\d",
    "d": r"\d\d",
    "j": r"\d{3}",
    "H": r"\d\d",
}
_FIRST, _LAST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2999, 12, 31, tzinfo=UTC)

_Read = Mapping[str, int]
_Span = tuple[datetime, datetime]
# How far from the window at least, a number that tells equal ones apart, a prefix, its parent, how
# many segments of the format it has, and what those say.
_Known = tuple[timedelta, int, str, str, int, _Read]


@dataclass(frozen=True, slots=True)
class Nearest:
    """What there is where the window has nothing.

    Attributes:
        before: prefix of the last partition before the window, relative to its parent, such as
            ``2026/01/31/``; empty for none.
        after: prefix of the first one after it; empty for none.
        others: prefixes, relative to the source, where those of dates were expected; the first of
            them, and only where no date was found.
    """

    before: str = ""
    after: str = ""
    others: tuple[str, ...] = ()


def nearest(
    settings: Settings, store: ObjectStore, search: Search, window: _Span, shown: int = 3
) -> Nearest:
    """The dates with objects that are nearest to a window without any; by 100 LISTs at most.

    Args:
        settings: with a date format.
        store: where the source is.
        search: of the same source; finds what its wildcards match.
        window: its first instant, and the first after it.
        shown: how many of the other prefixes.

    Raises:
        InvalidInput: the source may not be listed.
    """
    parents = list(islice(search.parents(), _PARENTS_LOOKED_AT))
    levels = _Levels(settings, store)
    start, end = window
    found = Nearest(
        before=_first(levels, parents, (_FIRST, start), start),
        after=_first(levels, parents, (end, _LAST), end),
    )
    if found.before or found.after:
        return found
    root = settings.source.root.prefix
    others = (one.removeprefix(root) for parent in parents for one in levels.below(parent))
    return Nearest(others=tuple(islice(others, shown)))


class _Levels:
    """Lists levels, each once, and no more than so many."""

    def __init__(self, settings: Settings, store: ObjectStore) -> None:
        self._bucket = settings.source.root.bucket
        self._store = store
        self._known: dict[str, tuple[str, ...]] = {}
        self.segments = [_expression(one) for one in (settings.date_format or "").split("/")]

    def below(self, prefix: str) -> tuple[str, ...]:
        if prefix not in self._known:
            if len(self._known) == _MOST_LISTS:
                return ()
            pages = islice(self._store.list_level(self._bucket, prefix), _PAGES_OF_ONE)
            self._known[prefix] = tuple(one for page in pages for one in page.prefixes)
        return self._known[prefix]


def _first(levels: _Levels, parents: list[str], side: _Span, edge: datetime) -> str:
    """The prefix of a date on this side of the window, nearest to its edge; empty for none."""
    order = count()
    waiting: list[_Known] = [
        (timedelta(), next(order), parent, parent, 0, {}) for parent in parents
    ]
    while waiting:
        _, _, prefix, parent, level, read = heapq.heappop(waiting)
        if level == len(levels.segments):
            return prefix.removeprefix(parent)
        for below, more in _dated(levels, prefix, level, read):
            span = _span(more)
            if span is None or span[1] <= side[0] or span[0] >= side[1]:
                continue
            away = max(timedelta(), span[0] - edge, edge - span[1])
            heapq.heappush(waiting, (away, next(order), below, parent, level + 1, more))
    return ""


def _dated(levels: _Levels, prefix: str, level: int, read: _Read) -> Iterator[tuple[str, _Read]]:
    """What is below a prefix and looks like the next segment of the format, and what it says."""
    for below in levels.below(prefix):
        match = levels.segments[level].fullmatch(below[len(prefix) : -1])
        if match is None:
            continue
        said = {name[0]: int(value) for name, value in match.groupdict().items()}
        if all(read.get(name, value) == value for name, value in said.items()):
            yield below, {**read, **said}


def _expression(segment: str) -> re.Pattern[str]:
    """Matches what a segment of a date format stands for; groups begin with its directives."""
    pieces, number = [], count()
    for piece in re.split(r"(%.)", segment):
        if piece[:1] == "%":
            pieces.append(f"(?P<{piece[1]}{next(number)}>{_DIGITS[piece[1]]})")
        else:
            pieces.append(re.escape(piece))
    return re.compile("".join(pieces))


def _span(read: _Read) -> _Span | None:
    """Between which instants the dates lie of which so much is known; None where it is no date."""
    try:
        if "Y" not in read:
            return _FIRST, _LAST
        year = datetime(read["Y"], 1, 1, tzinfo=UTC)
        if "j" in read:
            start, length = year + timedelta(days=read["j"] - 1), timedelta(days=1)
        elif "m" not in read:
            start, length = year, datetime(read["Y"] + 1, 1, 1, tzinfo=UTC) - year
        elif "d" not in read:
            start = year.replace(month=read["m"])
            length = (start + timedelta(days=31)).replace(day=1) - start
        else:
            start, length = year.replace(month=read["m"], day=read["d"]), timedelta(days=1)
        if "H" in read and length == timedelta(days=1):
            start, length = start.replace(hour=read["H"]), timedelta(hours=1)
    except (ValueError, OverflowError):
        return None
    return start, start + length
