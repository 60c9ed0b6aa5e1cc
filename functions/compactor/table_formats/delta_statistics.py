"""Statistics of a file in Delta's log (protocol, "Per-file Statistics")."""

from __future__ import annotations

import json
import sys
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyarrow import types as kinds

from compactor.table_formats.footer_statistics import Spread, spread

_LONGEST_TEXT = 64
_SURROGATES, _AFTER_SURROGATES = 0xD800, 0xE000
_DAY, _TIME = date(1970, 1, 1), datetime(1970, 1, 1)  # noqa: DTZ001 - the zone is written apart
_MILLISECOND = timedelta(milliseconds=1)
# Digits of a decimal that a reader keeps which takes numbers in JSON for doubles.
_EXACT_DIGITS = 15


def statistics_of(footer: Any) -> str:
    """Return a file's statistics as JSON: rows; nulls and bounds by column.

    If other columns have bounds, delta-rs takes missing ones for null, and its dataset returns no
    rows for a filter on such a column. So all flat columns have bounds, or none. Characters are
    written as they are, because delta-rs misreads pairs of escapes.

    Args:
        footer: a ``pyarrow.parquet.FileMetaData``.
    """
    nulls: dict[str, int] = {}
    least: dict[str, Any] = {}
    greatest: dict[str, Any] = {}
    is_whole = True
    for column in footer.schema.to_arrow_schema():
        if kinds.is_nested(column.type) or kinds.is_binary(column.type):
            continue
        found = spread(footer, column.name)
        if found is None:
            is_whole = False
            continue
        nulls[column.name] = found.nulls
        if not found.values:
            continue
        bounds = _bounds(found, column.type)
        is_whole = is_whole and None not in bounds
        least[column.name], greatest[column.name] = bounds
    document: dict[str, Any] = {"numRecords": footer.num_rows, "nullCount": nulls}
    if is_whole:
        document |= {"minValues": least, "maxValues": greatest}
    return json.dumps(document, ensure_ascii=False)


def _bounds(found: Spread, kind: pa.DataType) -> tuple[Any, Any]:
    """Return a value that is not greater than any, and one that is not less, in words of JSON.

    Either is None if it is not known. To Spark NaN, which footers leave out, is greater than all
    numbers, so floating-point numbers have no upper bound.
    """
    least, greatest = found.least, found.greatest
    if kinds.is_decimal(kind):
        return _number(least), _number(greatest)
    if kinds.is_date(kind):
        return _day(least), _day(greatest)
    if kinds.is_timestamp(kind):
        # Readers expect milliseconds.
        return _time(least // 1_000, kind), _time(-(-greatest // 1_000), kind)
    if isinstance(least, str):
        return least[:_LONGEST_TEXT], _upper_bound(greatest)
    return (least, greatest) if isinstance(least, int) else (None, None)


def _number(value: Decimal) -> float | None:
    return float(value) if len(value.as_tuple().digits) <= _EXACT_DIGITS else None


def _upper_bound(text: str) -> str:
    """Return a text of limited length that is not less, in the order of code points."""
    if len(text) <= _LONGEST_TEXT:
        return text
    for end in range(_LONGEST_TEXT, 0, -1):
        following = ord(text[end - 1]) + 1
        if following <= sys.maxunicode:
            begin = text[: end - 1]
            return begin + chr(_AFTER_SURROGATES if following == _SURROGATES else following)
    return text


def _day(days: int) -> str | None:
    try:
        return (_DAY + timedelta(days)).isoformat()
    except OverflowError:
        # Readers of the log may not support year 0, or years after 9999.
        return None


def _time(milliseconds: int, kind: pa.DataType) -> str | None:
    try:
        text = (_TIME + milliseconds * _MILLISECOND).isoformat(timespec="milliseconds")
    except OverflowError:
        return None
    return f"{text}Z" if kind.tz is not None else text
