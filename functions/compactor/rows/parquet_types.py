"""The columns of a Parquet object as types of outputs.

A column's type follows from its physical and logical Parquet types only. The Arrow schema that
Arrow's writers add to the footer only leaves objects alone, for types that Parquet has none for,
such as durations: it would make one column of ten objects a dictionary. So do metadata that outputs
would lose, such as coordinate systems.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import types as kinds

from compactor.errors import UnreadableSource
from compactor.model import QuarantineReason
from compactor.rows.schema import (
    MOST_DIGITS,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    from_spark_json,
    list_of,
)

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


# Names of Arrow types for which the Parquet type, by which a column goes, says all.
_CARRIED = (
    kinds.is_null, kinds.is_boolean, kinds.is_integer, kinds.is_floating, kinds.is_decimal,
    kinds.is_string, kinds.is_large_string, kinds.is_string_view, kinds.is_binary,
    kinds.is_large_binary, kinds.is_binary_view, kinds.is_fixed_size_binary, kinds.is_date,
    kinds.is_timestamp, kinds.is_time,
)  # fmt: skip
# What fields and files are known to say besides their types: the Arrow schema and Spark's are
# looked into, the others repeat the columns.
_FIELD_METADATA = frozenset({b"PARQUET:field_id", b"comment", b"doc"})
_SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"
_FILE_METADATA = frozenset(
    {
        b"ARROW:schema", b"pandas", _SPARK_SCHEMA, b"org.apache.spark.version", b"avro.schema",
        b"parquet.avro.schema", b"writer.model.name", b"iceberg.schema", b"parquet.proto.class",
        b"parquet.proto.descriptor",
    }
)  # fmt: skip
_ARROW_TYPE_NAME = b"ARROW:extension:name"
# A group with a logical type, in the text of a Parquet schema.
_ANNOTATED = re.compile(
    r"^ *(?:required|optional|repeated) group field_id=-?\d+ (.*) \((\w+)(?:\(.*\))?\) \{$",
    re.MULTILINE,
)
_GROUP_TYPES = frozenset({"List", "Map"})


def columns_of(parquet: pq.ParquetFile) -> pa.Schema:
    """Return the columns of an object, all nullable.

    Args:
        parquet: opened without Arrow's extension types.

    Raises:
        UnreadableSource: UNSUPPORTED_TYPE, a column has a type or name that outputs cannot have, or
            the file has metadata whose meaning is unknown.
    """
    try:
        _require_known_groups(parquet)
        leaves = (parquet.schema.column(number) for number in range(len(parquet.schema)))
        columns = pa.schema(_fields(parquet.schema_arrow, leaves, ""))
        _require_known(parquet.metadata.metadata or {})
        return columns
    except _Unsupported as error:
        raise UnreadableSource(QuarantineReason.UNSUPPORTED_TYPE, str(error)) from error


class _Unsupported(Exception):
    """A type, name or metadata that outputs cannot have; the message names it."""


def _require_known(metadata: Mapping[bytes, bytes]) -> None:
    unknown = sorted(metadata.keys() - _FILE_METADATA)
    if unknown:
        name = unknown[0].decode(errors="replace")
        raise _Unsupported(f"its file metadata has the key {name!r}")
    if _SPARK_SCHEMA not in metadata:
        return
    try:
        from_spark_json(metadata[_SPARK_SCHEMA])
    except (ValueError, RecursionError) as error:
        raise _Unsupported(f"of its Spark schema, {error}") from error


def _require_known_groups(parquet: pq.ParquetFile) -> None:
    for name, annotation in _ANNOTATED.findall(str(parquet.schema)):
        if annotation not in _GROUP_TYPES and f"{name} ({annotation})" not in _names(
            parquet.schema_arrow
        ):
            raise _Unsupported(f"column {name} is a group ({annotation.upper()})")


def _names(fields: Iterable[pa.Field]) -> set[str]:
    found = set()
    for one in fields:
        found |= {one.name} | _names(one.type.field(n) for n in range(one.type.num_fields))
    return found


def _fields(found: Iterable[pa.Field], leaves: Iterator[Any], path: str) -> list[pa.Field]:
    fields = []
    for one in found:
        column = f"{path}{one.name}"
        metadata = one.metadata or {}
        _require_plain(metadata, column)
        fields.append(pa.field(one.name, _type(one.type, leaves, column)))
    if len({one.name for one in fields}) != len(fields):
        raise _Unsupported(f"two of its columns are both named {_twice(fields)}")
    return fields


def _require_plain(metadata: Mapping[bytes, bytes], column: str) -> None:
    if _ARROW_TYPE_NAME in metadata:
        name = metadata[_ARROW_TYPE_NAME].decode(errors="replace")
        raise _Unsupported(f"column {column} is of the Arrow extension type {name}")
    unknown = sorted(metadata.keys() - _FIELD_METADATA)
    if unknown:
        name = unknown[0].decode(errors="replace")
        raise _Unsupported(f"column {column} has the metadata {name!r}")


def _twice(fields: list[pa.Field]) -> str:
    names = [one.name for one in fields]
    return str(next(name for name in names if names.count(name) > 1))


def _type(found: pa.DataType, leaves: Iterator[Any], column: str) -> pa.DataType:
    if kinds.is_struct(found):
        return pa.struct(_fields(found, leaves, f"{column}."))
    if kinds.is_map(found):
        key, item = _fields((found.key_field, found.item_field), leaves, f"{column}.")
        return pa.map_(key.type, item.type)
    if is_any_list(found):
        (element,) = _fields((found.value_field,), leaves, f"{column}.")
        return list_of(element.type)
    leaf = next(leaves)
    kind = _leaf(leaf)
    noted = found.value_type if kinds.is_dictionary(found) else found
    if isinstance(noted, pa.BaseExtensionType) and noted.extension_name == "arrow.json":
        noted = noted.storage_type
    if not any(is_carried(noted) for is_carried in _CARRIED):
        raise _Unsupported(f"column {leaf.path} is {leaf.physical_type} (ARROW:SCHEMA {noted})")
    return kind


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
    raise _Unsupported(f"column {column.path} is {column.physical_type} ({what})")
