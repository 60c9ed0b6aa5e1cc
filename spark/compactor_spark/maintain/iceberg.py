"""Maintenance of an Iceberg table: the actions of its Spark module, one commit per partition.

Each snapshot's summary records which run made it, and for what. Iceberg's own rollback retries on
top of any other commit, and so could drop it. Here a rollback is a single compare-and-swap of the
table's metadata, made only if no other writer committed since.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped] # py4j has no annotations
from pyspark.sql import SparkSession

from compactor.errors import IntegrityError, TableConflict
from compactor.failures import first_line
from compactor.sinks.upserts import quoted
from compactor_spark.maintain.iceberg_snapshots import (
    RUN,
    WHAT,
    certainly,
    count_of,
    in_order,
    rewritten_by,
)
from compactor_spark.maintain.java import activate, static_get, walked
from compactor_spark.maintain.rows import require_sums, sums_of
from compactor_spark.maintain.where import iceberg_filter, unfit_for_older
from compactor_spark.upsert.engines import cause_of
from compactor_tables.orders import BINPACK, SORT, ZORDER, Order, PartitionOrder
from compactor_tables.table_engine import Rewritten, RowSums, StepDone

_OLDER = (
    "files of an older partition spec lie in it, which its values do not distinguish from others"
)
_MAIN = "main"
_CONFLICTS = (
    "org.apache.iceberg.exceptions.CommitFailedException",
    "org.apache.iceberg.exceptions.ValidationException",
)
# A file younger than a day may have been written by a running job, ours or another's, that has not
# committed yet. Iceberg's own procedure rejects less, too.
_LEAST_ORPHAN_SECONDS = 86_400.0


@dataclass(slots=True)
class IcebergTable:
    """Implements :class:`compactor_tables.table_engine.Tables`.

    Args:
        session: with the catalog, and Iceberg's extensions.
        name: ``catalog.namespace.table``.
    """

    session: SparkSession
    name: str
    _ours: dict[str, Any] | None = field(default=None, init=False)

    @property
    def _jvm(self) -> Any:
        return self.session._jvm

    def _table(self) -> Any:
        activate(self.session)
        name = ".".join(quoted(part) for part in self.name.split("."))
        loader = self._jvm.org.apache.iceberg.spark.Spark3Util
        table = loader.loadIcebergTable(self.session._jsparkSession, name)
        # The session's catalog may have cached the table.
        table.refresh()
        return table

    def _actions(self) -> Any:
        actions = self._jvm.org.apache.iceberg.spark.actions.SparkActions
        return actions.get(self.session._jsparkSession)

    def _filter(self, table: Any, partition: PartitionOrder) -> Any:
        return iceberg_filter(self._jvm, table.schema(), partition.where)

    def require_rows(self) -> None:
        """See the protocol."""
        name = ".".join(quoted(part) for part in self.name.split("."))
        require_sums(self.session.table(name))

    def version(self) -> str:
        """See the protocol; empty for a table without any snapshot."""
        current = self._table().currentSnapshot()
        return "" if current is None else str(current.snapshotId())

    def unfit(self, partition: PartitionOrder, order: Order) -> str:
        """See the protocol; for an older spec, all files that its filter selects are rewritten."""
        if order.how not in {BINPACK, SORT, ZORDER}:
            return f"Iceberg has no way {order.how!r} to rewrite"
        table = self._table()
        if unfit := self._no_condition(table, partition):
            return unfit
        evolved = table.specs().size() > 1
        if order.how == BINPACK and not evolved:
            return ""
        tasks = self._tasks(table, table.currentSnapshot().snapshotId(), partition)
        if evolved and not self._are_inside(table, partition, tasks):
            return _OLDER
        if order.how != BINPACK and len(tasks) < order.min_files:
            return f"{len(tasks)} files, fewer than {order.min_files}"
        return ""

    def _no_condition(self, table: Any, partition: PartitionOrder) -> str:
        """Return why a partition's values cannot be a rewrite's condition; empty if they can."""
        if _is_present(table, partition):
            return "" if partition.where or not table.spec().isPartitioned() else _OLDER
        if unfit := unfit_for_older(table.schema(), partition.where):
            return unfit
        # The new files must lie in the partition, too.
        wanted = self._filter(table, partition)
        return "" if certainly(self._jvm, table, table.spec().specId(), wanted) else _OLDER

    def _are_inside(self, table: Any, partition: PartitionOrder, tasks: list[Any]) -> bool:
        """Return whether all rows of these files are in the partition, by Iceberg's projection."""
        numbers = {int(one.file().specId()) for one in tasks}
        if _is_present(table, partition):
            return numbers <= {partition.spec}
        wanted = self._filter(table, partition)
        inside = {one: certainly(self._jvm, table, one, wanted) for one in numbers}
        for file in (one.file() for one in tasks):
            found = inside[int(file.specId())]
            if found is None or not found.eval(file.partition()):
                return False
        return True

    def _tasks(
        self, table: Any, version: int, partition: PartitionOrder, only: Set[str] | None = None
    ) -> list[Any]:
        """Return a partition's data files at a snapshot, with the deletes that apply to them."""
        scan = table.newScan().useSnapshot(version).filter(self._filter(table, partition))
        files = scan.ignoreResiduals().planFiles()
        try:
            found = list(walked(files))
        finally:
            files.close()
        if only is None:
            return found
        return [one for one in found if str(one.file().location()) in only]

    def done(self, what: str, order: Order) -> Rewritten | None:
        """See the protocol."""
        table = self._table() if self._ours is None else None
        if self._ours is None:
            self._ours = dict(self._since(table, order, order.measured))
        snapshot = self._ours.get(what)
        return None if snapshot is None else rewritten_by(snapshot)

    def _since(self, table: Any, order: Order, before: str) -> Iterator[tuple[str, Any]]:
        """Yield this run's commits since a snapshot, as purpose and snapshot, the newest first."""
        snapshot = table.currentSnapshot()
        while snapshot is not None and str(snapshot.snapshotId()) != before:
            summary = snapshot.summary()
            if summary.get(RUN) == order.run_id:
                yield str(summary.get(WHAT)), snapshot
            parent = snapshot.parentId()
            snapshot = None if parent is None else table.snapshot(parent)

    def rewrite(self, partition: PartitionOrder, order: Order, what: str) -> Rewritten | None:
        """See the protocol."""
        table = self._table()
        base = str(table.currentSnapshot().snapshotId())
        action = in_order(self.session, self._actions().rewriteDataFiles(table), table, order)
        # Commits made by partial progress would conflict with one another.
        action = action.option("partial-progress.enabled", "false")
        # Equality deletes apply only to files of their own spec. For an older spec, replacement
        # files get a newer sequence number than all deletes, and a concurrent delete makes the
        # commit fail.
        numbered = "true" if _is_present(table, partition) else "false"
        action = action.option("use-starting-sequence-number", numbered)
        if order.target_bytes:
            action = action.option("target-file-size-bytes", str(order.target_bytes))
        action = self._signed(action.filter(self._filter(table, partition)), order, what)
        try:
            action.execute()
        except Py4JJavaError as error:
            # A commit whose response was lost is reported as failed, too.
            found = dict(self._since(self._table(), order, base)).get(what)
            if found is None:
                raise _conflict(error) from error
            return rewritten_by(found)
        found = dict(self._since(self._table(), order, base)).get(what)
        return None if found is None else rewritten_by(found)

    def _signed(self, action: Any, order: Order, what: str) -> Any:
        return action.snapshotProperty(RUN, order.run_id).snapshotProperty(WHAT, what)

    def rows_of(self, partition: PartitionOrder, rewritten: Rewritten) -> tuple[RowSums, RowSums]:
        """See the protocol; reads rows with deletes applied, in the table's current columns."""
        table = self._table()
        before, after = int(rewritten.before), int(rewritten.after)
        commit, io = table.snapshot(after), table.io()
        gone = {str(one.location()) for one in walked(commit.removedDataFiles(io))}
        came = {str(one.location()) for one in walked(commit.addedDataFiles(io))}
        old = self._tasks(table, before, partition, gone)
        new = self._tasks(table, after, partition, came)
        if (len(old), len(new)) != (len(gone), len(came)):
            raise IntegrityError(
                f"{self.name}: the rewrite {after} has files outside of {partition.name!r}"
            )
        return self._sums(table, old), self._sums(table, new)

    def rows_at(self, partition: PartitionOrder, version: str) -> RowSums:
        """See the protocol."""
        table = self._table()
        return self._sums(table, self._tasks(table, int(version), partition))

    def _sums(self, table: Any, tasks: list[Any]) -> RowSums:
        """Return the sums over the rows of these files, read as a rewrite reads them."""
        if not tasks:
            return RowSums(0, 0, 0)
        spark, staged = self._jvm.org.apache.iceberg.spark, self._jvm.java.util.ArrayList()
        for one in tasks:
            staged.add(one)
        number = uuid.uuid4().hex
        cache = static_get(self._jvm, "org.apache.iceberg.spark.SparkTableCache")
        manager = spark.ScanTaskSetManager.get()
        manager.stageTasks(table, number, staged)
        cache.add(number, table)
        try:
            reader = self.session.read.format("iceberg").option("scan-task-set-id", number)
            return sums_of(reader.load(number))
        finally:
            cache.remove(number)
            manager.removeTasks(table, number)

    def take_back(self, before: str, after: str, what: str) -> bool:
        """See the protocol; moves main by one compare-and-swap, without retries."""
        operations = self._table().operations()
        base = operations.refresh()
        if str(base.ref(_MAIN).snapshotId()) != after or base.snapshot(int(before)) is None:
            return False
        builder = self._jvm.org.apache.iceberg.TableMetadata.buildFrom(base)
        try:
            operations.commit(base, builder.setBranchSnapshot(int(before), _MAIN).build())
        except Py4JJavaError as error:
            if isinstance(_conflict(error), TableConflict):
                return False
            raise
        return True

    def deletes(self, partition: PartitionOrder, order: Order, what: str) -> StepDone:
        """See the protocol; compacts position deletes, and drops those of removed files."""
        table = self._table()
        if unfit := self._no_condition(table, partition):
            return StepDone(f"left: {unfit}")
        base = str(table.currentSnapshot().snapshotId())
        action = self._actions().rewritePositionDeletes(table)
        action = action.filter(self._filter(table, partition)).option("rewrite-all", "true")
        try:
            result = self._signed(action, order, what).execute()
        except Py4JJavaError as error:
            raise _conflict(error) from error
        gone, came = int(result.rewrittenDeleteFilesCount()), int(result.addedDeleteFilesCount())
        found = dict(self._since(self._table(), order, base)).get(what)
        if found is None:
            return StepDone("no position deletes to pack")
        line = f"{gone:,} position delete files to {came:,}"
        before, after = str(found.parentId()), str(found.snapshotId())
        return StepDone(line, before=before, after=after)

    def manifests(self, order: Order) -> StepDone:
        """See the protocol."""
        action = self._signed(self._actions().rewriteManifests(self._table()), order, "manifests")
        try:
            result = action.execute()
        except Py4JJavaError as error:
            raise _conflict(error) from error
        gone = sum(1 for _ in walked(result.rewrittenManifests()))
        came = sum(1 for _ in walked(result.addedManifests()))
        return StepDone(f"{gone:,} manifests to {came:,}" if gone else "nothing to rewrite")

    def checkpoint(self, order: Order) -> StepDone:
        """See the protocol."""
        return StepDone("Iceberg has none")

    def expire(self, order: Order, now: float) -> StepDone:
        """See the protocol; snapshots that tags and branches keep are not expired."""
        table = self._table()
        if kept := _kept_whole(table):
            return StepDone(kept)
        before = count_of(table)
        action = self._actions().expireSnapshots(table)
        action = action.expireOlderThan(int((now - order.keep_seconds) * 1000))
        result = action.retainLast(order.keep_versions).execute()
        files = sum(
            int(count)
            for count in (
                result.deletedDataFilesCount(),
                result.deletedPositionDeleteFilesCount(),
                result.deletedEqualityDeleteFilesCount(),
                result.deletedManifestsCount(),
                result.deletedManifestListsCount(),
                result.deletedStatisticsFilesCount(),
            )
        )
        expired = before - count_of(self._table())
        return StepDone(f"{expired:,} snapshots, {files:,} files", expired, files)

    def orphans(self, order: Order, now: float) -> StepDone:
        """See the protocol; never younger than a day, whatever the order says."""
        table = self._table()
        if kept := _kept_whole(table):
            return StepDone(kept)
        age = max(order.orphan_seconds, _LEAST_ORPHAN_SECONDS)
        action = self._actions().deleteOrphanFiles(table).olderThan(int((now - age) * 1000))
        # Hadoop's own listing needs a file system for s3://, which tables with S3FileIO lack.
        result = action.usePrefixListing(True).execute()
        files = sum(1 for _ in walked(result.orphanFileLocations()))
        line = f"{files:,} files older than {age / 86_400:g} days"
        return StepDone(line, deleted_files=files)


def _is_present(table: Any, partition: PartitionOrder) -> bool:
    return bool(partition.spec == table.spec().specId())


def _kept_whole(table: Any) -> str:
    kept = str(table.properties().get("gc.enabled") or "true").lower() == "false"
    return "left: the table's property gc.enabled is false" if kept else ""


def _conflict(error: Exception) -> Exception:
    """Return a TableConflict if another writer committed first, else the error itself."""
    if any(one in cause_of(error) for one in _CONFLICTS):
        return TableConflict(first_line(error))
    return error
