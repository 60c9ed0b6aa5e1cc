"""The columns of a Delta table's data files, and why a worker cannot write a table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec
import pyarrow as pa

from compactor.table_formats.delta_actions import Metadata, Protocol

# Version 7 lists its features; those of lower versions are all known.
_WITH_FEATURES = 7
# Features by which a rewrite that changes no row writes nothing else (protocol, "Writer Version
# Requirements"). Others demand row ids, clustering, other commits or other types.
_WRITTEN = {
    "allowColumnDefaults",
    "appendOnly",
    "changeDataFeed",
    "checkConstraints",
    "columnMapping",
    "deletionVectors",
    "generatedColumns",
    "identityColumns",
    "invariants",
    "timestampNtz",
    "v2Checkpoint",
    "vacuumProtocolCheck",
}
_PHYSICAL, _ID = "delta.columnMapping.physicalName", "delta.columnMapping.id"
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
_TYPES: Mapping[str, pa.DataType] = {
    "string": pa.string(),
    "long": pa.int64(),
    "integer": pa.int32(),
    "short": pa.int16(),
    "byte": pa.int8(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}


def unwritable(protocol: Protocol, metadata: Metadata) -> str:
    """Return why a worker cannot write a table; empty if it can."""
    features = {*(protocol.writer_features or ())}
    unknown = sorted(features - _WRITTEN)
    if unknown:
        return f"it has the feature {unknown[0]}"
    if protocol.min_writer_version > _WITH_FEATURES:
        return f"it is of writer version {protocol.min_writer_version}"
    try:
        arrow_schema(metadata)
    except (KeyError, TypeError, ValueError) as error:
        return f"it has columns of type {error}"
    return ""


def physical_names(metadata: Metadata) -> dict[str, str]:
    """Return the name in the log of each partition column, which column mapping may change."""
    names = {one["name"]: _name(one) for one in _fields(metadata)}
    return {name: names.get(name, name) for name in metadata.partition_columns}


def arrow_schema(metadata: Metadata) -> pa.Schema:
    """Return the columns of data files, by their names and ids there.

    Raises:
        KeyError: a type is not known here; its text is the type.
    """
    fields = _fields(metadata)
    partitioned = {*metadata.partition_columns}
    return pa.schema([_field(one) for one in fields if one["name"] not in partitioned])


def _fields(metadata: Metadata) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = msgspec.json.decode(metadata.schema_string)["fields"]
    return found


def _name(field: Mapping[str, Any]) -> str:
    return str((field.get("metadata") or {}).get(_PHYSICAL) or field["name"])


def _field(field: Mapping[str, Any]) -> pa.Field:
    number = (field.get("metadata") or {}).get(_ID)
    ids = {} if number is None else {b"PARQUET:field_id": f"{number}"}
    # Files may lack a column that has become required since, so none is.
    return pa.field(_name(field), _type(field["type"]), nullable=True, metadata=ids or None)


def _type(kind: Any) -> pa.DataType:
    if isinstance(kind, str):
        decimal = _DECIMAL.fullmatch(kind)
        return pa.decimal128(int(decimal[1]), int(decimal[2])) if decimal else _TYPES[kind]
    if kind["type"] == "struct":
        return pa.struct([_field(one) for one in kind["fields"]])
    if kind["type"] == "array":
        return pa.list_(pa.field("element", _type(kind["elementType"])))
    if kind["type"] == "map":
        return pa.map_(_type(kind["keyType"]), _type(kind["valueType"]))
    raise KeyError(kind["type"])
