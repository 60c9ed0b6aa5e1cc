"""Statistics of columns in the footer of a Parquet file."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

# By a timestamp's unit: multiplier and divisor.
_TO_MICROSECONDS = {"milliseconds": (1_000, 1), "microseconds": (1, 1), "nanoseconds": (1, 1_000)}
_LEAST_LONG, _GREATEST_LONG = -(1 << 63), (1 << 63) - 1


class Spread(NamedTuple):
    """The statistics of one column.

    Attributes:
        values, nulls: number of rows with and without a value.
        least, greatest: bounds of the values, as :func:`bounds_of` returns them.
    """

    values: int = 0
    nulls: int = 0
    least: Any = None
    greatest: Any = None


def spread(metadata: Any, column: str) -> Spread | None:
    """Return a column's statistics over all rows of a file; None if any are missing.

    Args:
        metadata: of the file.
        column: its name; a file without the column has no values of it.
    """
    found = Spread()
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        chunk = _chunk(group, column)
        if chunk is None:
            found = found._replace(nulls=found.nulls + group.num_rows)
            continue
        one = _of_chunk(chunk)
        if one is None:
            return None
        found = _both(found, one)
    return found


def nulls_in(metadata: Any, column: str) -> int | None:
    """Return how many rows of a file have no value in a column; None if statistics do not say.

    Args:
        metadata: of the file.
        column: its name; a file without the column has no values of it.
    """
    found = 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        chunk = _chunk(group, column)
        if chunk is None:
            found += group.num_rows
        elif chunk.is_stats_set and chunk.statistics.has_null_count:
            found += chunk.statistics.null_count
        else:
            return None
    return found


def _chunk(group: Any, column: str) -> Any:
    for number in range(group.num_columns):
        if group.column(number).path_in_schema == column:
            return group.column(number)
    return None


def _of_chunk(chunk: Any) -> Spread | None:
    statistics = chunk.statistics if chunk.is_stats_set else None
    if statistics is None or not statistics.has_null_count:
        return None
    nulls = statistics.null_count
    values = chunk.num_values - nulls
    if not values:
        return Spread(0, nulls)
    bounds = bounds_of(statistics)
    return None if bounds is None else Spread(values, nulls, *bounds)


def bounds_of(statistics: Any) -> tuple[Any, Any] | None:
    """Return the least and greatest value of a chunk; None if they are unknown.

    Dates are days since 1970, and timestamps microseconds, because Python supports neither year 0
    nor years after 9999, and ``9999-12-31T23:59:59-05:00`` is a common end of time.

    Args:
        statistics: of a chunk that has values.
    """
    if not statistics.has_min_max:
        return None
    if statistics.logical_type.type == "DATE":
        return statistics.min_raw, statistics.max_raw
    if statistics.logical_type.type != "TIMESTAMP":
        return statistics.min, statistics.max
    unit = json.loads(statistics.logical_type.to_json())["timeUnit"]
    times, per = _TO_MICROSECONDS[unit]
    # Nanoseconds are rounded outwards to microseconds.
    least, greatest = statistics.min_raw * times // per, -(-statistics.max_raw * times // per)
    return (least, greatest) if least >= _LEAST_LONG and greatest <= _GREATEST_LONG else None


def _both(one: Spread, other: Spread) -> Spread:
    values, nulls = one.values + other.values, one.nulls + other.nulls
    if not one.values or not other.values:
        ranged = one if one.values else other
        return Spread(values, nulls, ranged.least, ranged.greatest)
    least, greatest = min(one.least, other.least), max(one.greatest, other.greatest)
    return Spread(values, nulls, least, greatest)
