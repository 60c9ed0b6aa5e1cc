"""Reads the footers of outputs concurrently, through the run's own store."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa

from compactor.encoding.parquet_file import open_parquet
from compactor.errors import IntegrityError, InvalidInput, ObjectMissing, UnreadableSource
from compactor.ports import ObjectStore
from compactor.sinks.table_catalog import TableFile

_READERS = 16
# By a timestamp's unit: multiplier and divisor.
_TO_MICROSECONDS = {"milliseconds": (1_000, 1), "microseconds": (1, 1), "nanoseconds": (1, 1_000)}
_LEAST_LONG, _GREATEST_LONG = -(1 << 63), (1 << 63) - 1


@dataclass(slots=True)
class Footers:
    """The footers of outputs, each read once.

    Attributes:
        store: where the outputs are.
    """

    store: ObjectStore
    _known: dict[str, Any] = field(default_factory=dict)

    def of(self, files: Sequence[TableFile]) -> list[Any]:
        """Return a ``pyarrow.parquet.FileMetaData`` for each file.

        Raises:
            InvalidInput: an output is not Parquet.
            IntegrityError: an output is gone, or its row count differs from its commit's.
        """
        waiting = [one for one in files if one.uri not in self._known]
        if not waiting:
            return [self._known[one.uri] for one in files]
        with ThreadPoolExecutor(_READERS) as pool:
            for one, found in zip(waiting, pool.map(self._read, waiting), strict=True):
                self._known[one.uri] = found
        return [self._known[one.uri] for one in files]

    def unreadable(self, files: Sequence[TableFile]) -> dict[TableFile, str]:
        """Return the files whose footer cannot be used, each with the reason.

        Raises:
            IntegrityError: an output is gone.
        """
        found: dict[TableFile, str] = {}
        waiting = [one for one in files if one.uri not in self._known]
        with ThreadPoolExecutor(_READERS) as pool:
            for one, why in zip(waiting, pool.map(self._why_unreadable, waiting), strict=True):
                if why:
                    found[one] = why
        return found

    def _why_unreadable(self, one: TableFile) -> str:
        try:
            self._known[one.uri] = self._read(one)
        except (InvalidInput, _OtherRows) as error:
            return str(error)
        return ""

    def forget(self) -> None:
        """Drop the footers, to free memory."""
        self._known.clear()

    def _read(self, one: TableFile) -> Any:
        read_range = partial(self.store.get_range, one.bucket, one.key)
        try:
            metadata = open_parquet(read_range, one.size).metadata
        except ObjectMissing:
            raise IntegrityError(f"{one.uri} is gone, and is not in the table yet") from None
        except UnreadableSource as error:
            raise _no_parquet(one, error) from None
        if one.rows is not None and metadata.num_rows != one.rows:
            raise _OtherRows(f"{one.uri} has {metadata.num_rows} rows, its commit says {one.rows}")
        return metadata


class _OtherRows(IntegrityError):
    """An output's row count differs from its commit's."""


def _no_parquet(one: TableFile, error: Exception) -> InvalidInput:
    accepted = (
        f"a destination whose outputs are all Parquet; {one.uri} is not"
        f" ({' '.join(str(error).split())})"
    )
    return InvalidInput("s3_destination_uri", one.uri, accepted)


def schemas_of(footers: Sequence[Any]) -> list[tuple[int, pa.Schema]]:
    """Return the distinct schemas, each with the index of the first footer that has it."""
    found: dict[pa.Schema, int] = {}
    for number, footer in enumerate(footers):
        schema = footer.schema.to_arrow_schema().remove_metadata()
        found.setdefault(optional(schema), number)
    return [(number, schema) for schema, number in found.items()]


def optional(schema: pa.Schema) -> pa.Schema:
    """Return the schema without metadata, and with every field optional, also nested ones."""
    return pa.schema([_optional(one) for one in schema])


def _optional(one: pa.Field) -> pa.Field:
    return pa.field(one.name, _optional_inside(one.type), nullable=True)


def _optional_inside(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([_optional(kind.field(n)) for n in range(kind.num_fields)])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(_optional(kind.value_field))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _optional(kind.item_field))
    return kind


def require_signed(kind: pa.DataType) -> None:
    """Reject unsigned integers: both libraries treat them as signed ones, which overflow.

    Raises:
        TypeError: the type is or contains an unsigned integer.
    """
    if pa.types.is_unsigned_integer(kind):
        raise TypeError(f"unsigned numbers ({kind})")
    for number in range(kind.num_fields):
        require_signed(kind.field(number).type)


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
