"""Iceberg partitions: how a new table is partitioned, and which partition an output is in.

Only the footer of an output is read. Its bounds prove a partition if the transform gives both the
same value: an order-preserving transform then gives that value to everything between them.
``bucket`` preserves no order, so both bounds must be the same value.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from pyiceberg.conversions import to_bytes
from pyiceberg.partitioning import (
    UNPARTITIONED_PARTITION_SPEC,
    PartitionField,
    PartitionSpec,
    partition_record_value,
)
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.transforms import (
    BucketTransform,
    IdentityTransform,
    Transform,
    VoidTransform,
    parse_transform,
)
from pyiceberg.typedef import Record
from pyiceberg.types import (
    DateType,
    DoubleType,
    FloatType,
    IcebergType,
    NestedField,
    PrimitiveType,
    TimestampType,
    TimestamptzType,
)

from compactor.errors import InvalidInput
from compactor.escaping import visible
from compactor.settings.partitioning import PartitionBy
from compactor.sinks.table_catalog import TableFile
from compactor.table_formats.dates import applied, text_of
from compactor.table_formats.footer_statistics import Spread, spread

_FIELD = "table_partitioning"
_FIRST_FIELD_ID = 1000
_SPEC_ID = 0
_SHOWN_CHARACTERS = 60
_INSTEAD = (
    "divide the sources as the table is (date_format, depth), take a longer time or none, or change"
    " the partitioning of the table"
)


def spec_of(wanted: Sequence[PartitionBy], schema: Schema) -> PartitionSpec:
    """Return the partitioning of a new table.

    Args:
        wanted: its fields.
        schema: of the table.

    Raises:
        InvalidInput: there is no such column, the transform does not support its type, or
            another column already has the field's name.
    """
    if not wanted:
        return UNPARTITIONED_PARTITION_SPEC
    columns = {one.name: one for one in schema.fields if one.field_type.is_primitive}
    fields = []
    for number, one in enumerate(wanted):
        column = columns.get(one.column)
        if column is None:
            raise InvalidInput(_FIELD, one.text, f"one of the columns {', '.join(columns)}")
        transform = _transform(one, column, list(columns.values()))
        if one.name != one.column and one.name in {each.name for each in schema.fields}:
            accepted = f"outputs without a column {one.name}, as this field of the table is called"
            raise InvalidInput(_FIELD, one.text, accepted)
        fields.append(
            PartitionField(column.field_id, _FIRST_FIELD_ID + number, transform, one.name)
        )
    return PartitionSpec(*fields, spec_id=_SPEC_ID)


def _transform(
    one: PartitionBy, column: NestedField, columns: Sequence[NestedField]
) -> Transform[Any, Any]:
    size = f"[{one.size}]" if one.size else ""
    transform = parse_transform(f"{one.transform}{size}")
    if not _takes(transform, column.field_type):
        fitting = [each.name for each in columns if _takes(transform, each.field_type)]
        accepted = (
            f"a column that {one.transform} takes: {', '.join(fitting) or 'there is none'};"
            f" {column.name} is {column.field_type}"
        )
        raise InvalidInput(_FIELD, one.text, accepted)
    return transform


def _takes(transform: Transform[Any, Any], kind: IcebergType) -> bool:
    return not isinstance(kind, FloatType | DoubleType) and transform.can_transform(kind)


def spec_refusal(metadata: TableMetadata) -> str:
    """Return which partitioning would be accepted instead; empty if this one is supported."""
    schema = metadata.schema()
    for field in metadata.spec().fields:
        kind = schema.find_type(field.source_id)
        if not isinstance(field.transform, VoidTransform) and not _takes(field.transform, kind):
            return (
                "an Iceberg table whose partitions the bounds of a file can prove; this one has"
                f" {field.name}, {field.transform} of a column of type {kind}"
            )
    return ""


def require_names_apart(columns: Sequence[str], metadata: TableMetadata, where: str) -> None:
    """Reject new columns that have the name of a partition field.

    Args:
        columns: of an output.
        metadata: of the table.
        where: the output, for messages.

    Raises:
        InvalidInput: there is such a column.
    """
    known = set(metadata.schema().column_names)
    taken = {field.name for spec in metadata.specs().values() for field in spec.fields}
    for name in columns:
        if name in taken and name not in known:
            accepted = f"outputs without column {name}, as a partition is called; {where} has it"
            raise InvalidInput("schema_evolution", "add_columns", accepted)


def partition_of(file: TableFile, footer: Any, metadata: TableMetadata) -> Record:
    """Return the partition that holds all rows of an output.

    Args:
        file: the output.
        footer: its ``pyarrow.parquet.FileMetaData``.
        metadata: of the table.

    Raises:
        InvalidInput: its rows are in several partitions, or its bounds do not prove which; names
            the column and its bounds.
    """
    schema = metadata.schema()
    return Record(*(_Lies(file, field, schema).at(footer) for field in metadata.spec().fields))


class _Lies:
    """The value of one partition field for an output."""

    def __init__(self, file: TableFile, field: PartitionField, schema: Schema) -> None:
        self._file = file
        self._field = field
        self._schema = schema
        self._column = schema.find_column_name(field.source_id) or ""

    def at(self, footer: Any) -> Any:
        """Return the field's value in the form that manifests have."""
        if isinstance(self._field.transform, VoidTransform):
            return None
        found = spread(footer, self._column)
        if found is None:
            raise self._refused(f"unknown partition: its footer has no bounds of {self._column}")
        if not found.values:
            return None
        if found.nulls:
            reason = f"{self._column} is null in some, and {self._bounds(found)} in others"
            raise self._refused(f"has rows of several: {reason}")
        return self._of_values(found)

    def _of_values(self, found: Spread) -> Any:
        transform = self._field.transform
        kind = self._schema.find_type(self._field.source_id)
        if isinstance(kind, FloatType | DoubleType):
            # Bounds do not include NaN, and do not distinguish 0.0 from -0.0.
            raise self._refused(
                f"unknown partition: {self._column} is {kind}, whose bounds prove none"
            )
        if not transform.can_transform(kind):
            raise self._refused(f"unknown partition: {transform} is not known")
        if isinstance(transform, BucketTransform) and found.least != found.greatest:
            reason = f"{self._column} is {self._bounds(found)}, and {transform} keeps no order"
            raise self._refused(f"unknown partition: {reason}")
        apply = applied(transform, kind)
        least, greatest = (
            apply(partition_record_value(self._field, value, self._schema))
            for value in (found.least, found.greatest)
        )
        if least != greatest:
            raise self._refused(f"has rows of several: {self._column} is {self._bounds(found)}")
        self._require_storable(least, transform.result_type(kind))
        return least

    def _require_storable(self, value: Any, kind: IcebergType) -> None:
        """Check that a commit can store the partition and pyiceberg can name it.

        truncate leaves the range of its type near its end, and names have Python's range of dates.
        """
        transform = self._field.transform
        # Partition fields are primitive (specification, "Partition Transforms").
        assert isinstance(kind, PrimitiveType)  # noqa: S101 - see above
        try:
            to_bytes(kind, value)
        except (OverflowError, ValueError, struct.error):
            raise self._refused(f"lies in {value}, which is no {kind}") from None
        try:
            transform.to_human_string(kind, value)
        except OverflowError:
            name = text_of(transform, kind, value)
            raise self._refused(f"lies in {name}, which pyiceberg cannot name") from None

    def _refused(self, reason: str) -> InvalidInput:
        accepted = (
            f"outputs that lie in one partition each; {self._file.uri} {reason}. Either {_INSTEAD}"
        )
        return InvalidInput(_FIELD, f"{self._field.transform} of {self._column}", accepted)

    def _bounds(self, found: Spread) -> str:
        kind = self._schema.find_type(self._field.source_id)
        least, greatest = _shown(found.least, kind), _shown(found.greatest, kind)
        return least if least == greatest else f"{least} to {greatest}"


def _shown(value: Any, kind: IcebergType) -> str:
    # Only the bounds of these types are numbers that need formatting.
    is_time = isinstance(kind, DateType | TimestampType | TimestamptzType)
    text = visible(text_of(IdentityTransform(), kind, value) if is_time else str(value))
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."
