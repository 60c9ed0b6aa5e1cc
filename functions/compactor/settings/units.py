"""Sizes and times with units: ``128MiB``, ``1GB``, ``10m``, ``30d``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction

from compactor.settings.specs import Reader, number, whole

# Units of the International System, and of IEC 80000-13.
_BYTES: Mapping[str, int] = {
    "b": 1,
    **{f"{unit}b": 1_000**power for power, unit in enumerate("kmgt", 1)},
    **{f"{unit}ib": 1 << 10 * power for power, unit in enumerate("kmgt", 1)},
}
DAY_SECONDS = 86_400
_MINUTE, _HOUR = 60, 3_600
_SECONDS: Mapping[str, int] = {
    "s": 1,
    "m": _MINUTE,
    "h": _HOUR,
    "d": DAY_SECONDS,
    "w": 7 * DAY_SECONDS,
}
# The limit on digits is above what any field accepts.
_WRITTEN = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,18})?) ?([A-Za-z]{1,3})")


def size(minimum: int, maximum: int) -> Reader:
    """Accept bytes in this range: a JSON integer, or a text with a unit; read as int."""
    return _with_units(whole(minimum, maximum), _BYTES, 1, "size such as 128MiB or 1GB")


def seconds(minimum: int, maximum: int) -> Reader:
    """Accept seconds in this range: a JSON integer, or a text with a unit; read as int."""
    return _with_units(whole(minimum, maximum), _SECONDS, 1, "time such as 90s, 10m or 2h")


def whole_days(minimum: int, maximum: int) -> Reader:
    """Accept days in this range: a JSON integer, or a text with a unit; read as int."""
    return _with_units(whole(minimum, maximum), _SECONDS, DAY_SECONDS, "time such as 30d or 2w")


def days(minimum: int, maximum: int) -> Reader:
    """Accept days in this range: a finite JSON number, or a text with a unit; read as float."""
    return _with_units(
        number(minimum, maximum), _SECONDS, DAY_SECONDS, "time such as 36h, 30d or 2w"
    )


def period(longest_days: int) -> Reader:
    """Accept a text with a unit, up to this many days; read as the same text."""

    def read(value: object) -> str:
        if not isinstance(value, str) or seconds_of(value) > longest_days * DAY_SECONDS:
            raise ValueError
        return value.strip()

    return Reader(f"a time such as 36h, 30d or 2w, of at most {longest_days:,}d", read)


def seconds_of(text: str) -> int | float:
    """Return the seconds of a time with a unit.

    Raises:
        ValueError: it is not such a time.
    """
    return _number(text, _SECONDS, 1)


def _with_units(plain: Reader, units: Mapping[str, int], of: int, example: str) -> Reader:
    """Return a reader of a number, or of a text with a unit that stands for one.

    Args:
        plain: reads the number.
        units: units by name, each as a multiple of the smallest.
        of: the unit that the number counts, as a multiple of the smallest.
        example: an example of a text.
    """

    def read(value: object) -> object:
        return plain.read(_number(value, units, of) if isinstance(value, str) else value)

    return Reader(f"{plain.accepted}, or a {example}", read)


def _number(text: str, units: Mapping[str, int], of: int) -> int | float:
    match = _WRITTEN.fullmatch(text.strip())
    if match is None or match[2].lower() not in units:
        raise ValueError
    found = Fraction(match[1]) * units[match[2].lower()] / of
    return int(found) if found.denominator == 1 else float(found)
