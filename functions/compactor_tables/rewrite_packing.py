"""Predicts which files an engine's own compaction would rewrite, and into how many.

Iceberg: SizeBasedFileRewritePlanner and BinPackRewriteFilePlanner of 1.11. Delta: OPTIMIZE of 4.2
(OptimizeTableCommand). Both pack the files of one partition into groups. Iceberg skips a group
that is not worth it, Delta a group of a single file.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from compactor.sizes import GIB, MIB
from compactor_tables.measures import DataFile

_LARGEST_GROUP = 100 * GIB
# Iceberg's write.parquet.row-group-size-bytes, its read.split.planning-lookback, and what its
# planner adds to an even share.
_ROW_GROUP = 128 * MIB
_LOOKBACK = 10
_SPLIT_OVERHEAD = 5 * 1024


@dataclass(frozen=True, slots=True)
class Rewrite:
    """What a rewrite reads and writes.

    Attributes:
        files: number of files that it reads and replaces.
        bytes: total size of these.
        into: number of files that it writes.
    """

    files: int = 0
    bytes: int = 0
    into: int = 0

    def __add__(self, other: Rewrite) -> Rewrite:
        return Rewrite(self.files + other.files, self.bytes + other.bytes, self.into + other.into)


@dataclass(frozen=True, slots=True)
class IcebergPacking:
    """The packing of Iceberg's ``rewrite_data_files``; defaults are the procedure's own.

    Attributes:
        target_bytes: target size of a file that it writes.
        min_files: a group of at least this many files is rewritten, however small.
        most_deletes: a file with at least this many delete files is rewritten.
        deleted_share: a file with at least this share of deleted rows is rewritten.
    """

    target_bytes: int
    min_files: int = 5
    most_deletes: int = sys.maxsize
    deleted_share: float = 0.3

    def rewrites(self, files: Iterable[DataFile]) -> Rewrite:
        """Return what is rewritten of the files of one partition."""
        taken = [one for one in files if self._is_wanted(one)]
        worth = [group for group in _packed(taken, _LARGEST_GROUP) if self._is_worth_it(group)]
        found = Rewrite()
        for group in worth:
            size = sum(one.size for one in group)
            found += Rewrite(len(group), size, self._tasks(group, size))
        return found

    @property
    def _smallest(self) -> int:
        return int(self.target_bytes * 0.75)

    @property
    def _largest(self) -> int:
        return int(self.target_bytes * 1.8)

    def _is_wanted(self, one: DataFile) -> bool:
        return not self._smallest <= one.size <= self._largest or self._is_worn(one)

    def _is_worn(self, one: DataFile) -> bool:
        if one.deletes >= self.most_deletes:
            return True
        rows = one.rows or 0
        return bool(one.deleted and rows) and min(one.deleted, rows) / rows >= self.deleted_share

    def _is_worth_it(self, group: Sequence[DataFile]) -> bool:
        size = sum(one.size for one in group)
        several = len(group) > 1
        return (
            (several and (len(group) >= self.min_files or size > self.target_bytes))
            or size > self._largest
            or any(self._is_worn(one) for one in group)
        )

    def _tasks(self, group: Sequence[DataFile], size: int) -> int:
        """Return how many files the tasks that read a group write.

        Tasks read whole row groups: if files are a little larger than half of a task's input, each
        file is a task. A task begins a new file when the current one is full; deleted rows take no
        room in it.
        """
        even = size // self.outputs(size) + _SPLIT_OVERHEAD
        most = min(max(even, self.target_bytes), self._write_most)
        pieces = ((piece, _live(one)) for one in group for piece in _pieces(one.size, _ROW_GROUP))
        written = _bins(pieces, most, _LOOKBACK)
        return sum(max(1, math.ceil(one / self._write_most)) for one in written)

    @property
    def _write_most(self) -> int:
        return self.target_bytes + (self._largest - self.target_bytes) // 2

    def outputs(self, size: int) -> int:
        """Return the number of files that a group of ``size`` bytes is written as.

        A remainder too small for a file of its own is spread over the others, as long as these
        grow by no more than a tenth.
        """
        if size < self.target_bytes:
            return 1
        whole, rest = divmod(size, self.target_bytes)
        if rest == 0:
            return whole
        most = min(1.1 * self.target_bytes, self._write_most)
        return whole if rest <= self._smallest and size // whole < most else whole + 1


@dataclass(frozen=True, slots=True)
class DeltaPacking:
    """The packing of Delta's OPTIMIZE.

    Attributes:
        target_bytes: smaller files are taken, and packed up to this size
            (``spark.databricks.delta.optimize.minFileSize`` and ``maxFileSize``).
        deleted_share: a file with a larger share of deleted rows is taken, whatever its size.
    """

    target_bytes: int = GIB
    deleted_share: float = 0.05

    def rewrites(self, files: Iterable[DataFile]) -> Rewrite:
        """Return what is rewritten of the files of one partition."""
        taken = sorted((one for one in files if self._is_wanted(one)), key=lambda one: one.size)
        found = Rewrite()
        for group in _packed(taken, self.target_bytes):
            if len(group) > 1:
                found += Rewrite(len(group), sum(one.size for one in group), 1)
        return found

    def _is_wanted(self, one: DataFile) -> bool:
        if one.size < self.target_bytes:
            return True
        if one.rows is None:
            return one.deletes > 0
        return one.rows > 0 and one.deleted / one.rows > self.deleted_share


def into_number(files: Sequence[DataFile], number: int) -> Rewrite:
    """Return the rewrite of a partition as ``number`` files; empty if it has no more than that."""
    if len(files) <= number:
        return Rewrite()
    return Rewrite(len(files), sum(one.size for one in files), number)


def _packed(files: Iterable[DataFile], most: int) -> Iterator[list[DataFile]]:
    """Group files in their order, as many per group as fit."""
    group: list[DataFile] = []
    size = 0
    for one in files:
        if group and size + one.size > most:
            yield group
            group, size = [], 0
        group.append(one)
        size += one.size
    if group:
        yield group


def _pieces(size: int, most: int) -> Iterator[int]:
    """Divide a size into pieces of ``most`` and a remainder."""
    whole, rest = divmod(size, most)
    yield from (most for _ in range(whole))
    if rest:
        yield rest


def _live(one: DataFile) -> float:
    """Return the share of rows that are not deleted; 1 if the number of rows is unknown."""
    return 1 - min(one.deleted, one.rows) / one.rows if one.rows else 1.0


def _bins(pieces: Iterable[tuple[int, float]], most: int, lookback: int) -> Iterator[float]:
    """Pack pieces as Iceberg's BinPacking does, and return the live bytes of each bin.

    A piece goes into the first bin with room. If too many bins are open, the fullest is closed.

    Args:
        pieces: size of each, and the share of it that is not deleted.
        most: capacity of a bin, in bytes.
        lookback: maximum number of open bins.
    """
    bins: list[tuple[int, float]] = []
    for size, share in pieces:
        fitting = next((n for n, (held, _) in enumerate(bins) if held + size <= most), None)
        if fitting is not None:
            held, alive = bins[fitting]
            bins[fitting] = held + size, alive + size * share
            continue
        bins.append((size, size * share))
        if len(bins) > lookback:
            fullest = max(bins)
            bins.remove(fullest)
            yield fullest[1]
    yield from (alive for _, alive in bins)
