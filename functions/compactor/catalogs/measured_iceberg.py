"""What an Iceberg table's metadata says of its files, by pyiceberg (0.12).

Read are the table's metadata, the list of manifests of its current snapshot, and each manifest
once. pyiceberg's own reading of an entry leaves out which data file a deletion vector is for.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple
from urllib.parse import quote_plus

from pyiceberg.avro.file import AvroFile
from pyiceberg.exceptions import (
    NoSuchIcebergTableError,
    NoSuchNamespaceError,
    NoSuchTableError,
)
from pyiceberg.io import FileIO
from pyiceberg.manifest import (
    MANIFEST_ENTRY_SCHEMAS,
    ManifestContent,
    ManifestEntryStatus,
    ManifestFile,
)
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.transforms import IdentityTransform, TimeTransform, TruncateTransform
from pyiceberg.typedef import Record
from pyiceberg.types import DecimalType, IcebergType, IntegerType, LongType

from compactor.catalogs.answers import translated
from compactor.catalogs.dates import text_of
from compactor.catalogs.iceberg_catalogs import iceberg_catalog
from compactor.errors import IntegrityError, InvalidInput, TransientStoreError
from compactor.maintenance.measures import (
    ICEBERG,
    DataFile,
    PartitionMeasure,
    PartitionValue,
    TableMeasure,
)
from compactor.ports import ObjectStore
from compactor.settings.tables import TableAddress
from compactor.sizes import MIB

_TARGET = "write.target-file-size-bytes"
_USUAL_TARGET = 512 * MIB
_READERS = 8
# Fields of the specification (Iceberg, "Manifests" and "Reserved field ids").
_FILE_PATH_COLUMN = 2147483546
_LOWER, _UPPER = 10, 11
_EQUALITY_DELETES = 2
_OLDER = "its files are of an older partition spec"
_RANGES = (IdentityTransform, TimeTransform)
_RANGES_OF_NUMBERS = (*_RANGES, TruncateTransform)
_NUMBERS = (DecimalType, IntegerType, LongType)
# pyiceberg reads with the second version, which knows nothing of deletion vectors.
_READ_VERSION = 3


class Entry(NamedTuple):
    """One entry of a manifest.

    Attributes:
        sequence: of its data: to what deletes apply.
        written: sequence of the snapshot that added the file.
        referenced: the only data file that a delete file is for; None where it is for several.
        is_vector: it is a deletion vector.
    """

    status: int
    snapshot_id: int | None
    sequence: int
    written: int
    content: int
    path: str
    partition: tuple[Any, ...]
    rows: int
    size: int
    referenced: str | None
    is_vector: bool


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


class Reading:
    """Reads manifests, several at the same time."""

    def __init__(self, name: str, metadata: TableMetadata, io: FileIO) -> None:
        self._name = name
        self._specs = metadata.specs()
        self._io = io

    def entries(
        self,
        manifests: Sequence[ManifestFile],
        content: ManifestContent,
        wanted: Callable[[Entry], bool] = lambda _: True,
    ) -> Iterator[tuple[Entry, PartitionSpec]]:
        """Entries of all manifests of one kind, each with the division of its file.

        Args:
            manifests: of a snapshot.
            content: the kind.
            wanted: others are not kept; called by several threads.
        """

        def read(manifest: ManifestFile) -> tuple[list[Entry], PartitionSpec]:
            return self._entries(manifest, wanted)

        chosen = [one for one in manifests if one.content == content]
        with ThreadPoolExecutor(_READERS) as pool:
            for start in range(0, len(chosen), _READERS):
                for entries, spec in pool.map(read, chosen[start : start + _READERS]):
                    for entry in entries:
                        yield entry, spec

    def _entries(
        self, manifest: ManifestFile, wanted: Callable[[Entry], bool]
    ) -> tuple[list[Entry], PartitionSpec]:
        spec = self._specs.get(manifest.partition_spec_id)
        if spec is None:
            raise IntegrityError(
                f"{self._name}: {manifest.manifest_path} is of partition spec"
                f" {manifest.partition_spec_id}, which the table has not"
            )
        file = self._io.new_input(manifest.manifest_path)
        with AvroFile[Record](file, MANIFEST_ENTRY_SCHEMAS[_READ_VERSION]) as reader:
            return [one for one in (_entry(each, manifest) for each in reader) if wanted(one)], spec


def _entry(record: Record, manifest: ManifestFile) -> Entry:
    status, snapshot_id, sequence, written, data_file = (record[at] for at in range(5))
    content, path, _, partition, rows, size = (data_file[at] for at in range(6))
    referenced, offset = data_file[-3], data_file[-2]
    # What was added by the manifest's own snapshot inherits from it (specification, "Sequence
    # Number Inheritance"); version 1 knows of none of these.
    inherited = manifest.sequence_number or 0
    if content and referenced is None:
        referenced = _bound(data_file[_LOWER], data_file[_UPPER])
    return Entry(
        status,
        snapshot_id if snapshot_id is not None else manifest.added_snapshot_id,
        inherited if sequence is None else sequence,
        inherited if written is None else written,
        content or 0,
        path,
        tuple(partition[at] for at in range(len(partition))),
        rows,
        size,
        referenced,
        offset is not None,
    )


def _bound(lower: Mapping[int, bytes] | None, upper: Mapping[int, bytes] | None) -> str | None:
    """The only data file that a file of position deletes names, by its bounds."""
    first, last = ((one or {}).get(_FILE_PATH_COLUMN) for one in (lower, upper))
    if first is None or first != last:
        return None
    try:
        return bytes(first).decode()
    except UnicodeDecodeError:
        return None


_Key = tuple[int, tuple[Any, ...]]


@dataclass(slots=True)
class _Sequences:
    """Sequence numbers of delete files; of which those from one on apply."""

    numbers: list[int] = field(default_factory=list)
    is_sorted: bool = True

    def add(self, number: int) -> None:
        self.numbers.append(number)
        self.is_sorted = False

    def since(self, number: int) -> int:
        if not self.is_sorted:
            self.numbers.sort()
            self.is_sorted = True
        return len(self.numbers) - bisect_left(self.numbers, number)


class Deletes:
    """Which deletes apply to a data file, as DeleteFileIndex of Iceberg 1.11 has it.

    It is told by bounds of columns, too, where equality deletes are not for a file; that is left
    out here.
    """

    def __init__(self) -> None:
        self.count = 0
        self._vectors: dict[str, tuple[int, int]] = {}
        self._of_files: dict[str, list[tuple[int, int]]] = {}
        self._of_partitions: dict[_Key, _Sequences] = {}
        self._equality: dict[_Key, _Sequences] = {}
        self._everywhere = _Sequences()

    def add(self, entry: Entry, spec: PartitionSpec) -> None:
        if entry.status == ManifestEntryStatus.DELETED:
            return
        self.count += 1
        key = (spec.spec_id, entry.partition)
        if entry.content == _EQUALITY_DELETES:
            if spec.is_unpartitioned():
                self._everywhere.add(entry.sequence)
            else:
                self._equality.setdefault(key, _Sequences()).add(entry.sequence)
        elif entry.is_vector and entry.referenced is not None:
            self._vectors[entry.referenced] = entry.sequence, entry.rows
        elif entry.referenced is not None:
            self._of_files.setdefault(entry.referenced, []).append((entry.sequence, entry.rows))
        else:
            self._of_partitions.setdefault(key, _Sequences()).add(entry.sequence)

    def of(self, entry: Entry, spec_id: int) -> tuple[int, int]:
        """How many apply, and how many rows those take that are for this file alone."""
        if not self.count:
            return 0, 0
        key = (spec_id, entry.partition)
        # Equality deletes apply to what was there before them.
        shared = self._everywhere.since(entry.sequence + 1)
        if key in self._equality:
            shared += self._equality[key].since(entry.sequence + 1)
        if entry.path in self._vectors:
            # It has taken in all deletes by position.
            return shared + 1, self._vectors[entry.path][1]
        named = self._of_files.get(entry.path, ())
        own = [rows for number, rows in named if number >= entry.sequence]
        if key in self._of_partitions:
            shared += self._of_partitions[key].since(entry.sequence)
        return len(own) + shared, sum(own)

    def newest(self, entry: Entry, spec_id: int) -> int:
        """The highest sequence number of those that apply; 0 where none does."""
        key = (spec_id, entry.partition)
        shared = (self._everywhere, self._equality.get(key), self._of_partitions.get(key))
        numbers = [max(one.numbers) for one in shared if one is not None and one.numbers]
        numbers += [number for number, _ in self._of_files.get(entry.path, ())]
        if entry.path in self._vectors:
            numbers.append(self._vectors[entry.path][0])
        return max(numbers, default=0)


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
        """Those that have files."""
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
