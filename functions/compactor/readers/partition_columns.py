"""The partition columns of a table: their names, and their values for a partition.

A partition's path has one segment for each wildcard segment of the source's URI and for each
segment of the date format, or ``depth`` segments. Each segment is a column, unless it is the same
in all paths. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from compactor.errors import InvalidInput
from compactor.settings.settings import Settings

_FIELD = "reader_partitions"
# A partition column in Hive's form: a name, and everything after the first "=". Columns named
# level1 and so on always hold whole segments.
_NAMED = re.compile(r"(?!level[0-9]+=)([A-Za-z0-9_][A-Za-z0-9_.-]*)=(.*)", re.DOTALL)
_NAMED_IN_FORMAT = re.compile(r"([A-Za-z0-9_]+)=%")
_DIRECTIVE = re.compile(r"%([YmdjH])")
_DIGITS = {"Y": 4, "m": 2, "d": 2, "j": 3, "H": 2}
# The name of a date segment's column, by the finest directive in the segment.
_FINEST = (("H", "hour"), ("j", "day_of_year"), ("d", "day"), ("m", "month"), ("Y", "year"))
_MONTHS = 12


class NoColumn(InvalidInput):
    """The table's partition columns differ from those that a partition's path requires."""


@dataclass(frozen=True, slots=True)
class _Level:
    """One segment of every path.

    Attributes:
        pattern: with ``*`` for the part that varies; empty if only its depth is known.
        dates: the date format of this segment; empty if it has none.
    """

    pattern: str = ""
    dates: str = ""

    @property
    def varies(self) -> bool:
        """False for a segment that is the same in all paths."""
        return bool(self.dates) or not self.pattern or "*" in self.pattern

    def named(self, segment: str) -> re.Match[str] | None:
        """Match ``name=value``; a wildcard takes any segment whole."""
        is_whole = "*" in self.pattern and not _NAMED.fullmatch(self.pattern)
        return None if is_whole else _NAMED.fullmatch(segment)


class PartitionColumns:
    """The partition columns of one source's table.

    Args:
        settings: of its runs.
    """

    def __init__(self, settings: Settings) -> None:
        self._given = settings.reader_partitions
        self._dates = settings.date_format or ""
        levels = [_Level(segment) for segment in settings.source.pattern]
        levels += [_Level(dates=one) for one in self._dates.split("/") if one]
        levels += [_Level()] * settings.depth
        self._levels = levels

    def names(self, path: str) -> tuple[str, ...]:
        """Return the column names that any partition's path leads to.

        Raises:
            InvalidInput: ``reader_partitions`` has another number of names, or two names are equal
                in Athena, which ignores case.
        """
        found = [
            _name_of(level, segment, number)
            for number, (level, segment) in enumerate(self._pairs(path), 1)
            if level.varies
        ]
        if self._given and len(self._given) != len(found):
            raise InvalidInput(_FIELD, list(self._given), f"{len(found)} names, one a level")
        names = tuple(one.lower() for one in self._given or found)
        if len(set(names)) < len(names):
            raise InvalidInput(_FIELD, list(self._given), f"names apart, unlike {', '.join(names)}")
        return names

    def values(self, path: str, keys: Sequence[str] = ()) -> tuple[str, ...]:
        """Return a partition's values for these columns.

        For a segment ``name=value`` of a level of ``depth``, the value is used only if the column
        has that name. Otherwise the whole segment is the value, so that no two paths have the same
        values.

        Args:
            path: of the partition.
            keys: column names of its table; by default as :meth:`names` returns them.

        Raises:
            InvalidInput: the path does not have the number of segments that this source's have.
            NoColumn: the table has no column for a segment.
        """
        names = self._fitting(path, keys) if keys else self.names(path)
        varying = [(level, segment) for level, segment in self._pairs(path) if level.varies]
        return tuple(
            _value_of(level, segment, name)
            for (level, segment), name in zip(varying, names, strict=True)
        )

    def _fitting(self, path: str, keys: Sequence[str]) -> tuple[str, ...]:
        """Return a table's column names, if they suit this path.

        Raises:
            NoColumn: they do not.
        """
        names = self.names(path)
        if tuple(keys) != names:
            found = ", ".join(keys) or "none"
            accepted = (
                f"a table partitioned by {', '.join(names)}, not by {found}, for {path}; with"
                " reader_partitions a new table has columns for every path"
            )
            raise NoColumn("reader_table", found, accepted)
        return tuple(keys)

    def ends(self, path: str) -> float | None:
        """Return when the period that a path names ends, UNIX seconds; None if it names none.

        Raises:
            InvalidInput: the path does not have the number of segments that this source's have.
        """
        dates = [segment for level, segment in self._pairs(path) if level.dates]
        return end_of(self._dates, "/".join(dates)) if dates else None

    def _pairs(self, path: str) -> list[tuple[_Level, str]]:
        segments = path.removesuffix("/").split("/") if path else []
        if len(segments) != len(self._levels):
            accepted = f"a path of {len(self._levels)} segments, as date_format and depth say"
            raise InvalidInput("partition", path, accepted)
        return list(zip(self._levels, segments, strict=True))


def end_of(date_format: str, text: str) -> float | None:
    """Return the end (exclusive) of the period that a date format and text name, UNIX seconds.

    Returns:
        None for a text that no time formats to.
    """
    pattern, seen = "", ""
    for literal, letter in _pieces(date_format):
        pattern += re.escape(literal)
        if letter:
            pattern += rf"(\d{{{_DIGITS[letter]}}})"
            seen += letter
    match = re.fullmatch(pattern, text)
    if match is None:
        return None
    values: dict[str, int] = {}
    for letter, found in zip(seen, match.groups(), strict=True):
        if values.setdefault(letter, int(found)) != int(found):
            return None
    try:
        return _end(values)
    except (ValueError, OverflowError):
        return None


def _pieces(date_format: str) -> Sequence[tuple[str, str]]:
    """Return (literal before it, letter) for each directive, then (rest of the format, "")."""
    found, start = [], 0
    for match in _DIRECTIVE.finditer(date_format):
        found.append((date_format[start : match.start()], match[1]))
        start = match.end()
    return [*found, (date_format[start:], "")]


def _end(values: dict[str, int]) -> float:
    year, month = values["Y"], values.get("m", 1)
    if "j" in values:
        start = datetime(year, 1, 1, tzinfo=UTC) + timedelta(days=values["j"] - 1)
    else:
        start = datetime(year, month, values.get("d", 1), tzinfo=UTC)
    if "H" in values:
        end = start + timedelta(hours=values["H"] + 1)
    elif values.keys() & {"d", "j"}:
        end = start + timedelta(days=1)
    elif "m" in values:
        end = datetime(year + month // _MONTHS, month % _MONTHS + 1, 1, tzinfo=UTC)
    else:
        end = datetime(year + 1, 1, 1, tzinfo=UTC)
    return end.timestamp()


def _name_of(level: _Level, segment: str, number: int) -> str:
    if level.dates:
        named = _NAMED_IN_FORMAT.match(level.dates)
        return named[1] if named else _date_name(level.dates)
    named = level.named(segment)
    return named[1] if named else f"level{number}"


def _date_name(dates: str) -> str:
    letters = set(_DIRECTIVE.findall(dates))
    if letters >= {"Y", "m", "d"} and "H" not in letters:
        return "date"
    return next(name for letter, name in _FINEST if letter in letters)


def _value_of(level: _Level, segment: str, name: str) -> str:
    named = level.named(segment)
    is_below_source = not level.pattern and not level.dates
    if named is None or (is_below_source and named[1].lower() != name):
        return segment
    return named[2]


def keys_of(table: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of a table's partition columns."""
    return tuple(one["Name"] for one in table.get("PartitionKeys") or [])
