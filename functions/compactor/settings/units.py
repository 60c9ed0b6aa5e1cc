"""Sizes and times as people write them: ``128MiB``, ``1GB``, ``10m``, ``30d``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction

from compactor.settings.specs import Reader

# Of the International System, and of IEC 80000-13.
_BYTES: Mapping[str, int] = {
    "b": 1,
    **{f"{unit}b": 1_000**power for power, unit in enumerate("kmgt", 1)},
    **{f"{unit}ib": 1 << 10 * power for power, unit in enumerate("kmgt", 1)},
}
_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
_SECONDS: Mapping[str, int] = {"s": 1, "m": _MINUTE, "h": _HOUR, "d": _DAY, "w": 7 * _DAY}
# No field takes as much as a number of this length says.
_WRITTEN = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,18})?) ?([A-Za-z]{1,3})")


def size(minimum: int, maximum: int) -> Reader:
    """Bytes in this range: a JSON integer, or a text with a unit; read as int."""
    accepted = f"a whole number from {minimum:,} to {maximum:,}, or a size such as 128MiB or 1GB"
    return Reader(accepted, lambda value: _whole(_in_units(value, _BYTES), minimum, maximum))


def seconds(minimum: int, maximum: int) -> Reader:
    """Seconds in this range: a JSON integer, or a text with a unit; read as int."""
    accepted = f"a whole number from {minimum:,} to {maximum:,}, or a time such as 90s, 10m or 2h"
    return Reader(accepted, lambda value: _whole(_in_units(value, _SECONDS), minimum, maximum))


def whole_days(minimum: int, maximum: int) -> Reader:
    """Days in this range: a JSON integer, or a text with a unit; read as int."""
    accepted = f"a whole number from {minimum:,} to {maximum:,}, or a time such as 30d or 2w"
    return Reader(accepted, lambda value: _whole(_in_days(value), minimum, maximum))


def days(minimum: int, maximum: int) -> Reader:
    """Days in this range: a finite JSON number, or a text with a unit; read as float."""
    accepted = f"a number from {minimum:,} to {maximum:,}, or a time such as 36h, 30d or 2w"

    def read(value: object) -> float:
        found = _in_days(value)
        if isinstance(found, bool) or not isinstance(found, int | float | Fraction):
            raise ValueError
        # NaN is in no range; whole numbers may be too large for a float.
        if not minimum <= found <= maximum:
            raise ValueError
        return float(found)

    return Reader(accepted, read)


def _in_days(value: object) -> object:
    found = _in_units(value, _SECONDS)
    return found / _DAY if isinstance(found, Fraction) else found


def _in_units(value: object, units: Mapping[str, int]) -> object:
    """What a text with a unit stands for, as a fraction; anything else as it is."""
    if not isinstance(value, str):
        return value
    match = _WRITTEN.fullmatch(value.strip())
    if match is None or match[2].lower() not in units:
        raise ValueError
    return Fraction(match[1]) * units[match[2].lower()]


def _whole(value: object, minimum: int, maximum: int) -> int:
    if isinstance(value, Fraction) and value.denominator == 1:
        value = int(value)
    # bool is a subclass of int, but true is no number of anything.
    if type(value) is not int or not minimum <= value <= maximum:
        raise ValueError
    return value
