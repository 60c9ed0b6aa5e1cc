"""Selects the partitions of a table to rewrite, with a reason for each of the others. Pure.

A partition that is still written is left alone, because a rewrite makes another writer's DELETE
or MERGE fail. The others are packed as the engine would pack them, and taken in order of files
saved per byte rewritten, up to the limit of a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

from compactor_tables.costs import ATHENA
from compactor_tables.evolved_specs import Group, grouped
from compactor_tables.measures import (
    DELTA,
    DataFile,
    PartitionMeasure,
    TableMeasure,
)
from compactor_tables.policies import Rule
from compactor_tables.rewrite_packing import DeltaPacking, IcebergPacking, Rewrite, into_number

# Athena's optimize_rewrite_delete_file_threshold; it ignores the share of deleted rows ("Optimize
# Iceberg tables").
_ATHENA_DELETES = 2
_NO_SHARE = 2.0
# Share of deleted rows from which Iceberg rewrites a file, and we call Delta's PURGE.
_WORN_SHARE = 0.3
_NOTHING = Rewrite()


@dataclass(frozen=True, slots=True)
class Selected:
    """One partition, and what is planned for it.

    Attributes:
        partition: as measured; one of an older partition spec includes all files in it, whatever
            their spec.
        rewrite: what is read and written; empty if it is left alone.
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
        """Files saved per byte rewritten."""
        return (self.rewrite.files - self.rewrite.into) / max(1, self.rewrite.bytes)


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
        """UNIX seconds; partitions that a commit has touched since are left alone."""
        return self.now - self.rule.closed_after_seconds

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
        if changed is not None and changed > self.closed_before:
            return f"written {_ago(self.now - changed)} ago"
        if not group.refusal and one.spec != self.measure.spec and self.engine == ATHENA:
            return "its files are of an older partition spec, and only Spark rewrites those"
        return group.refusal

    def _rewrite(self, packs: Sequence[Sequence[DataFile]]) -> Rewrite:
        files = [*chain(*packs)]
        if self.measure.format == DELTA:
            return self._by_delta(files)
        packing = IcebergPacking(self.target_bytes, self.rule.min_files)
        if self.engine == ATHENA:
            packing = replace(packing, most_deletes=_ATHENA_DELETES, deleted_share=_NO_SHARE)
        found = sum((packing.rewrites(one) for one in packs), _NOTHING)
        if found.files and (self.rule.sort or self.rule.zorder):
            return self._whole(files, sum(packing.outputs(_size(one)) for one in packs))
        return found

    def _by_delta(self, files: Sequence[DataFile]) -> Rewrite:
        if self.rule.num_files is not None:
            return into_number(files, self.rule.num_files)
        found = DeltaPacking(self.target_bytes).rewrites(files)
        if found.files < self.rule.min_files:
            return _NOTHING
        if self.rule.zorder:
            return self._whole(files, max(1, _size(files) // self.target_bytes))
        return found

    def _whole(self, files: Sequence[DataFile], into: int) -> Rewrite:
        """Return the rewrite of a whole partition, because sorting needs all of its rows."""
        if len(files) < self.rule.min_files:
            return _NOTHING
        return Rewrite(len(files), _size(files), into)

    def _wears(self, files: Sequence[DataFile], rewrite: Rewrite) -> bool:
        """Return whether deletes need a step of their own."""
        if self.measure.format == DELTA:
            # Rewritten files have no deletion vectors.
            return not rewrite.files and any(_is_worn(one) for one in files)
        if rewrite.files and any(one.deletes for one in files):
            # A rewrite leaves the delete files of the data files that it replaces.
            return True
        return any(one.deletes >= self.rule.min_files for one in files)


def _is_worn(one: DataFile) -> bool:
    return bool(one.rows) and one.deleted / (one.rows or 1) >= _WORN_SHARE


def _size(files: Sequence[DataFile]) -> int:
    return sum(one.size for one in files)


def _ago(seconds: float) -> str:
    for unit, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.0f} {unit}"
    return f"{max(0.0, seconds):,.0f} seconds"
