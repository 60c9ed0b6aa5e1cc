"""An output as a data file of an Iceberg table: its partition, and what readers prune by."""

from __future__ import annotations

from typing import Any

from pyiceberg.io.pyarrow import (
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
)
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.partitioning import PartitionField
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.typedef import Record

from compactor.catalogs.parquet import spread
from compactor.errors import InvalidInput
from compactor.tables.port import TableFile


def data_file_of(file: TableFile, footer: Any, metadata: TableMetadata) -> DataFile:
    """The entry of a manifest for one output.

    Args:
        file: the output.
        footer: its ``pyarrow.parquet.FileMetaData``.
        metadata: of the table, with all columns of the file.

    Raises:
        InvalidInput: it holds rows of several partitions of the table, or is laid out in a way
            that Iceberg does not know.
    """
    schema = metadata.schema()
    known = parquet_path_to_id_mapping(schema)
    unknown = frozenset(path for path in _paths(footer) if path not in known)
    if unknown:
        # Only readers' pruning hangs on these: a column that is to be added, or lists written by
        # the rules of old writers.
        footer = _Without(footer, unknown)
    plan = compute_statistics_plan(schema, metadata.properties)
    statistics = data_file_statistics_from_parquet_metadata(footer, plan, known)
    _require_told(file, footer, statistics, metadata)
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=file.uri,
        file_format=FileFormat.PARQUET,
        partition=_partition(file, statistics, metadata),
        file_size_in_bytes=file.size,
        sort_order_id=None,
        spec_id=metadata.default_spec_id,
        equality_ids=None,
        key_metadata=None,
        **statistics.to_serialized_dict(),
    )


def _paths(footer: Any) -> list[str]:
    if not footer.num_row_groups:
        return []
    group = footer.row_group(0)
    return [group.column(number).path_in_schema for number in range(group.num_columns)]


class _Without:
    """A footer without some of its columns."""

    def __init__(self, footer: Any, left_out: frozenset[str]) -> None:
        self._footer = footer
        paths = _paths(footer)
        self._kept = [n for n, path in enumerate(paths) if path not in left_out]
        self.num_rows = footer.num_rows
        self.num_row_groups = footer.num_row_groups
        self.num_columns = len(self._kept)

    def row_group(self, number: int) -> Any:
        return _GroupWithout(self._footer.row_group(number), self._kept)


class _GroupWithout:
    def __init__(self, group: Any, kept: list[int]) -> None:
        self._group = group
        self._kept = kept
        self.num_columns = len(kept)

    def column(self, number: int) -> Any:
        return self._group.column(self._kept[number])


def _require_told(file: TableFile, footer: Any, statistics: Any, metadata: TableMetadata) -> None:
    """What pyiceberg takes for a partition without values must have none, and others no null."""
    for field in metadata.spec().fields:
        name = metadata.schema().find_column_name(field.source_id) or ""
        found = spread(footer, name)
        told = found is not None and (not found.values or field.source_id in _ranges(statistics))
        if found is None or not told or (found.values and found.nulls):
            raise _several(file, field, name)


def _ranges(statistics: Any) -> Any:
    return statistics.column_aggregates


def _partition(file: TableFile, statistics: Any, metadata: TableMetadata) -> Record:
    spec, schema = metadata.spec(), metadata.schema()
    try:
        found: Record = statistics.partition(spec, schema)
    except ValueError:
        field = spec.fields[0]
        name = schema.find_column_name(field.source_id) or field.name
        raise _several(file, field, name) from None
    return found


def _several(file: TableFile, field: PartitionField, name: str) -> InvalidInput:
    accepted = (
        f"a table whose partitions ({field.name}: {field.transform} of {name}) each output lies in"
        f" one of; {file.uri} has rows of several, or nothing tells: divide the sources by"
        " date_format or depth as the table is, or use a table without partitions"
    )
    return InvalidInput("table_partitioning", name, accepted)
