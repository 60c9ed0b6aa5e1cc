"""Measures of a table and its files, taken from metadata. No data file is opened for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

#: Upper bounds of the size classes of a histogram, in bytes: 64 KiB, 512 KiB, ... 2 GiB.
CLASSES = tuple(1 << bits for bits in range(16, 32, 3))


#: Table formats.
ICEBERG, DELTA = "iceberg", "delta"


class DataFile(NamedTuple):
    """One data file of a table.

    Attributes:
        size: bytes, as stored.
        rows: number of rows, deleted ones included; None if the metadata has no count.
        deleted: how many of them are deleted by deletes that name this file alone (position
            deletes, a deletion vector).
        deletes: number of delete files and deletion vectors that apply to it.
    """

    size: int
    rows: int | None = None
    deleted: int = 0
    deletes: int = 0


class PartitionValue(NamedTuple):
    """One partition field and its value; see :class:`compactor_tables.orders.Condition`."""

    column: str
    transform: str
    value: str | None


@dataclass(frozen=True, slots=True)
class PartitionMeasure:
    """The files of one partition.

    Attributes:
        name: of the partition as its engine writes it, such as ``day=2026-11-01``; empty for a
            table without partitions.
        files: in metadata order.
        changed: when a commit last touched the partition, UNIX seconds; None if unknown.
        spec: id of Iceberg's partition spec; 0 for Delta.
        where: partition values that its rows share; empty for a whole table.
        refusal: why a partition of an older spec cannot be selected for a rewrite by its values;
            empty if it can.
    """

    name: str
    files: tuple[DataFile, ...]
    changed: float | None = None
    spec: int = 0
    where: tuple[PartitionValue, ...] = ()
    refusal: str = ""

    @property
    def bytes(self) -> int:
        """Total size of the partition's data files, in bytes."""
        return sum(one.size for one in self.files)

    @property
    def rows(self) -> int:
        """Number of rows in the partition's data files, as far as known."""
        return sum(one.rows or 0 for one in self.files)


@dataclass(frozen=True, slots=True)
class TableMeasure:
    """A table at one moment.

    Attributes:
        name: the table's address.
        version: of the table: a snapshot id, or a version number.
        target_bytes: target size of a data file by the table's own properties.
        partitions: ordered by name.
        delete_files: number of position and equality delete files, and deletion vectors.
        metadata_files: number of manifests of the current snapshot; for Delta, of log entries
            since the checkpoint.
        versions: number of snapshots or versions that can still be read.
        commits: when each of these was made, UNIX seconds, in order.
        format: ``iceberg`` or ``delta``.
        format_version: of Iceberg's specification; 0 for Delta.
        spec: id of the partition spec that new files are written by; 0 for Delta.
        metadata_bytes: size of the metadata files.
        superseded: creation times of the snapshots that no branch or tag keeps; for Delta, removal
            times of the files that VACUUM is not known to have deleted. UNIX seconds, in order.
        spark_only: why only Spark can rewrite it; empty if others can, too.
        at: when it was measured, UNIX seconds.
    """

    name: str
    version: str
    target_bytes: int
    partitions: tuple[PartitionMeasure, ...]
    delete_files: int = 0
    metadata_files: int = 0
    versions: int = 0
    commits: Sequence[float] = field(default=(), repr=False)
    format: str = ICEBERG
    format_version: int = 0
    spec: int = 0
    metadata_bytes: int = 0
    superseded: Sequence[float] = field(default=(), repr=False)
    spark_only: str = ""
    at: float = 0.0

    @property
    def files(self) -> int:
        """Number of data files."""
        return sum(len(one.files) for one in self.partitions)

    @property
    def bytes(self) -> int:
        """Total size of the table's data files, in bytes."""
        return sum(one.bytes for one in self.partitions)

    @property
    def rows(self) -> int:
        """Number of rows in the table's data files, as far as known, deleted ones included."""
        return sum(one.rows for one in self.partitions)

    @property
    def deleted(self) -> int:
        """Number of these rows that are removed by deletes of a single file."""
        return sum(file.deleted for one in self.partitions for file in one.files)

    @property
    def last_commit(self) -> float | None:
        """Time of the newest commit, UNIX seconds; None if there is no commit."""
        return max(self.commits, default=None)

    def commits_an_hour(self, now: float, hours: float = 24.0) -> float:
        """Return the commits per hour over the last hours.

        Args:
            now: UNIX seconds.
            hours: length of the time that counts.
        """
        since = now - hours * 3_600
        return sum(1 for one in self.commits if since < one <= now) / hours


def histogram(sizes: Iterable[int]) -> list[int]:
    """Return how many sizes are in each class of :data:`CLASSES`, and above the last."""
    counts = [0] * (len(CLASSES) + 1)
    for size in sizes:
        counts[next((n for n, most in enumerate(CLASSES) if size <= most), len(CLASSES))] += 1
    return counts
