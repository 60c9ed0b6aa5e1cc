"""The columns of a Parquet object as types of outputs.

A column's type follows from its physical and logical Parquet types only. The Arrow schema that
Arrow's writers add to the footer is ignored: it would make one column of ten objects a dictionary,
and another a duration.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import types as kinds

from compactor.rows.schema import MOST_DIGITS, TIMESTAMP, TIMESTAMP_NTZ, field, list_of

_PHYSICAL = {
    "BOOLEAN": pa.bool_(),
    "INT32": pa.int32(),
    "INT64": pa.int64(),
    "INT96": TIMESTAMP,
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "BYTE_ARRAY": pa.binary(),
    "FIXED_LEN_BYTE_ARRAY": pa.binary(),
}
_LOGICAL = {
    "String": pa.string(),
    "Enum": pa.string(),
    "JSON": pa.string(),
    "BSON": pa.binary(),
    "Date": pa.date32(),
    "Null": pa.null(),
}
_SIGNED = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}
# What an error shows of a logical type.
_SHOWN = ("timeUnit", "precision", "scale")
_UNSIGNED = {8: pa.int16(), 16: pa.int32(), 32: pa.int64(), 64: pa.decimal128(20, 0)}


class UnsupportedColumn(ValueError):
    """A column has a type or name that outputs cannot have; the message names both."""


def columns_of(parquet: pq.ParquetFile) -> pa.Schema:
    """Return the columns of an object, all nullable.

    Args:
        parquet: opened without Arrow's extension types.

    Raises:
        UnsupportedColumn: a column's type has no counterpart, or two columns have one name.
    """
    leaves = (parquet.schema.column(number) for number in range(len(parquet.schema)))
    return pa.schema(_fields(parquet.schema_arrow, leaves))


def _fields(found: pa.Schema | pa.DataType, leaves: Iterator[Any]) -> list[pa.Field]:
    fields = [field(one.name, _type(one.type, leaves)) for one in found]
    if len({one.name for one in fields}) != len(fields):
        raise UnsupportedColumn(f"two of its columns are both named {_twice(fields)}")
    return fields


def _twice(fields: list[pa.Field]) -> str:
    names = [one.name for one in fields]
    return str(next(name for name in names if names.count(name) > 1))


def _type(found: pa.DataType, leaves: Iterator[Any]) -> pa.DataType:
    if kinds.is_struct(found):
        return pa.struct(_fields(found, leaves))
    if kinds.is_map(found):
        key = _type(found.key_type, leaves)
        return pa.map_(key, _type(found.item_type, leaves))
    if is_any_list(found):
        return list_of(_type(found.value_type, leaves))
    return _leaf(next(leaves))


def is_any_list(kind: pa.DataType) -> bool:
    """Return whether values of an Arrow type are lists, in any representation."""
    return bool(
        kinds.is_list(kind)
        or kinds.is_large_list(kind)
        or kinds.is_fixed_size_list(kind)
        or kinds.is_list_view(kind)
        or kinds.is_large_list_view(kind)
    )


def _leaf(column: Any) -> pa.DataType:
    logical = json.loads(column.logical_type.to_json())
    name = logical["Type"]
    if name == "None":
        return _PHYSICAL[column.physical_type]
    if name == "Int":
        return (_SIGNED if logical["isSigned"] else _UNSIGNED)[logical["bitWidth"]]
    if name == "Timestamp" and logical["timeUnit"] != "nanoseconds":
        return TIMESTAMP if logical["isAdjustedToUTC"] else TIMESTAMP_NTZ
    if name == "Decimal" and logical["precision"] <= MOST_DIGITS:
        return pa.decimal128(logical["precision"], logical["scale"])
    if name in _LOGICAL:
        return _LOGICAL[name]
    detail = ",".join(f"{key}={value}" for key, value in logical.items() if key in _SHOWN)
    what = f"{name.upper()}({detail})" if detail else name.upper()
    raise UnsupportedColumn(f"column {column.path} is {column.physical_type} ({what})")
