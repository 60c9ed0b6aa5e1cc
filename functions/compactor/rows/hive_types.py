"""The types of columns in Hive's words, as catalogs and query engines have them."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pyarrow as pa
from pyarrow import types as kinds

from compactor.rows.infer import Inferred
from compactor.rows.records import JSON, Block, Kind

_HIVE = {
    pa.bool_(): "boolean", pa.int8(): "tinyint", pa.int16(): "smallint", pa.int32(): "int",
    pa.int64(): "bigint", pa.float32(): "float", pa.float64(): "double", pa.string(): "string",
    pa.binary(): "binary", pa.date32(): "date", pa.large_string(): "string",
    pa.string_view(): "string", pa.large_binary(): "binary", pa.binary_view(): "binary",
}  # fmt: skip
_LISTS = (
    kinds.is_list, kinds.is_large_list, kinds.is_fixed_size_list, kinds.is_list_view,
    kinds.is_large_list_view,
)  # fmt: skip
_PLAIN = re.compile(r"\w+")
# Names in the text of records, which need no quotes in any catalog.
_PLAIN_JSON = re.compile(r"[A-Za-z0-9_]+")
# Glue limits a type to 131,072 characters.
_DEEPEST = 8


class NoHiveType(ValueError):
    """A column has a type that Hive lacks; the message names both."""


def hive_columns(fields: Iterable[pa.Field]) -> dict[str, str]:
    """Return column names, in lower case as in catalogs, with their Hive types.

    Raises:
        NoHiveType: a column has no Hive type, or two columns have the same name.
    """
    found: dict[str, str] = {}
    for one in fields:
        name = one.name.lower()
        if name in found:
            raise NoHiveType(f"two of them are named {name}, but for upper and lower case")
        found[name] = _hive(one.type, one.name)
    return found


def _hive(kind: pa.DataType, column: str) -> str:
    if any(is_list(kind) for is_list in _LISTS):
        return f"array<{_hive(kind.value_type, column)}>"
    if kinds.is_map(kind):
        return f"map<{_hive(kind.key_type, column)},{_hive(kind.item_type, column)}>"
    if kinds.is_struct(kind):
        members = hive_columns(kind.field(number) for number in range(kind.num_fields))
        for name in members:
            if not _PLAIN.fullmatch(name):
                raise NoHiveType(f"{column} has a member named {name!r}, which no type can name")
        return f"struct<{','.join(f'{name}:{inner}' for name, inner in members.items())}>"
    return _scalar(kind, column)


def _scalar(kind: pa.DataType, column: str) -> str:
    if kinds.is_dictionary(kind):
        return _scalar(kind.value_type, column)
    if isinstance(kind, pa.BaseExtensionType):
        return _scalar(kind.storage_type, column)
    if kinds.is_timestamp(kind):
        return "timestamp"
    if kinds.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if kinds.is_fixed_size_binary(kind):
        return "binary"
    if kind not in _HIVE:
        raise NoHiveType(f"{column} is {kind}, for which Hive has no type")
    return _HIVE[kind]


def json_columns(records: Iterable[bytes]) -> dict[str, str]:
    """Return column names of JSON records with the Hive types that their own text can be read as.

    The types are those of rows; but what Hive cannot name, what is too deep, and whole numbers that
    are no ``bigint``, which not every reader of JSON takes for decimals, are text.
    """
    inferred = Inferred()
    inferred.add(Block(Kind(JSON), 0, list(records)))
    columns = inferred.columns(pa.schema([]))
    return hive_columns(pa.field(one.name, _read_as(one.type, _DEEPEST)) for one in columns)


def _read_as(kind: pa.DataType, levels: int) -> pa.DataType:
    if kinds.is_list(kind) and levels:
        return pa.list_(_read_as(kind.value_type, levels - 1))
    if kinds.is_struct(kind) and levels:
        members = [kind.field(number) for number in range(kind.num_fields)]
        if all(_PLAIN_JSON.fullmatch(one.name) for one in members):
            inner = [pa.field(one.name, _read_as(one.type, levels - 1)) for one in members]
            return pa.struct(inner)
    return pa.string() if kinds.is_nested(kind) or kinds.is_decimal(kind) else kind
