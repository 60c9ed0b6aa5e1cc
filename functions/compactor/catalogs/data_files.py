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


class DataFiles:
    """Makes entries of manifests; what follows from the table alone is worked out once.

    Args:
        metadata: of the table, with all columns of the files.
    """

    def __init__(self, metadata: TableMetadata) -> None:
        self._metadata = metadata
        schema = metadata.schema()
        self._known = parquet_path_to_id_mapping(schema)
        self._plan = compute_statistics_plan(schema, metadata.properties)

    def of(self, file: TableFile, footer: Any) -> DataFile:
        """The entry for one output.

        Args:
            file: the output.
            footer: its ``pyarrow.parquet.FileMetaData``.

        Raises:
            InvalidInput: it holds rows of several partitions of the table, or nothing tells.
        """
        statistics = self._statistics(footer)
        return DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=file.uri,
            file_format=FileFormat.PARQUET,
            partition=self._partition(file, footer, statistics),
            file_size_in_bytes=file.size,
            sort_order_id=None,
            spec_id=self._metadata.default_spec_id,
            equality_ids=None,
            key_metadata=None,
            **statistics.to_serialized_dict(),
        )

    def require_one_partition(self, file: TableFile, footer: Any) -> None:
        """Raise as :meth:`of` does, which a table without partitions never does."""
        if self._metadata.spec().fields:
            self._partition(file, footer, self._statistics(footer))

    def _statistics(self, footer: Any) -> Any:
        unknown = frozenset(path for path in _paths(footer) if path not in self._known)
        if unknown:
            # Only readers' pruning hangs on these: a column that is to be added, or lists written
            # by the rules of old writers.
            footer = _Without(footer, unknown)
        return data_file_statistics_from_parquet_metadata(footer, self._plan, self._known)

    def _partition(self, file: TableFile, footer: Any, statistics: Any) -> Record:
        metadata = self._metadata
        _require_told(file, footer, statistics, metadata)
        return _partition(file, statistics, metadata)


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
