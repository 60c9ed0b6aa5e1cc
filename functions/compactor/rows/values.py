"""The value that a field of JSON or CSV has in a column: one rule for each type of column.

A value that its column does not hold exactly is a misfit, and its record becomes a dead letter.
Only in declared columns does a DECIMAL round, half up, as SQL does, and a TIMESTAMP keeps
microseconds. docs/parquet.md has the table of all answers.

Columns that were inferred are ``exact``: a number of JSON has to be equal to the value in its
column, and a field of CSV has to be the very text that this value is written as.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
import struct
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from types import MappingProxyType
from typing import Any, TypeAlias

import pyarrow as pa

from compactor.rows.json_values import Misfit, Number, json_text, require_names_once
from compactor.rows.schema import near

#: Converts a value that is not null; raises :class:`Misfit`.
Convert: TypeAlias = Callable[[Any], Any]

_EPOCH_DAYS = date(1970, 1, 1).toordinal()
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIMESTAMP = re.compile(
    r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})"
    r"(?:[ T]([0-9]{1,2}):([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]+))?)?"
    r" ?(Z|UTC|GMT|[+-][0-9]{1,2}(?::?[0-9]{2})?)?)?"
)
_MOST_DIGITS = 400
_MOST_AHEAD = 18 * 3_600_000_000
_FIRST_SECOND, _LAST_SECOND = -62_135_596_800, 253_402_300_799
# The only texts that a floating-point column takes from JSON, as Spark does.
_NOT_FINITE: Mapping[str, float] = MappingProxyType(
    {
        "NaN": math.nan,
        "Infinity": math.inf, "+Infinity": math.inf, "+INF": math.inf,
        "-Infinity": -math.inf, "-INF": -math.inf,
    }
)  # fmt: skip
_CSV_NOT_FINITE = MappingProxyType(
    {
        "NaN": math.nan, "Inf": math.inf, "Infinity": math.inf, "+Infinity": math.inf,
        "-Inf": -math.inf, "-Infinity": -math.inf,
    }
)  # fmt: skip
_BOOLEANS = MappingProxyType({"true": True, "false": False})
_DECIMALS = Context(prec=100, rounding=ROUND_HALF_UP)


def json_value(kind: pa.DataType, path: str = "", *, exact: bool = False) -> Convert:
    """Return the conversion of decoded JSON values to what pyarrow takes for a type.

    Args:
        kind: the type of the column.
        path: of the value, for reasons.
        exact: reject numbers that the column rounds, and text in columns of numbers.
    """
    if pa.types.is_struct(kind):
        return _struct(kind, path, exact=exact)
    if pa.types.is_list(kind):
        element = or_null(json_value(kind.value_type, path, exact=exact))

        def array(value: Any) -> list[Any]:
            if type(value) is not list:
                raise Misfit
            return [element(one) for one in value]

        return array
    if pa.types.is_map(kind):
        return _map(kind, path, exact=exact)
    if pa.types.is_floating(kind):
        return _floating(kind, path, exact=exact)
    if pa.types.is_decimal(kind):
        return lambda value: _decimal(value, kind, exact=exact)
    return _json_scalar(kind)


def or_null(convert: Convert) -> Convert:
    """Return a conversion that leaves null alone."""
    return lambda value: None if value is None else convert(value)


def members(
    fields: Iterable[pa.Field], path: str, *, exact: bool = False
) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return the conversion of an object to a dictionary of the fields that have a value."""
    known = {one.name: json_value(one.type, f"{path}{one.name}.", exact=exact) for one in fields}

    def convert(value: dict[str, Any]) -> dict[str, Any]:
        if exact:
            require_names_once(value)
        found = {}
        for name, one in value.items():
            if one is None:
                continue
            take = known.get(name)
            if take is None:
                reason = f"field {path}{near(name, known)} is not in the schema"
                raise Misfit(reason, unknown=not path)
            found[name] = take(one)
        return found

    return convert


