"""Converts Arrow values, as read from a Parquet object, to the types of an output."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as kinds

from compactor.rows.parquet_types import is_any_list


def conformed_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the same rows with the columns of a superset; missing columns are null.

    Raises:
        pyarrow.ArrowInvalid: a value has no counterpart, such as a timestamp in milliseconds that
            has too many microseconds.
    """
    names = set(batch.schema.names)
    columns = [
        conformed(batch.column(one.name), one.type)
        if one.name in names
        else pa.nulls(batch.num_rows, one.type)
        for one in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def conformed(array: Any, wanted: pa.DataType) -> Any:
    """Return an array's values as a type that holds them; fields that it lacks are null."""
    if array.type == wanted:
        return array
    if kinds.is_dictionary(array.type):
        return conformed(array.dictionary_decode(), wanted)
    if kinds.is_null(array.type):
        return pa.nulls(len(array), wanted)
    for applies, convert in _NESTED:
        if applies(wanted):
            return convert(array, wanted)
    # Text that is not UTF-8 is passed on as it is, as by Spark.
    return array.cast(options=pc.CastOptions(wanted, allow_invalid_utf8=True))


def _struct(array: Any, wanted: pa.DataType) -> Any:
    positions = {one.name: number for number, one in enumerate(array.type)}
    children = [
        conformed(array.field(positions[one.name]), one.type)
        if one.name in positions
        else pa.nulls(len(array), one.type)
        for one in wanted
    ]
    return pa.StructArray.from_arrays(children, fields=list(wanted), mask=_mask(array))


def _list(array: Any, wanted: pa.DataType) -> Any:
    if is_any_list(array.type) and not kinds.is_list(array.type):
        array = array.cast(pa.list_(array.type.value_type))
    start, count, offsets = _span(array)
    values = conformed(array.values.slice(start, count), wanted.value_type)
    return pa.ListArray.from_arrays(offsets, values, type=wanted, mask=_mask(array))


def _map(array: Any, wanted: pa.DataType) -> Any:
    start, count, offsets = _span(array)
    keys = conformed(array.keys.slice(start, count), wanted.key_type)
    values = conformed(array.items.slice(start, count), wanted.item_type)
    return pa.MapArray.from_arrays(offsets, keys, values, type=wanted, mask=_mask(array))


_NESTED = ((kinds.is_struct, _struct), (kinds.is_list, _list), (kinds.is_map, _map))


def _span(array: Any) -> tuple[int, int, Any]:
    """Return where an array's values begin, their number, and offsets that begin at 0."""
    start, end = array.offsets[0].as_py(), array.offsets[-1].as_py()
    return start, end - start, pc.subtract(array.offsets, array.offsets[0])


def _mask(array: Any) -> Any:
    return array.is_null() if array.null_count else None


def decoded_bytes(array: Any) -> int:
    """Return the size of an array in memory once its dictionaries are decoded."""
    kind = array.type
    if kinds.is_dictionary(kind):
        lengths = pc.binary_length(array.dictionary)
        return 4 * len(array) + (pc.sum(lengths.take(array.indices)).as_py() or 0)
    if kinds.is_struct(kind):
        return sum(decoded_bytes(array.field(number)) for number in range(kind.num_fields))
    if is_any_list(kind):
        return 4 * len(array) + decoded_bytes(array.flatten())
    if kinds.is_map(kind):
        start, count, _ = _span(array)
        parts = (part.slice(start, count) for part in (array.keys, array.items))
        return 4 * len(array) + sum(map(decoded_bytes, parts))
    return int(array.nbytes)
