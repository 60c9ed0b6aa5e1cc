"""Whether the columns of outputs fit those of an Iceberg table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyiceberg.exceptions import ResolveError
from pyiceberg.io.pyarrow import UnsupportedPyArrowTypeException, _pyarrow_to_schema_without_ids
from pyiceberg.schema import Schema, promote
from pyiceberg.types import IcebergType, ListType, MapType, StructType

from compactor.catalogs.misfits import Misfit
from compactor.catalogs.misfits import require_values as _require_values
from compactor.catalogs.parquet import require_signed
from compactor.errors import InvalidInput


def iceberg_schema(schema: pa.Schema, where: str) -> Schema:
    """The columns of an output as Iceberg has them, without ids.

    Args:
        schema: of the output.
        where: the output, for a person.

    Raises:
        InvalidInput: Iceberg has no such type.
    """
    for one in schema:
        try:
            require_signed(one.type)
            _pyarrow_to_schema_without_ids(pa.schema([one]))
        except (UnsupportedPyArrowTypeException, TypeError, ValueError) as error:
            accepted = (
                f"outputs with types that Iceberg has; {where}: column {one.name} is {one.type}"
                f" ({error.__cause__ or error})"
            )
            raise InvalidInput("table", "iceberg", accepted) from None
    return _pyarrow_to_schema_without_ids(schema)


def misfits(table: StructType, output: StructType, path: str = "") -> Iterator[Misfit]:
    """Every column of an output that a table cannot take as it is, and every one it misses."""
    names = {one.name: one for one in table.fields}
    lower = {one.name.lower(): one.name for one in table.fields}
    for one in output.fields:
        column = f"{path}{one.name}"
        there = names.get(one.name)
        if there is not None:
            yield from _unlike(there.field_type, one.field_type, column)
        elif one.name.lower() in lower:
            yield Misfit(column, str(one.field_type), f"called {lower[one.name.lower()]}")
        else:
            yield Misfit(column, str(one.field_type), "")
    has = {one.name for one in output.fields}
    for one in table.fields:
        if one.required and not (path == "" and one.field_type.is_primitive):
            told = "without a value in some rows" if one.name in has else "missing"
            yield Misfit(f"{path}{one.name}", told, f"required {one.field_type}")


def require_values(table: Schema, footer: Any, where: str) -> None:
    """Refuse an output that may lack values which the table requires.

    Raises:
        InvalidInput: names the first such column.
    """
    needed = [one.name for one in table.fields if one.required and one.field_type.is_primitive]
    _require_values(needed, footer, where)


def _unlike(table: IcebergType, output: IcebergType, column: str) -> Iterator[Misfit]:
    if isinstance(table, StructType) and isinstance(output, StructType):
        yield from misfits(table, output, f"{column}.")
    elif isinstance(table, ListType) and isinstance(output, ListType):
        yield from _unlike(table.element_type, output.element_type, f"{column}.element")
    elif isinstance(table, MapType) and isinstance(output, MapType):
        yield from _unlike(table.key_type, output.key_type, f"{column}.key")
        yield from _unlike(table.value_type, output.value_type, f"{column}.value")
    elif not _promotable(output, table):
        yield Misfit(column, str(output), str(table))


def _promotable(output: IcebergType, table: IcebergType) -> bool:
    if output == table:
        return True
    try:
        promote(output, table)
    except ResolveError:
        return False
    return True
