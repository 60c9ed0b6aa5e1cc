"""The columns of a Parquet table, as Hive types, from the footers of a few of its objects."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import partial

import pyarrow as pa
from pyarrow import types as kinds

from compactor.encoding.parquet_file import open_parquet
from compactor.errors import UnreadableSource
from compactor.model import SourceObject
from compactor.ports import ObjectStore
from compactor.readers.inferred_columns import Column, no_columns

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


class NoHiveType(ValueError):
    """A column has a type that Hive lacks; the message names both."""


def columns_of(objects: Sequence[SourceObject], store: ObjectStore) -> tuple[Column, ...]:
    """Return the columns of all given objects, in order of first appearance.

    Args:
        objects: Parquet objects; unreadable ones are skipped.
        store: where they are. One or two ranges of each are read.

    Raises:
        InvalidInput: none can be read, a column has a type that Hive does not support, or has
            two types.
    """
    found: dict[str, str] = {}
    for one in objects:
        for name, kind in _columns_of(one, store).items():
            known = found.setdefault(name, kind)
            if known != kind:
                raise no_columns(f"{name} is {known} in some objects, and {kind} in {one.key}")
    if not found:
        raise no_columns("no object with a Parquet footer was found")
    return tuple({"name": name, "type": kind} for name, kind in found.items())


def _columns_of(one: SourceObject, store: ObjectStore) -> dict[str, str]:
    try:
        file = open_parquet(partial(store.get_range, one.bucket, one.key), one.size)
        return hive_columns(file.schema_arrow)
    except UnreadableSource:
        return {}
    except NoHiveType as error:
        raise no_columns(f"of {one.key}, {error}") from error


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
