"""Whether the columns of outputs fit those of a Delta table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from deltalake import Schema
from deltalake.schema import ArrayType, Field, MapType, PrimitiveType, StructType, VariantType

from compactor.catalogs import misfits
from compactor.catalogs.misfits import Misfit
from compactor.catalogs.output_footers import require_signed
from compactor.errors import InvalidInput

_Type = ArrayType | MapType | PrimitiveType | StructType | VariantType


def delta_schema(schema: pa.Schema, where: str) -> Schema:
    """Return the columns of an output as Delta types.

    Raises:
        InvalidInput: Delta has no such type.
    """
    for one in schema:
        try:
            require_signed(one.type)
            Schema.from_arrow(pa.schema([one]))
        except Exception:
            accepted = (
                f"outputs with types that Delta has; {where}: column {one.name} is {one.type}"
            )
            raise InvalidInput("table", "delta", accepted) from None
    return Schema.from_arrow(schema)


def require_fit(table: Schema, output: Schema, where: str, *, evolve: bool) -> None:
    """Reject an output whose columns do not fit.

    Args:
        table: columns of the table.
        output: columns of the output.
        where: the output, for messages.
        evolve: top-level columns that the table does not have may be added.

    Raises:
        InvalidInput: names the first column and both types.
    """
    found = _misfits(table.fields, output.fields, "")
    if evolve:
        found = map(_not_added, found)
    misfits.require_fit(found, where, evolve=evolve)


def require_values(table: Schema, footer: Any, where: str) -> None:
    """Reject an output that may lack values that the table requires.

    Raises:
        InvalidInput: names the first such column.
    """
    needed = [
        one.name for one in table.fields if not one.nullable and isinstance(one.type, PrimitiveType)
    ]
    misfits.require_values(needed, footer, where)


def _not_added(one: Misfit) -> Misfit:
    """Mark a nested column as missing in the table, so that it is never added."""
    inner = "." in one.column and not one.table
    return one._replace(table="not there") if inner else one


def merged(table: Schema, output: Schema) -> Schema:
    """Return the columns of the table, followed by the output's new ones."""
    known = {one.name for one in table.fields}
    more = [one for one in output.fields if one.name not in known]
    return Schema([*table.fields, *more]) if more else table


def _misfits(table: list[Field], output: list[Field], path: str) -> Iterator[Misfit]:
    names = {one.name: one for one in table}
    lower = {one.name.lower(): one.name for one in table}
    for one in output:
        column = f"{path}{one.name}"
        there = names.get(one.name)
        if there is not None:
            yield from _unlike(there.type, one.type, column)
        elif one.name.lower() in lower:
            yield Misfit(column, _name(one.type), f"called {lower[one.name.lower()]}")
        else:
            yield Misfit(column, _name(one.type), "")
    for one in table:
        if not one.nullable and not (path == "" and isinstance(one.type, PrimitiveType)):
            yield Misfit(f"{path}{one.name}", "without a value in some rows", "required")


def _unlike(table: _Type, output: _Type, column: str) -> Iterator[Misfit]:
    if isinstance(table, StructType) and isinstance(output, StructType):
        yield from _misfits(table.fields, output.fields, f"{column}.")
    elif isinstance(table, ArrayType) and isinstance(output, ArrayType):
        yield from _unlike(table.element_type, output.element_type, f"{column}.element")
    elif isinstance(table, MapType) and isinstance(output, MapType):
        yield from _unlike(table.key_type, output.key_type, f"{column}.key")
        yield from _unlike(table.value_type, output.value_type, f"{column}.value")
    elif _name(table) != _name(output):
        yield Misfit(column, _name(output), _name(table))


def _name(kind: _Type) -> str:
    return str(kind.type)


def names_of(columns: Schema) -> list[str]:
    """Return the names of all columns, including nested ones."""
    return list(_names(columns.fields, ""))


def _names(fields: list[Field], path: str) -> Iterator[str]:
    for one in fields:
        yield f"{path}{one.name}"
        yield from _names_within(one.type, f"{path}{one.name}")


def _names_within(kind: _Type, path: str) -> Iterator[str]:
    if isinstance(kind, StructType):
        yield from _names(kind.fields, f"{path}.")
    elif isinstance(kind, ArrayType):
        yield from _names_within(kind.element_type, f"{path}.element")
    elif isinstance(kind, MapType):
        yield from _names_within(kind.key_type, f"{path}.key")
        yield from _names_within(kind.value_type, f"{path}.value")
