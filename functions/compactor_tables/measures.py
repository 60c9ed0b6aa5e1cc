"""What a table's metadata says of its files; no data file is opened for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

#: Upper bounds of the classes of a histogram of sizes, in bytes: 64 KiB, 512 KiB, ... 2 GiB.
CLASSES = tuple(1 << bits for bits in range(16, 32, 3))


#: The formats of tables.
ICEBERG, DELTA = "iceberg", "delta"


class DataFile(NamedTuple):
    """One data file of a table.

    Attributes:
        size: in bytes, as stored.
        rows: that it holds, deleted ones included; None where the table does not say.
        deleted: of them, by deletes that name this file alone (position deletes, a vector).
        deletes: delete files and vectors that apply to it.
    """

    size: int
    rows: int | None = None
    deleted: int = 0
    deletes: int = 0


class PartitionValue(NamedTuple):
    """One column of what makes a partition; see :class:`compactor_tables.orders.Condition`."""

    column: str
    transform: str
    value: str | None


@dataclass(frozen=True, slots=True)
class PartitionMeasure:
    """The files of one partition.

    Attributes:
        name: of the partition as its engine writes it, such as ``day=2026-11-01``; empty for a
            table without partitions.
        files: in the order in which the metadata has them.
        changed: when a commit touched the partition last, UNIX seconds; None where unknown.
        spec: the id of Iceberg's partition spec; 0 for Delta.
        where: what its rows have in common; empty for a whole table.
        refusal: of a partition of an older spec, why its values are no condition for a rewrite;
            empty where they are.
    """

    name: str
    files: tuple[DataFile, ...]
    changed: float | None = None
    spec: int = 0
    where: tuple[PartitionValue, ...] = ()
    refusal: str = ""

    @property
    def bytes(self) -> int:
        """Bytes of the partition's data files."""
        return sum(one.size for one in self.files)

    @property
    def rows(self) -> int:
        """Rows of the partition's data files, where known."""
        return sum(one.rows or 0 for one in self.files)


@dataclass(frozen=True, slots=True)
class TableMeasure:
    """A table at one moment.

    Attributes:
        version: of the table: a snapshot's id, or a version's number.
        target_bytes: what the table's own properties ask of a data file.
        partitions: in the order of their names.
        delete_files: position and equality delete files, and deletion vectors.
        metadata_files: manifests of the current snapshot; of Delta, entries since the checkpoint.
        versions: snapshots or versions that can still be read.
        commits: when each of these was made, UNIX seconds, in order.
        format: ``iceberg`` or ``delta``.
        format_version: of Iceberg's specification; 0 for Delta.
        spec: the id of the partition spec that files are written by; 0 for Delta.
        metadata_bytes: of the metadata files.
        superseded: when each snapshot was made that only its age still keeps; of Delta, when each
            file was removed that VACUUM has not been seen to take since. UNIX seconds, in order.
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
    at: float = 0.0

    @property
    def files(self) -> int:
        """Data files."""
        return sum(len(one.files) for one in self.partitions)

    @property
    def bytes(self) -> int:
        """Bytes of the table's data files."""
        return sum(one.bytes for one in self.partitions)

    @property
    def rows(self) -> int:
        """Rows of the table's data files, where known, deleted ones included."""
        return sum(one.rows for one in self.partitions)

    @property
    def deleted(self) -> int:
        """Rows of these that deletes of a single file remove."""
        return sum(file.deleted for one in self.partitions for file in one.files)

    @property
    def last_commit(self) -> float | None:
        """UNIX seconds; None where there is none."""
        return max(self.commits, default=None)

    def commits_an_hour(self, now: float, hours: float = 24.0) -> float:
        """How often the table changed lately.

        Args:
            now: UNIX seconds.
            hours: that count.
        """
        since = now - hours * 3_600
        return sum(1 for one in self.commits if since < one <= now) / hours


def histogram(sizes: Iterable[int]) -> list[int]:
    """How many sizes are in each class of :data:`CLASSES`, and above the last."""
    counts = [0] * (len(CLASSES) + 1)
    for size in sizes:
        counts[next((n for n, most in enumerate(CLASSES) if size <= most), len(CLASSES))] += 1
    return counts
