"""Manifests of an Iceberg table: their entries, and which deletes apply to a data file."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pyiceberg.avro.file import AvroFile
from pyiceberg.io import FileIO
from pyiceberg.manifest import (
    MANIFEST_ENTRY_SCHEMAS,
    ManifestContent,
    ManifestEntryStatus,
    ManifestFile,
)
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.typedef import Record

from compactor.errors import IntegrityError

_READERS = 8
# Field ids of the specification (Iceberg, "Manifests" and "Reserved field ids").
_FILE_PATH_COLUMN = 2147483546
_LOWER, _UPPER = 10, 11
_EQUALITY_DELETES = 2
# By default pyiceberg reads with version 2, which has no deletion vectors.
_READ_VERSION = 3


class Entry(NamedTuple):
    """One entry of a manifest.

    Attributes:
        sequence: data sequence number, which decides which deletes apply.
        written: sequence number of the snapshot that added the file.
        referenced: the only data file that a delete file applies to; None if it may be several.
        is_vector: whether it is a deletion vector.
    """

    status: int
    snapshot_id: int | None
    sequence: int
    written: int
    content: int
    path: str
    format: str
    partition: tuple[Any, ...]
    rows: int
    size: int
    referenced: str | None
    is_vector: bool


class Reading:
    """Reads manifests, several concurrently."""

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
        """Yield the entries of all manifests of one content type, each with its partition spec.

        Args:
            manifests: of a snapshot.
            content: data or deletes.
            wanted: entries to keep; called by several threads.
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
    status, snapshot_id, sequence, written, data_file = _fields(record)
    about = _fields(data_file)
    content, path, kind, partition, rows, size, *_ = about
    *_, referenced, offset, _ = about
    # Files added by the manifest's own snapshot inherit its number (specification, "Sequence
    # Number Inheritance"). Version 1 has no sequence numbers.
    inherited = manifest.sequence_number or 0
    if content and referenced is None:
        referenced = _bound(about[_LOWER], about[_UPPER])
    return Entry(
        status,
        snapshot_id if snapshot_id is not None else manifest.added_snapshot_id,
        inherited if sequence is None else sequence,
        inherited if written is None else written,
        content or 0,
        path,
        str(kind).upper(),
        tuple(_fields(partition)),
        rows,
        size,
        referenced,
        offset is not None,
    )


def _fields(record: Record) -> list[Any]:
    return [record[position] for position in range(len(record))]


def _bound(lower: Mapping[int, bytes] | None, upper: Mapping[int, bytes] | None) -> str | None:
    """Return the only data file that a file of position deletes applies to, by its bounds."""
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
    """Sequence numbers of delete files, counted from a given one."""

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
    """Which deletes apply to a data file, by the rules of DeleteFileIndex in Iceberg 1.11.

    Iceberg also uses column bounds to exclude equality deletes from a file; that is not done
    here.
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
        """Return how many deletes apply, and how many rows are deleted by those of this file."""
        if not self.count:
            return 0, 0
        key = (spec_id, entry.partition)
        # Equality deletes apply to data that was written before them.
        shared = self._everywhere.since(entry.sequence + 1)
        if key in self._equality:
            shared += self._equality[key].since(entry.sequence + 1)
        if entry.path in self._vectors:
            # A deletion vector includes all position deletes.
            return shared + 1, self._vectors[entry.path][1]
        named = self._of_files.get(entry.path, ())
        own = [rows for number, rows in named if number >= entry.sequence]
        if key in self._of_partitions:
            shared += self._of_partitions[key].since(entry.sequence)
        return len(own) + shared, sum(own)

    def newest(self, entry: Entry, spec_id: int) -> int:
        """Return the highest sequence number of the deletes that apply, or 0."""
        key = (spec_id, entry.partition)
        shared = (self._everywhere, self._equality.get(key), self._of_partitions.get(key))
        numbers = [max(one.numbers) for one in shared if one is not None and one.numbers]
        numbers += [number for number, _ in self._of_files.get(entry.path, ())]
        if entry.path in self._vectors:
            numbers.append(self._vectors[entry.path][0])
        return max(numbers, default=0)
