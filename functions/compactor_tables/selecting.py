"""Selects the partitions of a table to rewrite, with a reason for each of the others. Pure.

A partition that is still written is left alone, because a rewrite makes another writer's DELETE
or MERGE fail. Of the others a file is selected by its own size and deletes, as the metadata has
them; how the engine packs the selected files is its business. Partitions are taken in order of
files per byte, up to the limit of a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

from compactor_tables.costs import ATHENA, WORKER, Rewrite
from compactor_tables.evolved_specs import Group, grouped
from compactor_tables.measures import (
    DELTA,
    DataFile,
    PartitionMeasure,
    TableMeasure,
)
from compactor_tables.policies import Rule

# Iceberg's defaults for min-file-size-bytes and max-file-size-bytes, as shares of the target size.
_SMALL_SHARE, _LARGE_SHARE = 0.75, 1.8
# Two Delta files of at most this share of the target size fit into one.
_HALF = 0.5
# Athena's optimize_rewrite_delete_file_threshold; it ignores the share of deleted rows ("Optimize
# Iceberg tables").
_ATHENA_DELETES = 2
# Share of deleted rows from which Iceberg rewrites a file, and we call Delta's PURGE.
_WORN_SHARE = 0.3
_NOTHING = Rewrite()


@dataclass(frozen=True, slots=True)
class Selected:
    """One partition, and what is planned for it.

    Attributes:
        partition: as measured; one of an older partition spec includes all files in it, whatever
            their spec.
        rewrite: the files that are rewritten; empty if it is left alone.
        deletes: whether its delete files or vectors are cleaned up, with or without a rewrite.
        left: human-readable reason why it is not rewritten; empty if it is.
    """

    partition: PartitionMeasure
    rewrite: Rewrite = _NOTHING
    deletes: bool = False
    left: str = ""

    @property
    def is_taken(self) -> bool:
        """Whether it is rewritten or its deletes are cleaned up."""
        return not self.left

    @property
    def gain(self) -> float:
        """Files per byte to rewrite."""
        return self.rewrite.files / max(1, self.rewrite.bytes)


@dataclass(frozen=True, slots=True)
class Selection:
    """The criteria by which partitions are selected.

    Attributes:
        measure: of the table.
        rule: that matched.
        engine: that would rewrite the table.
        now: UNIX seconds.
    """

    measure: TableMeasure
    rule: Rule
    engine: str
    now: float

    @property
    def target_bytes(self) -> int:
        """Target size of a data file, in bytes."""
        return self.rule.target_bytes or self.measure.target_bytes

    @property
    def closed_before(self) -> float:
        """UNIX seconds; partitions that a commit has touched since are left alone. 0 for none."""
        return self.now - self.rule.closed_after_seconds if self.rule.closed_after_seconds else 0.0

    def select(self) -> list[Selected]:
        """Return all partitions, in the order of the measure."""
        return self._cut([self._look(one) for one in grouped(self.measure)])

    def _cut(self, found: list[Selected]) -> list[Selected]:
        """Leave out partitions beyond the run's byte limit, preferring those that gain most."""
        room = self.rule.most_bytes
        worst_first = sorted(
            (n for n, one in enumerate(found) if one.is_taken),
            key=lambda n: (-found[n].gain, found[n].partition.name, n),
        )
        for number in worst_first:
            one = found[number]
            if one.rewrite.bytes <= room:
                room -= one.rewrite.bytes
                continue
            reason = f"a run may rewrite {self.rule.most_bytes:,} bytes; this is one of the rest"
            if one.rewrite.bytes > self.rule.most_bytes:
                reason = f"a run may rewrite {self.rule.most_bytes:,} bytes, and it has more to"
            found[number] = replace(one, rewrite=_NOTHING, deletes=False, left=reason)
        return found

    def _look(self, group: Group) -> Selected:
        one, left = group.partition, self._unfit(group)
        if left:
            return Selected(one, left=left)
        rewrite = self._rewrite(group.packs)
        deletes = self._wears(one.files, rewrite)
        if rewrite.files or deletes:
            return Selected(one, rewrite, deletes)
        return Selected(one, left="nothing to rewrite")

    def _unfit(self, group: Group) -> str:
        one = group.partition
        changed = one.changed if one.changed is not None else self.measure.last_commit
        if self.closed_before and changed is not None and changed > self.closed_before:
            return f"written {_ago(self.now - changed)} ago"
        if not group.refusal and one.spec != self.measure.spec and self.engine == ATHENA:
            return "its files are of an older partition spec, and only Spark rewrites those"
        return group.refusal

    def _rewrite(self, packs: Sequence[Sequence[DataFile]]) -> Rewrite:
        files = [*chain(*packs)]
        if self.rule.num_files is not None:
            return _rewrite_of(files) if len(files) > self.rule.num_files else _NOTHING
        selected = [file for pack in packs for file in self._selected(pack)]
        if selected and (self.rule.sort or self.rule.zorder):
            # Sorting needs all rows of the partition.
            return _rewrite_of(files) if len(files) >= self.rule.min_files else _NOTHING
        return _rewrite_of(selected)

    def _selected(self, files: Sequence[DataFile]) -> Sequence[DataFile]:
        """Return the files of one partition and spec that are worth a rewrite."""
        if self.measure.format == DELTA:
            small = [one for one in files if is_small_for_delta(one.size, self.target_bytes)]
            return small if len(small) >= self.rule.min_files else ()
        most = self.target_bytes * _LARGE_SHARE
        urgent = [one.size > most or self._needs_rewrite(one) for one in files]
        selected = [
            one
            for one, is_urgent in zip(files, urgent, strict=True)
            if is_urgent
            or is_wrong_size(one.size, self.target_bytes)
            or (self.engine == WORKER and one.deletes)
        ]
        return selected if any(urgent) or len(selected) >= self.rule.min_files else ()

    def _needs_rewrite(self, one: DataFile) -> bool:
        """Return whether an Iceberg file is rewritten for its deletes, whatever its size."""
        if self.engine == ATHENA:
            return one.deletes >= _ATHENA_DELETES
        return _is_worn(one) or (self.engine == WORKER and one.deletes >= self.rule.min_files)

    def _wears(self, files: Sequence[DataFile], rewrite: Rewrite) -> bool:
        """Return whether deletes need a step of their own."""
        if self.engine == WORKER:
            # Its rewrite applies them.
            return False
        if self.measure.format == DELTA:
            # Rewritten files have no deletion vectors.
            return not rewrite.files and any(_is_worn(one) for one in files)
        if rewrite.files and any(one.deletes for one in files):
            # A rewrite leaves the delete files of the data files that it replaces.
            return True
        return any(one.deletes >= self.rule.min_files for one in files)


def is_small_for_delta(size: int, target_bytes: int) -> bool:
    """Return whether two Delta files of a size fit into one."""
    return size <= target_bytes * _HALF


def is_wrong_size(size: int, target_bytes: int) -> bool:
    """Return whether an Iceberg file of a size is rewritten for it."""
    return not target_bytes * _SMALL_SHARE <= size <= target_bytes * _LARGE_SHARE


def _is_worn(one: DataFile) -> bool:
    return bool(one.rows) and one.deleted / (one.rows or 1) >= _WORN_SHARE


def _rewrite_of(files: Sequence[DataFile]) -> Rewrite:
    return Rewrite(len(files), sum(one.size for one in files))


def _ago(seconds: float) -> str:
    for unit, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.0f} {unit}"
    return f"{max(0.0, seconds):,.0f} seconds"
