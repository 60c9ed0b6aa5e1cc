"""An output as a data file of an Iceberg table: its partition, and its statistics for pruning."""

from __future__ import annotations

from typing import Any

from pyiceberg.io.pyarrow import (
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
)
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.table.metadata import TableMetadata

from compactor.catalogs.iceberg_columns import require_field_ids, require_mapped
from compactor.catalogs.iceberg_partitions import partition_of
from compactor.sinks.table_catalog import TableFile
from compactor.table_formats.footer_statistics import bounds_of


class DataFiles:
    """Builds manifest entries. What depends only on the table is computed once.

    Args:
        metadata: of the table, including all columns of the files.
    """

    def __init__(self, metadata: TableMetadata) -> None:
        self._metadata = metadata
        schema = metadata.schema()
        self._schema = schema
        self._names = metadata.name_mapping()
        self._known = parquet_path_to_id_mapping(schema)
        self._plan = compute_statistics_plan(schema, metadata.properties)

    def of(self, file: TableFile, footer: Any) -> DataFile:
        """Return the manifest entry of one output.

        Args:
            file: the output.
            footer: its ``pyarrow.parquet.FileMetaData``.

        Raises:
            InvalidInput: its rows are in several partitions, or its bounds do not prove which; or
                readers would take a column of it for another one.
        """
        require_field_ids(self._schema, footer, file.uri)
        if self._names is not None:
            require_mapped(self._schema, self._names, footer, file.uri)
        statistics = self._statistics(footer)
        return DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=file.uri,
            file_format=FileFormat.PARQUET,
            partition=partition_of(file, footer, self._metadata),
            file_size_in_bytes=file.size,
            sort_order_id=None,
            spec_id=self._metadata.default_spec_id,
            equality_ids=None,
            key_metadata=None,
            **statistics.to_serialized_dict(),
        )

    def _statistics(self, footer: Any) -> Any:
        # Other columns only matter for pruning: they are still to be added to the table, or are
        # lists in the form that old writers used.
        known = frozenset(self._known)
        return data_file_statistics_from_parquet_metadata(
            _Footer(footer, known), self._plan, self._known
        )


def _paths(footer: Any) -> list[str]:
    if not footer.num_row_groups:
        return []
    group = footer.row_group(0)
    return [group.column(number).path_in_schema for number in range(group.num_columns)]


class _Footer:
    """A footer as pyiceberg reads it: the known columns, with bounds that allow any date."""

    def __init__(self, footer: Any, kept: frozenset[str]) -> None:
        self._footer = footer
        self._kept = [n for n, path in enumerate(_paths(footer)) if path in kept]
        self.num_rows = footer.num_rows
        self.num_row_groups = footer.num_row_groups
        self.num_columns = len(self._kept)

    def row_group(self, number: int) -> Any:
        return _Group(self._footer.row_group(number), self._kept)


class _Group:
    def __init__(self, group: Any, kept: list[int]) -> None:
        self._group = group
        self._kept = kept
        self.num_columns = len(kept)

    def column(self, number: int) -> Any:
        return _Chunk(self._group.column(self._kept[number]))


class _Chunk:
    """A column chunk with its statistics replaced."""

    def __init__(self, chunk: Any) -> None:
        self._chunk = chunk

    def __getattr__(self, name: str) -> Any:
        return getattr(self._chunk, name)

    @property
    def statistics(self) -> Any:
        return _Statistics(self._chunk.statistics)


class _Statistics:
    def __init__(self, statistics: Any) -> None:
        self._statistics = statistics
        bounds: tuple[Any, Any] = bounds_of(statistics) or (None, None)
        self.min, self.max = bounds

    def __getattr__(self, name: str) -> Any:
        return getattr(self._statistics, name)