def _struct(kind: pa.StructType, path: str, *, exact: bool) -> Convert:
    take = members([kind.field(number) for number in range(kind.num_fields)], path, exact=exact)

    def convert(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise Misfit
        return take(value)

    return convert


def _map(kind: pa.MapType, path: str, *, exact: bool) -> Convert:
    item = or_null(json_value(kind.item_type, path, exact=exact))
    takes_text = pa.types.is_string(kind.key_type)

    def convert(value: Any) -> list[tuple[str, Any]]:
        if not isinstance(value, dict) or not takes_text:
            raise Misfit
        require_names_once(value)
        return [(name, item(one)) for name, one in value.items()]

    return convert


def _floating(kind: pa.DataType, path: str, *, exact: bool) -> Convert:
    column = path.removesuffix(".")
    rounded = f"column {column} is a floating-point number, which does not hold its whole number"
    held = _as_single if pa.types.is_float32(kind) else float

    def convert(value: Any) -> float:
        if type(value) is int:
            try:
                if int(held(value)) == value:
                    return held(value)
            except OverflowError:
                pass
            raise Misfit(rounded)
        if type(value) is Number:
            nearest = _finite(_nearest_single if held is _as_single else float, value)
            if exact and not is_equal(value, nearest):
                raise Misfit
            return nearest
        if type(value) is str and value in _NOT_FINITE and not exact:
            return _NOT_FINITE[value]
        raise Misfit

    return convert


def is_equal(text: str, number: float) -> bool:
    """Return whether a number in JSON is the same number as the shortest text of a double."""
    shortest = repr(number)
    try:
        return text == shortest or Decimal(text) == Decimal(shortest)
    except InvalidOperation:
        # An exponent beyond those of decimals.
        return False


def _finite(nearest: Callable[[str], float], text: str) -> float:
    """Return the number that a text stands for, rounded to the next that the column holds."""
    try:
        found = nearest(text)
    except OverflowError:
        raise Misfit from None
    if math.isinf(found):
        raise Misfit
    return found


def _as_single(value: Any) -> float:
    (found,) = struct.unpack("<f", struct.pack("<f", float(value)))
    return float(found)


def _nearest_single(text: str) -> float:
    wide = float(text)
    if wide and math.isfinite(wide):
        # Rounding twice would round some numbers the wrong way. They are rounded to odd first.
        exact, near_exact = Decimal(text), Decimal(wide)
        (bits,) = struct.unpack("<q", struct.pack("<d", wide))
        if exact != near_exact and not bits & 1:
            wide = math.nextafter(wide, math.inf if exact > near_exact else -math.inf)
    return _as_single(wide)


def _json_scalar(kind: pa.DataType) -> Convert:
    if pa.types.is_string(kind):
        return lambda value: value if type(value) is str else json_text(value)
    if pa.types.is_integer(kind):
        limit = 1 << (kind.bit_width - 1)
        return lambda value: _within(value, limit)
    if pa.types.is_timestamp(kind):
        return _at if kind.tz is not None else lambda value: _timestamp(_text(value), zoned=False)
    return _OTHERS.get(str(kind), _nothing)


def _nothing(_: Any) -> Any:
    raise Misfit


def _text(value: Any) -> str:
    if type(value) is not str:
        raise Misfit
    return value


def _within(value: Any, limit: int) -> int:
    if type(value) is not int or not -limit <= value < limit:
        raise Misfit
    return value


def _boolean(value: Any) -> bool:
    if type(value) is not bool:
        raise Misfit
    return value


def _at(value: Any) -> int:
    """Return the microseconds since 1970 of a timestamp as text, or of whole seconds since then.

    Milliseconds, which many logs have, would be a year after 9999, and are a misfit.
    """
    if type(value) is not int:
        return _timestamp(_text(value), zoned=True)
    if not _FIRST_SECOND <= value <= _LAST_SECOND:
        raise Misfit
    return value * 1_000_000


def _decimal(value: Any, kind: pa.Decimal128Type, *, exact: bool) -> Decimal:
    if type(value) is not int and not (isinstance(value, str) and _NUMBER.fullmatch(value)):
        raise Misfit
    if exact and type(value) is str:
        raise Misfit
    try:
        found = Decimal(value).quantize(Decimal(1).scaleb(-kind.scale), context=_DECIMALS)
    except InvalidOperation:
        raise Misfit from None
    if found and found.adjusted() >= kind.precision - kind.scale:
        raise Misfit
    if exact and found != Decimal(value):
        raise Misfit
    return found


def _from_base64(value: Any) -> bytes:
    try:
        return base64.b64decode(_text(value), validate=True)
    except (binascii.Error, ValueError):
        raise Misfit from None


def _day(value: Any) -> int:
    """Return the days since 1970 of a date such as ``2026-01-31``."""
    text = _text(value)
    if not _DATE.fullmatch(text):
        raise Misfit
    try:
        return date.fromisoformat(text).toordinal() - _EPOCH_DAYS
    except ValueError:
        raise Misfit from None


def _timestamp(text: str, *, zoned: bool) -> int:
    """Return the microseconds since 1970 of a timestamp, which is UTC if it names no zone.

    Args:
        text: a date, or a date and a time, with up to any number of digits after the second, of
            which six are kept.
        zoned: whether a zone may be named.
    """
    found = _TIMESTAMP.fullmatch(text)
    if found is None or (found[8] and not zoned):
        raise Misfit
    year, month, day_, hour, minute, second = (int(found[number] or 0) for number in range(1, 7))
    fraction = int((found[7] or "").ljust(6, "0")[:6])
    try:
        at = datetime(year, month, day_, hour, minute, second, fraction, tzinfo=UTC)
    except ValueError:
        raise Misfit from None
    return (at - _EPOCH) // _MICROSECOND - _offset(found[8])


def _offset(zone: str | None) -> int:
    """Return what a zone is ahead of UTC, in microseconds."""
    if not zone or zone in ("Z", "UTC", "GMT"):
        return 0
    digits = zone[1:].replace(":", "")
    hours, minutes = (digits, "0") if len(digits) < 3 else (digits[:-2], digits[-2:])
    ahead = (int(hours) * 60 + int(minutes)) * 60_000_000
    if int(minutes) > 59 or ahead > _MOST_AHEAD:
        raise Misfit
    return -ahead if zone[0] == "-" else ahead


# By the names that pyarrow has for the types.
_OTHERS: Mapping[str, Convert] = MappingProxyType(
    {"bool": _boolean, "date32[day]": _day, "binary": _from_base64}
)


def csv_value(kind: pa.DataType, name: str, *, exact: bool = False) -> Convert:
    """Return the conversion of CSV fields, which are not empty, to what pyarrow takes for a type.

    Args:
        kind: the type of the column; not a nested one.
        name: of the column, for reasons.
        exact: reject numbers and booleans that are written otherwise than the column's value is.
    """
    if not exact:
        return _csv_scalar(kind, name)
    if pa.types.is_decimal(kind):
        return _as_written(_csv_scalar(kind, name), "{:f}".format)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return _as_written(_csv_scalar(kind, name), repr)
    if pa.types.is_boolean(kind):
        return lambda text: _one_of(_BOOLEANS, text)
    return _csv_scalar(kind, name)


def _as_written(convert: Convert, write: Callable[[Any], str]) -> Convert:
    def written_alike(text: str) -> Any:
        value = convert(text)
        if write(value) != text:
            raise Misfit
        return value

    return written_alike


def _csv_scalar(kind: pa.DataType, name: str) -> Convert:
    if pa.types.is_string(kind):
        return str
    if pa.types.is_integer(kind):
        limit = 1 << (kind.bit_width - 1)
        return lambda text: _within(_whole(text), limit)
    if pa.types.is_floating(kind):
        return _csv_floating(json_value(kind, f"{name}."))
    if pa.types.is_boolean(kind):
        return lambda text: _one_of(_BOOLEANS, text.lower())
    if pa.types.is_binary(kind):
        return str.encode
    return json_value(kind)


def _csv_floating(take: Convert) -> Convert:
    def convert(text: str) -> Any:
        if _INTEGER.fullmatch(text):
            # A column of numbers with fractions has -0.
            return math.copysign(take(_whole(text)), -1 if text.startswith("-") else 1)
        if _NUMBER.fullmatch(text):
            return take(Number(text))
        return _one_of(_CSV_NOT_FINITE, text)

    return convert


def _whole(text: str) -> int:
    # Python refuses to read thousands of digits.
    if len(text) > _MOST_DIGITS or not _INTEGER.fullmatch(text):
        raise Misfit
    return int(text)


def _one_of(known: Mapping[str, Any], text: str) -> Any:
    if text not in known:
        raise Misfit
    return known[text]
