"""Measures an Iceberg table by its metadata, with pyiceberg (0.12).

Reads the table's metadata, the manifest list of its current snapshot, and each manifest once.
Manifest entries are not read by pyiceberg's own reader, which omits the data file that a deletion
vector applies to.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
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
    DataFileContent,
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
_PARQUET = "PARQUET"
_ENCRYPTION = "encryption.key-id"
# The latest version of the specification that pyiceberg writes manifests of.
_WRITTEN_VERSION = 2
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
        TransientStoreError: the catalog did not answer, or the table changed while it was read.
    """
    with _reading(address):
        return measured(load_iceberg(address, store), address.text, now)


def load_iceberg(address: TableAddress, store: ObjectStore) -> Table:
    """Load a table by its catalog.

    Raises:
        InvalidInput: there is no such table, or it may not be read.
        TransientStoreError: the catalog did not answer, or the table changed while it was read.
    """
    with _reading(address):
        return iceberg_catalog(address, store).load_table(address.name)


@contextmanager
def _reading(address: TableAddress) -> Iterator[None]:
    try:
        with translated(address.text):
            yield
    except (NoSuchTableError, NoSuchNamespaceError, NoSuchIcebergTableError):
        raise _absent(address) from None
    except FileNotFoundError as error:
        # The snapshot has expired since the catalog named it.
        raise TransientStoreError(f"{address.text}: {error} is gone: measure again") from error


def measured(table: Table, name: str, now: float) -> TableMeasure:
    """Measure a loaded table.

    Args:
        table: as loaded by pyiceberg.
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
    spark_only = _spark_only(metadata, of_deletes)
    found = _Partitions(metadata, deletes)
    for entry, spec in chain(of_deletes, reading.entries(manifests, ManifestContent.DATA)):
        found.add(entry, spec)
        if entry.format != _PARQUET:
            spark_only = spark_only or f"it has files of {entry.format}"
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
        spark_only=spark_only,
        at=now,
    )


def _target(properties: Mapping[str, str]) -> int:
    text = properties.get(_TARGET, "")
    return int(text) if text.isdecimal() and int(text) else _USUAL_TARGET


def _spark_only(metadata: TableMetadata, deletes: Iterable[tuple[Entry, PartitionSpec]]) -> str:
    """Return why only Spark can rewrite a table; empty if others can, too."""
    if metadata.format_version > _WRITTEN_VERSION:
        return f"it is of version {metadata.format_version} of Iceberg"
    if _ENCRYPTION in metadata.properties:
        return "its files are encrypted"
    if any(entry.content == DataFileContent.EQUALITY_DELETES for entry, _ in deletes):
        return "it has equality deletes"
    return _sorting(metadata)


def _sorting(metadata: TableMetadata) -> str:
    """Return why a worker cannot keep a table's own order of rows; empty if it has none."""
    order = metadata.sort_order()
    return "" if order.is_unsorted else f"it is sorted by {order.fields[0]}"


def _superseded(metadata: TableMetadata) -> list[float]:
    """Return the creation times of snapshots that no branch or tag names, UNIX seconds, sorted."""
    named = {one.snapshot_id for one in metadata.refs.values()} | {metadata.current_snapshot_id}
    return sorted(
        one.timestamp_ms / 1_000 for one in metadata.snapshots if one.snapshot_id not in named
    )


class _Moments:
    """Creation times of snapshots; an expired one has the time of its oldest known successor."""

    def __init__(self, metadata: TableMetadata) -> None:
        self._known = {one.snapshot_id: one.timestamp_ms / 1_000 for one in metadata.snapshots}
        self._by_sequence = sorted(
            (one.sequence_number or 0, one.timestamp_ms / 1_000) for one in metadata.snapshots
        )

    def of(self, entry: Entry) -> float | None:
        """Return the latest possible time of a file's entry, UNIX seconds; None if unknown."""
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
    """Collects files by partition."""

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
        """Return the measures of the partitions that have files."""
        made = [self._measure(one) for one in self._found.values() if one.files]
        return tuple(sorted(made, key=lambda one: (one.name, one.spec)))

    def _measure(self, one: _Partition) -> PartitionMeasure:
        name, where = self._names.partition(one.spec, one.values)
        given = tuple(one.files), one.changed, one.spec.spec_id, where
        return PartitionMeasure(name, *given, self._refusals[one.spec.spec_id])


class Names:
    """Names of partitions for people, and their columns and values for engines."""

    def __init__(self, metadata: TableMetadata) -> None:
        self._columns: dict[int, tuple[str, IcebergType]] = {}
        current = metadata.current_schema_id
        # Sorted so that names of the current schema win; dropped columns keep older names.
        for schema in sorted(metadata.schemas, key=lambda one: one.schema_id == current):
            for number in schema.field_ids:
                named = schema.find_column_name(number)
                if named is not None:
                    self._columns[number] = named, schema.find_type(number)
        # Another column may have the name of a dropped one today.
        for number in self._columns.keys() - {*metadata.schema().field_ids}:
            named, kind = self._columns[number]
            if named in metadata.schema().column_names:
                self._columns[number] = f"{named}#{number}", kind

    def refusal(self, spec: PartitionSpec, present: PartitionSpec) -> str:
        """Return why a spec's partitions cannot be selected by their values; empty if they can."""
        if spec.spec_id == present.spec_id:
            return ""
        if spec.is_unpartitioned():
            return f"{_OLDER}, without partitions"
        # The current spec must have the same fields, so that rewritten files lie inside as well.
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
        """Return the name of a partition, and the partition values that its rows share.

        Args:
            spec: its partition spec.
            values: of the spec's fields, as in a manifest.
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
            # The column may be dropped, and all schemas that had it removed.
            column, kind = self._columns.get(one.source_id, (one.name, None))
            text = None if value is None else str(value)
            if text is not None and kind is not None:
                # By the type of the transform's result: a day is a date, whatever the column is.
                result = one.transform.result_type(kind)
                text = text_of(one.transform, result, value)
            yield PartitionValue(column, str(one.transform), text)


def _absent(address: TableAddress) -> InvalidInput:
    advice = "check its name, and that this is its catalog"
    message = f"there is no Iceberg table {address.text}: {advice}"
    return InvalidInput("table", address.text, advice, message=message)
