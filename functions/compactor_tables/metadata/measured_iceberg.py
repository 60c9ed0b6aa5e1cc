"""What an Iceberg table's metadata says of its files, by pyiceberg (0.12).

Read are the table's metadata, the list of manifests of its current snapshot, and each manifest
once. pyiceberg's own reading of an entry leaves out which data file a deletion vector is for.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any
from urllib.parse import quote_plus

from pyiceberg.exceptions import (
    NoSuchIcebergTableError,
    NoSuchNamespaceError,
    NoSuchTableError,
)
from pyiceberg.manifest import (
    ManifestContent,
    ManifestEntryStatus,
)
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.transforms import IdentityTransform, TimeTransform, TruncateTransform
from pyiceberg.types import DecimalType, IcebergType, IntegerType, LongType

from compactor.errors import InvalidInput, TransientStoreError
from compactor.ports import ObjectStore
from compactor.settings.tables import TableAddress
from compactor.sizes import MIB
from compactor.table_formats.answers import translated
from compactor.table_formats.dates import text_of
from compactor.table_formats.iceberg_catalogs import iceberg_catalog
from compactor.table_formats.iceberg_manifests import Deletes, Entry, Reading
from compactor_tables.measures import (
    ICEBERG,
    DataFile,
    PartitionMeasure,
    PartitionValue,
    TableMeasure,
)

_TARGET = "write.target-file-size-bytes"
_USUAL_TARGET = 512 * MIB
_OLDER = "its files are of an older partition spec"
_RANGES = (IdentityTransform, TimeTransform)
_RANGES_OF_NUMBERS = (*_RANGES, TruncateTransform)
_NUMBERS = (DecimalType, IntegerType, LongType)

_Key = tuple[int, tuple[Any, ...]]


def measure_iceberg(address: TableAddress, store: ObjectStore, now: float) -> TableMeasure:
    """Measure a table.

    Args:
        address: of the table.
        store: where its files are.
        now: UNIX seconds.

    Raises:
        InvalidInput: there is no such table, or it may not be read.
        TransientStoreError: the catalog does not answer, or the table moved on while it was read.
    """
    catalog = iceberg_catalog(address, store)
    try:
        with translated(address.text):
            return measured(catalog.load_table(address.name), address.text, now)
    except (NoSuchTableError, NoSuchNamespaceError, NoSuchIcebergTableError):
        raise InvalidInput("table", address.text, "an Iceberg table that is there") from None
    except FileNotFoundError as error:
        # A snapshot that was expired since the catalog named it.
        raise TransientStoreError(f"{address.text}: {error} is gone: measure again") from error


def measured(table: Table, name: str, now: float) -> TableMeasure:
    """Measure a table that is loaded.

    Args:
        table: as pyiceberg loads it.
        name: its address.
        now: UNIX seconds.
    """
    metadata = table.metadata
    snapshot = metadata.current_snapshot()
    manifests = list(snapshot.manifests(table.io)) if snapshot is not None else []
    reading = Reading(name, metadata, table.io)
    of_deletes = list(reading.entries(manifests, ManifestContent.DELETES))
    deletes = Deletes()
    for entry, spec in of_deletes:
        deletes.add(entry, spec)
    found = _Partitions(metadata, deletes)
    for entry, spec in chain(of_deletes, reading.entries(manifests, ManifestContent.DATA)):
        found.add(entry, spec)
    return TableMeasure(
        name=name,
        version=str(snapshot.snapshot_id) if snapshot is not None else "",
        target_bytes=_target(metadata.properties),
        partitions=found.measures(),
        delete_files=deletes.count,
        metadata_files=len(manifests),
        versions=len(metadata.snapshots),
        commits=sorted(one.timestamp_ms / 1_000 for one in metadata.snapshots),
        format=ICEBERG,
        format_version=metadata.format_version,
        spec=metadata.default_spec_id,
        metadata_bytes=sum(one.manifest_length for one in manifests),
        superseded=_superseded(metadata),
        at=now,
    )


def _target(properties: Mapping[str, str]) -> int:
    text = properties.get(_TARGET, "")
    return int(text) if text.isdecimal() and int(text) else _USUAL_TARGET


def _superseded(metadata: TableMetadata) -> list[float]:
    """When the snapshots were made that neither a branch nor a tag names."""
    named = {one.snapshot_id for one in metadata.refs.values()} | {metadata.current_snapshot_id}
    return sorted(
        one.timestamp_ms / 1_000 for one in metadata.snapshots if one.snapshot_id not in named
    )


class _Moments:
    """When snapshots were made, those that are expired by what came next."""

    def __init__(self, metadata: TableMetadata) -> None:
        self._known = {one.snapshot_id: one.timestamp_ms / 1_000 for one in metadata.snapshots}
        self._by_sequence = sorted(
            (one.sequence_number or 0, one.timestamp_ms / 1_000) for one in metadata.snapshots
        )

    def of(self, entry: Entry) -> float | None:
        """UNIX seconds at which the file came, or went, at the latest."""
        if entry.snapshot_id in self._known:
            return self._known[entry.snapshot_id]
        later = bisect_left(self._by_sequence, (entry.written, 0.0))
        return self._by_sequence[later][1] if later < len(self._by_sequence) else None


@dataclass(slots=True)
class _Partition:
    spec: PartitionSpec
    values: tuple[Any, ...]
    files: list[DataFile] = field(default_factory=list)
    changed: float | None = None


class _Partitions:
    """Gathers files by partition."""

    def __init__(self, metadata: TableMetadata, deletes: Deletes) -> None:
        self._names = Names(metadata)
        self._refusals = {
            number: self._names.refusal(spec, metadata.spec())
            for number, spec in metadata.specs().items()
        }
        self._moments = _Moments(metadata)
        self._deletes = deletes
        self._found: dict[_Key, _Partition] = {}

    def add(self, entry: Entry, spec: PartitionSpec) -> None:
        key = (spec.spec_id, entry.partition)
        partition = self._found.get(key)
        if partition is None:
            partition = self._found[key] = _Partition(spec, entry.partition)
        moment = self._moments.of(entry)
        if moment is not None:
            partition.changed = max(moment, partition.changed or 0.0)
        if entry.content == 0 and entry.status != ManifestEntryStatus.DELETED:
            count, deleted = self._deletes.of(entry, spec.spec_id)
            partition.files.append(DataFile(entry.size, entry.rows, deleted, count))

    def measures(self) -> tuple[PartitionMeasure, ...]:
        """Measures of the partitions that have files."""
        made = [self._measure(one) for one in self._found.values() if one.files]
        return tuple(sorted(made, key=lambda one: (one.name, one.spec)))

    def _measure(self, one: _Partition) -> PartitionMeasure:
        name, where = self._names.partition(one.spec, one.values)
        given = tuple(one.files), one.changed, one.spec.spec_id, where
        return PartitionMeasure(name, *given, self._refusals[one.spec.spec_id])


class Names:
    """Columns and values of partitions, for a person and for an engine."""

    def __init__(self, metadata: TableMetadata) -> None:
        self._columns: dict[int, tuple[str, IcebergType]] = {}
        current = metadata.current_schema_id
        # The current names win; what was dropped since has those of an older schema.
        for schema in sorted(metadata.schemas, key=lambda one: one.schema_id == current):
            for number in schema.field_ids:
                named = schema.find_column_name(number)
                if named is not None:
                    self._columns[number] = named, schema.find_type(number)
        # The name of a column that was dropped may be another's today.
        for number in self._columns.keys() - {*metadata.schema().field_ids}:
            named, kind = self._columns[number]
            if named in metadata.schema().column_names:
                self._columns[number] = f"{named}#{number}", kind

    def refusal(self, spec: PartitionSpec, present: PartitionSpec) -> str:
        """Why values of a partition are no condition for a rewrite; empty where they are."""
        if spec.spec_id == present.spec_id:
            return ""
        if spec.is_unpartitioned():
            return f"{_OLDER}, without partitions"
        # Of the present spec, so that what is written lies inside as well.
        kept = {(one.source_id, one.transform) for one in present.fields}
        for one in spec.fields:
            column, kind = self._columns.get(one.source_id, (one.name, None))
            named = f"{_OLDER}, by {one.transform} of {column}"
            if (one.source_id, one.transform) not in kept:
                return f"{named}, which the table's own has not"
            ranges = _RANGES_OF_NUMBERS if isinstance(kind, _NUMBERS) else _RANGES
            if not isinstance(one.transform, ranges):
                return f"{named}, which is no range of its values"
        return ""

    def partition(
        self, spec: PartitionSpec, values: tuple[Any, ...]
    ) -> tuple[str, tuple[PartitionValue, ...]]:
        """Name of a partition, and what its rows have in common.

        Args:
            spec: its division of the table.
            values: of the division's fields, as a manifest has them.
        """
        where = tuple(self._of(spec, values))
        names = (field.name for field in spec.fields)
        name = "/".join(
            f"{quote_plus(field)}={quote_plus('null' if each.value is None else each.value)}"
            for field, each in zip(names, where, strict=True)
        )
        return name, where

    def _of(self, spec: PartitionSpec, values: tuple[Any, ...]) -> Iterator[PartitionValue]:
        for one, value in zip(spec.fields, values, strict=True):
            # A column may be gone, and with it the last schema that had it.
            column, kind = self._columns.get(one.source_id, (one.name, None))
            text = None if value is None else str(value)
            if text is not None and kind is not None:
                # Of a transform's result, so that a day is a day, whatever its column is.
                result = one.transform.result_type(kind)
                text = text_of(one.transform, result, value)
            yield PartitionValue(column, str(one.transform), text)
