"""Columns as Arrow types: their text in commits, and safe supersets of different schemas.

A schema is a ``pyarrow.Schema``; everything in it is nullable at every depth. Commits and pins
store Spark's JSON of the same schema.

A safe superset loses nothing: columns are added (null where a source lacks them), integers are
widened, ``float`` becomes ``double``, decimals get more digits. Anything else, such as a date that
would become a timestamp in some time zone, is rejected.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import pyarrow as pa
from pyarrow import types as kinds

#: Accepted types of columns with the same name, for error messages.
SUPERSET_ACCEPTED = (
    "one type, or types of which one holds the other without loss (tinyint, smallint, int,"
    " bigint; float, double; decimals of up to 38 digits)"
)
TIMESTAMP = pa.timestamp("us", tz="UTC")
TIMESTAMP_NTZ = pa.timestamp("us")
MOST_DIGITS = 38

# The first name is the one in JSON, the second the one in DDL.
_NAMES = (
    (pa.null(), "void", "void"),
    (pa.bool_(), "boolean", "boolean"),
    (pa.int8(), "byte", "tinyint"),
    (pa.int16(), "short", "smallint"),
    (pa.int32(), "integer", "int"),
    (pa.int64(), "long", "bigint"),
    (pa.float32(), "float", "float"),
    (pa.float64(), "double", "double"),
    (pa.string(), "string", "string"),
    (pa.binary(), "binary", "binary"),
    (pa.date32(), "date", "date"),
    (TIMESTAMP, "timestamp", "timestamp"),
    (TIMESTAMP_NTZ, "timestamp_ntz", "timestamp_ntz"),
)
_JSON_NAMES = {kind: name for kind, name, _ in _NAMES}
_SIMPLE_NAMES = {kind: name for kind, _, name in _NAMES}
_BY_JSON_NAME = MappingProxyType({name: kind for kind, name, _ in _NAMES})
#: Types without others in them, by each of their names.
TYPES_BY_NAME = MappingProxyType({name: kind for kind, *names in _NAMES for name in names})
_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)")
_ORDERS: tuple[tuple[pa.DataType, ...], ...] = (
    (pa.int8(), pa.int16(), pa.int32(), pa.int64()),
    (pa.float32(), pa.float64()),
)


class SchemaClash(Exception):
    """Two types of one column that no type holds without loss.

    Attributes:
        column: its path, with dots before fields of structs.
        one, two: the types, as Spark writes them.
    """

    def __init__(self, column: str, one: str, two: str) -> None:
        super().__init__(f"column {column}: {one} and {two}")
        self.column = column
        self.one = one
        self.two = two


def list_of(element: pa.DataType) -> pa.DataType:
    """Return the type of lists of an element."""
    return pa.list_(pa.field("element", element))


def to_spark_json(schema: pa.Schema) -> str:
    """Return a schema as Spark's ``StructType.json()`` does, byte for byte."""
    return json.dumps(spark_document(schema), separators=(",", ":"), sort_keys=True)


def spark_document(schema: pa.Schema | pa.DataType) -> Mapping[str, Any]:
    """Return a schema, or the type of a struct, as Spark's ``StructType.jsonValue()`` does."""
    return {"type": "struct", "fields": [_field_document(one) for one in schema]}


def _field_document(one: pa.Field) -> Mapping[str, Any]:
    kind = _type_document(one.type)
    return {"name": one.name, "type": kind, "nullable": True, "metadata": {}}


def _type_document(kind: pa.DataType) -> Any:
    if kinds.is_struct(kind):
        return spark_document(kind)
    if kinds.is_list(kind):
        element = _type_document(kind.value_type)
        return {"type": "array", "elementType": element, "containsNull": True}
    if kinds.is_map(kind):
        return {
            "type": "map",
            "keyType": _type_document(kind.key_type),
            "valueType": _type_document(kind.item_type),
            "valueContainsNull": True,
        }
    return _JSON_NAMES[kind] if kind in _JSON_NAMES else _decimal_name(kind)


def _decimal_name(kind: pa.DataType) -> str:
    if not kinds.is_decimal128(kind):
        raise ValueError(f"{kind} is not a type of columns")
    return f"decimal({kind.precision},{kind.scale})"


def from_spark_json(document: str | bytes | Mapping[str, Any]) -> pa.Schema:
    """Return the schema that Spark wrote as JSON, given as text or parsed.

    Raises:
        ValueError: it is not such a schema, or has a type that outputs never have.
    """
    try:
        parsed = document if isinstance(document, Mapping) else json.loads(document)
        if parsed["type"] != "struct":
            raise ValueError(f"its type is {parsed['type']}, not struct")
        return pa.schema(_fields(parsed))
    except (KeyError, TypeError, AttributeError, pa.ArrowException) as error:
        raise ValueError(f"it is not a schema: {error!r}") from error


def _fields(document: Mapping[str, Any]) -> list[pa.Field]:
    found = []
    for one in document["fields"]:
        if "__COLLATIONS" in (one.get("metadata") or {}):
            raise ValueError(f"column {one['name']} has a collation")
        try:
            kind = _type(one["type"])
        except ValueError as error:
            raise ValueError(f"column {one['name']}: {error}") from error
        found.append(pa.field(one["name"], kind))
    return found


