"""How a directory of logs is divided into partitions, seen from its paths."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

# Segments of a path, as regular expression and as date format; longer layouts come first.
_YEAR, _MONTH, _DAY, _HOUR = (
    (r"(?P<Y>(?:19|20)\d\d)", "%Y"),
    (r"(?P<m>0[1-9]|1[0-2])", "%m"),
    (r"(?P<d>0[1-9]|[12]\d|3[01])", "%d"),
    (r"(?P<H>[01]\d|2[0-3])", "%H"),
)


def _named(name: str, part: tuple[str, str]) -> tuple[str, str]:
    return f"{name}={part[0]}", f"{name}={part[1]}"


_DATE = ("-".join(p[0] for p in (_YEAR, _MONTH, _DAY)), "%Y-%m-%d")
_HIVE = [_named("year", _YEAR), _named("month", _MONTH), _named("day", _DAY)]
_LAYOUTS: tuple[list[tuple[str, str]], ...] = (
    [_YEAR, _MONTH, _DAY, _HOUR],
    [_YEAR, _MONTH, _DAY],
    [*_HIVE, _named("hour", _HOUR)],
    _HIVE,
    [_named("dt", _DATE), _named("hour", _HOUR)],
    [_named("dt", _DATE)],
    [_named("date", _DATE)],
    [_DATE],
)
# A stray note beside the logs must not hide how the logs themselves are kept.
_ENOUGH = 0.9


@dataclass(frozen=True, slots=True)
class Layout:
    """A way of dividing keys into partitions.

    Attributes:
        parents: segments before the date.
        date_format: None when no date was recognised: all is one partition.
        start, end: first and last date (ISO), None without ``date_format``.
        objects: keys that follow this layout.
    """

    parents: int = 0
    date_format: str | None = None
    start: str | None = None
    end: str | None = None
    objects: int = 0

    def fields(self, root_uri: str) -> dict[str, Any]:
        """The fields of a run's input that say so."""
        if self.date_format is None:
            return {"s3_source_uri": root_uri}
        return {
            "s3_source_uri": root_uri + "*/" * self.parents,
            "date_format": self.date_format,
            "start": self.start,
            "end": self.end,
        }


def layout_of(keys: Iterable[str]) -> Layout:
    """The layout that nine in ten keys have in common; else one partition for all."""
    counts: Counter[tuple[int, str]] = Counter()
    days: dict[tuple[int, str], tuple[str, str]] = {}
    total = 0
    for total, key in enumerate(keys, start=1):  # noqa: B007 - the count is used
        found = _dated(key.split("/")[:-1])
        if found is not None:
            parents, date_format, day = found
            kind = (parents, date_format)
            counts[kind] += 1
            first, last = days.get(kind, (day, day))
            days[kind] = (min(first, day), max(last, day))
    if not counts:
        return Layout(objects=total)
    (kind, objects) = counts.most_common(1)[0]
    if objects < _ENOUGH * total:
        return Layout(objects=total)
    return Layout(*kind, *days[kind], objects)


def _dated(segments: list[str]) -> tuple[int, str, str] | None:
    """Number of parents, date format and day of the first date in a path."""
    for at in range(len(segments)):
        for layout in _LAYOUTS:
            part = segments[at : at + len(layout)]
            if len(part) < len(layout):
                continue
            match = re.fullmatch("/".join(one[0] for one in layout), "/".join(part))
            if match and _exists(match):
                day = f"{match['Y']}-{match['m']}-{match['d']}"
                return at, "/".join(one[1] for one in layout), day
    return None


def _exists(match: re.Match[str]) -> bool:
    try:
        datetime(int(match["Y"]), int(match["m"]), int(match["d"]))  # noqa: DTZ001 - only a date
    except ValueError:
        return False
    return True
