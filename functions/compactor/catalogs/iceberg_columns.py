"""Whether the columns of outputs fit those of an Iceberg table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any

import pyarrow as pa
from pyiceberg.exceptions import ResolveError
from pyiceberg.io.pyarrow import UnsupportedPyArrowTypeException, pyarrow_to_schema
from pyiceberg.schema import Schema, index_name_by_id, promote
from pyiceberg.table.name_mapping import NameMapping
from pyiceberg.types import IcebergType, ListType, MapType, StructType

from compactor.catalogs.iceberg_history import mapped_names
from compactor.catalogs.misfits import Misfit
from compactor.catalogs.misfits import require_values as _require_values
from compactor.catalogs.output_footers import require_signed
from compactor.errors import InvalidInput

_FIELD_ID = b"PARQUET:field_id"


def iceberg_schema(schema: pa.Schema, where: str) -> Schema:
    """Return the columns of an output as Iceberg types; their ids are arbitrary.

    Args:
        schema: of the output.
        where: the output, for messages.

    Raises:
        InvalidInput: Iceberg has no such type.
    """
    for one in schema:
        try:
            require_signed(one.type)
            pyarrow_to_schema(_numbered(pa.schema([one])))
        except (UnsupportedPyArrowTypeException, TypeError, ValueError) as error:
            accepted = (
                f"outputs with types that Iceberg has; {where}: column {one.name} is {one.type}"
                f" ({error.__cause__ or error})"
            )
            raise InvalidInput("table", "iceberg", accepted) from None
    return pyarrow_to_schema(_numbered(schema))


def _numbered(schema: pa.Schema) -> pa.Schema:
    """Return the schema with an id for each field, as pyiceberg's conversion requires."""
    numbers = count(1)
    return pa.schema([_with_ids(one, numbers) for one in schema])


def _with_ids(field: pa.Field, numbers: Iterator[int]) -> pa.Field:
    kind, metadata = field.type, {**(field.metadata or {}), _FIELD_ID: str(next(numbers))}
    if pa.types.is_struct(kind):
        kind = pa.struct([_with_ids(kind.field(at), numbers) for at in range(kind.num_fields)])
    elif pa.types.is_map(kind):
        kind = pa.map_(_with_ids(kind.key_field, numbers), _with_ids(kind.item_field, numbers))
    elif pa.types.is_large_list(kind):
        kind = pa.large_list(_with_ids(kind.value_field, numbers))
    elif pa.types.is_fixed_size_list(kind):
        kind = pa.list_(_with_ids(kind.value_field, numbers), kind.list_size)
    elif pa.types.is_list(kind):
        kind = pa.list_(_with_ids(kind.value_field, numbers))
    return field.with_type(kind).with_metadata(metadata)


def misfits(table: StructType, output: StructType, path: str = "") -> Iterator[Misfit]:
    """Yield the output's columns that a table cannot take as is, and those that it lacks."""
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
            problem = "without a value in some rows" if one.name in has else "missing"
            yield Misfit(f"{path}{one.name}", problem, f"required {one.field_type}")


def require_values(table: Schema, footer: Any, where: str) -> None:
    """Reject an output that may lack values that the table requires.

    Raises:
        InvalidInput: names the first such column.
    """
    needed = [one.name for one in table.fields if one.required and one.field_type.is_primitive]
    _require_values(needed, footer, where)


def require_field_ids(table: Schema, footer: Any, where: str) -> None:
    """Reject an output with field ids other than the table's; readers follow them, not names.

    Args:
        table: columns of the table; none if there is no table yet.
        footer: of the output, a ``pyarrow.parquet.FileMetaData``.
        where: the output, for messages.

    Raises:
        InvalidInput: names the first such column.
    """
    columns = list(_columns(footer.schema.to_arrow_schema(), ""))
    if all(field_id is None for _, field_id in columns):
        return
    numbers = {name: number for number, name in index_name_by_id(table).items()}
    for name, field_id in columns:
        if field_id is None or field_id != numbers.get(name):
            accepted = (
                f"outputs without field ids, or with those of the table; column {name} has id"
                f" {field_id} in {where}, and {numbers.get(name)} in the table, so readers would"
                " show other values: compact its sources into another s3_destination_uri"
            )
            raise InvalidInput("table", name, accepted)


def require_mapped(table: Schema, mapping: NameMapping, footer: Any, where: str) -> None:
    """Reject an output with a column that the table's name mapping does not map to its field.

    Raises:
        InvalidInput: names the first such column.
    """
    columns = list(_columns(footer.schema.to_arrow_schema(), ""))
    if any(field_id is not None for _, field_id in columns):
        return
    numbers = {name: number for number, name in index_name_by_id(table).items()}
    mapped = {name: number for number, name in mapped_names(mapping)}
    for name, _ in columns:
        if mapped.get(name) != numbers.get(name):
            accepted = (
                f"a table whose schema.name-mapping.default has column {name} of {where} as field"
                f" {numbers.get(name)}, where it has {mapped.get(name)}: correct that property, or"
                " remove it"
            )
            raise InvalidInput("table", name, accepted)


def _columns(fields: Iterable[pa.Field], path: str) -> Iterator[tuple[str, int | None]]:
    """Yield each column as Iceberg names it, including nested ones, with its field id."""
    for field in fields:
        yield from _column(field, f"{path}{field.name}")


def _column(field: pa.Field, name: str) -> Iterator[tuple[str, int | None]]:
    number = (field.metadata or {}).get(_FIELD_ID)
    yield name, None if number is None else int(number)
    kind = field.type
    if pa.types.is_struct(kind):
        yield from _columns(kind, f"{name}.")
    elif pa.types.is_map(kind):
        yield from _column(kind.key_field, f"{name}.key")
        yield from _column(kind.item_field, f"{name}.value")
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield from _column(kind.value_field, f"{name}.element")


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