def _type(document: Any) -> pa.DataType:
    if isinstance(document, Mapping):
        kind = document["type"]
        if kind == "struct":
            return pa.struct(_fields(document))
        if kind == "array":
            return list_of(_type(document["elementType"]))
        if kind == "map":
            return pa.map_(_type(document["keyType"]), _type(document["valueType"]))
        raise ValueError(f"{kind} is not a type of columns")
    if document in _BY_JSON_NAME:
        return _BY_JSON_NAME[document]
    found = _DECIMAL.fullmatch(document)
    if found is None:
        raise ValueError(f"{document} is not a type of columns")
    return pa.decimal128(int(found[1]), int(found[2]))


def simple(kind: pa.DataType | pa.Schema) -> str:
    """Return a type as Spark's ``simpleString``, such as ``struct<x:int>``."""
    if isinstance(kind, pa.Schema) or kinds.is_struct(kind):
        return f"struct<{','.join(f'{one.name}:{simple(one.type)}' for one in kind)}>"
    if kinds.is_list(kind):
        return f"array<{simple(kind.value_type)}>"
    if kinds.is_map(kind):
        return f"map<{simple(kind.key_type)},{simple(kind.item_type)}>"
    return _SIMPLE_NAMES[kind] if kind in _SIMPLE_NAMES else _decimal_name(kind)


def leaves(kind: pa.DataType | pa.Schema) -> int:
    """Return the number of columns that a Parquet file has for a type."""
    if isinstance(kind, pa.Schema) or kinds.is_struct(kind):
        return sum(leaves(member.type) for member in kind)
    if kinds.is_list(kind):
        return leaves(kind.value_type)
    return leaves(kind.key_type) + leaves(kind.item_type) if kinds.is_map(kind) else 1


def merged(one: pa.Schema, two: pa.Schema) -> pa.Schema:
    """Return the safe superset of two schemas, in the order of the first.

    Raises:
        SchemaClash: there is no safe superset.
    """
    return pa.schema(_merged_fields(list(one), list(two), ""))


def _merged_fields(one: list[pa.Field], two: list[pa.Field], path: str) -> list[pa.Field]:
    _require_distinct(one, path)
    fields = {known.name: known for known in one}
    by_lower = {known.name.lower(): known for known in one}
    for other in two:
        column = f"{path}{other.name}"
        known = fields.get(other.name)
        if known is not None:
            fields[other.name] = known.with_type(widened(known.type, other.type, column))
            continue
        alike = by_lower.get(other.name.lower())
        if alike is not None:
            raise _named_alike(column, alike, other)
        by_lower[other.name.lower()] = fields[other.name] = other
    return list(fields.values())


def _require_distinct(fields: Iterable[pa.Field], path: str) -> None:
    seen: dict[str, pa.Field] = {}
    for one in fields:
        alike = seen.setdefault(one.name.lower(), one)
        if alike is not one:
            raise _named_alike(f"{path}{one.name}", alike, one)


def _named_alike(column: str, one: pa.Field, two: pa.Field) -> SchemaClash:
    first, second = (f"{simple(f.type)} named {f.name}" for f in (one, two))
    return SchemaClash(column, first, second)


def widened(one: pa.DataType, two: pa.DataType, column: str) -> pa.DataType:
    """Return the type that holds the values of both types without loss.

    Raises:
        SchemaClash: there is no such type.
    """
    if one == two:
        return one
    if kinds.is_null(one) or kinds.is_null(two):
        # A column of only nulls, as written by writers without a schema.
        return two if kinds.is_null(one) else one
    wider = _wider_nested(one, two, column) or _wider_number(one, two)
    if wider is None:
        raise SchemaClash(column, simple(one), simple(two))
    return wider


def _wider_nested(one: pa.DataType, two: pa.DataType, column: str) -> pa.DataType | None:
    if kinds.is_struct(one) and kinds.is_struct(two):
        return pa.struct(_merged_fields(list(one), list(two), f"{column}."))
    if kinds.is_list(one) and kinds.is_list(two):
        return list_of(widened(one.value_type, two.value_type, f"{column}.element"))
    if kinds.is_map(one) and kinds.is_map(two):
        key = widened(one.key_type, two.key_type, f"{column}.key")
        return pa.map_(key, widened(one.item_type, two.item_type, f"{column}.value"))
    return None


def _wider_number(one: pa.DataType, two: pa.DataType) -> pa.DataType | None:
    for order in _ORDERS:
        if one in order and two in order:
            return max(one, two, key=order.index)
    if kinds.is_decimal128(one) and kinds.is_decimal128(two):
        scale = max(one.scale, two.scale)
        digits = max(one.precision - one.scale, two.precision - two.scale) + scale
        return pa.decimal128(digits, scale) if digits <= MOST_DIGITS else None
    return None


def near(name: str, names: Iterable[str]) -> str:
    """Return a name, followed by the one of these that differs from it only in case, if any."""
    found = next((one for one in names if one != name and one.lower() == name.lower()), None)
    return name if found is None else f"{name} (beside {found})"
