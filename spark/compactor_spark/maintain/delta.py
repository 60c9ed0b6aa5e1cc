"""Maintenance of a Delta table: OPTIMIZE, REORG, VACUUM, and rewrites to a number of files.

Each commit records which run made it, and for what, in its ``userMetadata``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped] # py4j has no annotations
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from compactor.errors import IntegrityError, InvalidInput, TableConflict
from compactor.failures import first_line
from compactor.sinks.upserts import quoted
from compactor_spark.maintain.delta_log import DeltaEntries, Entry
from compactor_spark.maintain.delta_number import rewrite_as_number
from compactor_spark.maintain.java import activate
from compactor_spark.maintain.rows import require_sums, sums_of
from compactor_spark.maintain.where import delta_predicate
from compactor_spark.upsert.delta import is_conflict
from compactor_tables.orders import (
    NUMBER,
    ORPHANS,
    SORT,
    ZORDER,
    Order,
    PartitionOrder,
)
from compactor_tables.table_engine import PREFIX, Rewritten, RowSums, StepDone

_CONF = "spark.databricks.delta"
_MESSAGE = f"{_CONF}.commitInfo.userMetadata"
_OURS = f"{PREFIX}.maintenance:"
# By default Delta 4.2 ignores RETAIN, except of 0 hours, and uses the table's own retention.
_RETAIN_COUNTS = f"{_CONF}.vacuum.retentionWindowIgnore.enabled"
_RETAIN_CHECKED = f"{_CONF}.retentionDurationCheck.enabled"
# Otherwise Delta neither reads nor restores a version older than the table's retention, even if its
# files exist. The version that a rewrite started from may be of any age.
_OLD_REFUSED = f"{_CONF}.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration"
# By default Delta does not log VACUUM for tables on S3. Then it is unknown how much was deleted,
# and the next plan does not see that it was done.
_LOGGED = f"{_CONF}.vacuum.logging.enabled"
_COUNTED = ("numDeletedFiles", "numFilesToDelete", "sizeOfDataToDelete")
_VACUUM = "vacuum"
_PHYSICAL = "delta.columnMapping.physicalName"
_LEAST_ORPHAN_SECONDS = 86_400.0
_HOUR = 3_600


class DeltaTable:
    """Implements :class:`compactor_tables.table_engine.Tables`.

    Args:
        session: with Delta's catalog and extensions.
        uri: of the table.
    """

    def __init__(self, session: SparkSession, uri: str) -> None:
        self.session = session
        self.uri = uri
        self._log, _ = self._look()
        self._entries = DeltaEntries(self._log, self._jvm)
        for name in (_RETAIN_COUNTS, _OLD_REFUSED):
            session.conf.set(name, "false")
        if session.conf.get(_LOGGED, None) is None:
            session.conf.set(_LOGGED, "true")

    @property
    def _jvm(self) -> Any:
        return self.session._jvm

    def _look(self) -> tuple[Any, Any]:
        """Return the log and the current snapshot."""
        activate(self.session)
        delta = self._jvm.org.apache.spark.sql.delta.DeltaLog
        found = delta.forTableWithSnapshot(self.session._jsparkSession, self.uri)
        if int(found._2().version()) < 0:
            raise InvalidInput("table", f"delta:{self.uri}", "a Delta table")
        return found._1(), found._2()

    @property
    def _now(self) -> int:
        return int(self._look()[1].version())

    @property
    def _schema(self) -> StructType:
        return StructType.fromJson(json.loads(self._look()[1].metadata().schemaString()))

    def _predicate(self, partition: PartitionOrder) -> str:
        return delta_predicate(self._schema, partition.where)

    def _values(self, partition: PartitionOrder) -> dict[str, str | None]:
        """Return a partition's values as in the log: by the names of columns in data files."""
        schema = self._schema
        return {
            schema[one.column].metadata.get(_PHYSICAL, one.column): one.value
            for one in partition.where
        }

    def _frame(self, version: int) -> DataFrame:
        reader = self.session.read.format("delta").option("versionAsOf", str(version))
        return reader.load(self.uri)

    def require_rows(self) -> None:
        """See the protocol."""
        require_sums(self.session.read.format("delta").load(self.uri))

    def version(self) -> str:
        """See the protocol."""
        return str(self._now)

    def unfit(self, partition: PartitionOrder, order: Order) -> str:
        """See the protocol."""
        if order.how == SORT:
            return "Delta's OPTIMIZE does not sort; it has ZORDER"
        if order.how == NUMBER and not order.num_files:
            return "the order names no number of files"
        _, snapshot = self._look()
        if order.how == NUMBER and _has_row_ids(snapshot):
            return "its rows have identifiers (row tracking), which only OPTIMIZE keeps"
        target = order.target_bytes if order.how not in {NUMBER, ZORDER} else 0
        frame = DataFrame(snapshot.allFiles().toDF(), self.session)
        for name, value in self._values(partition).items():
            found = frame["partitionValues"].getItem(name)
            frame = frame.where(found.isNull() if value is None else found == value)
        if target:
            frame = frame.where((frame["size"] < target) | frame["deletionVector"].isNotNull())
        files = frame.count()
        least = order.num_files + 1 if order.how == NUMBER and order.num_files else order.min_files
        return f"{files} files to rewrite, fewer than {least}" if files < least else ""

    def done(self, what: str, order: Order) -> Rewritten | None:
        """See the protocol."""
        return self._found(_said(order, what), int(order.measured or 0), self._now)

    def _found(self, said: str, after: int, last: int) -> Rewritten | None:
        for entry in self._entries.back_from(last):
            if entry is None or entry.number <= after:
                return None
            if entry.says == said:
                return self._rewritten(entry)
        return None

    def _rewritten(self, entry: Entry) -> Rewritten:
        return Rewritten(
            before=str(entry.number - 1),
            after=str(entry.number),
            files=len(entry.removes),
            bytes=sum(int(one.get("size") or 0) for one in entry.removes),
            into=len(entry.adds),
            into_bytes=sum(int(one.get("size") or 0) for one in entry.adds),
        )

    def rewrite(self, partition: PartitionOrder, order: Order, what: str) -> Rewritten | None:
        """See the protocol."""
        began = self._now
        with self._signed(order, what):
            if order.how == NUMBER:
                self._as_number(partition, order)
            else:
                self._optimize(partition, order)
        return self._found(_said(order, what), began, self._now)

    def _optimize(self, partition: PartitionOrder, order: Order) -> None:
        where = self._predicate(partition)
        columns = ", ".join(quoted(one) for one in order.columns)
        if order.target_bytes:
            for name in ("minFileSize", "maxFileSize"):
                self.session.conf.set(f"{_CONF}.optimize.{name}", str(order.target_bytes))
        self.session.sql(
            f"OPTIMIZE {self._sql}"
            + (f" WHERE {where}" if where else "")
            + (f" ZORDER BY ({columns})" if order.how == ZORDER else "")
        )

    def _as_number(self, partition: PartitionOrder, order: Order) -> None:
        log, snapshot = self._look()
        assert order.num_files is not None  # noqa: S101 - unfit where it is
        rewrite_as_number(self.session, (log, snapshot), self._values(partition), order.num_files)

    def rows_of(self, partition: PartitionOrder, rewritten: Rewritten) -> tuple[RowSums, RowSums]:
        """See the protocol; compares the whole partition before and after the rewrite."""
        before, after = rewritten.before, rewritten.after
        return self.rows_at(partition, before), self.rows_at(partition, after)

    def rows_at(self, partition: PartitionOrder, version: str) -> RowSums:
        """See the protocol."""
        frame, where = self._frame(int(version)), self._predicate(partition)
        return sums_of(frame.where(where) if where else frame)

    def take_back(self, before: str, after: str, what: str) -> bool:
        """See the protocol."""
        if self._now != int(after):
            return False
        entry = self._entries.again(int(after))
        if entry is None or not entry.says.startswith(_OURS):
            raise IntegrityError(
                f"{self.uri}: version {after} is another driver's now, which wrote over this job's"
                " commit by a plain PUT; its rows stand"
            )
        self._restore(int(before), int(after), f"{_OURS}{what}")
        return True

    def _restore(self, wanted: int, latest: int, said: str) -> None:
        """Restore a version, where ``latest`` is expected to be the current one.

        RESTORE applies to whatever version is current. So commits made in between are looked for
        afterwards, and restored.

        Raises:
            IntegrityError: another writer committed in between; the table is as they left it.
        """
        with self._saying(said):
            self.session.sql(f"RESTORE TABLE {self._sql} TO VERSION AS OF {wanted}")
            found = self._found(said, latest, self._now)
            if found is not None and int(found.before) != latest:
                self.session.sql(f"RESTORE TABLE {self._sql} TO VERSION AS OF {found.before}")
                raise IntegrityError(
                    f"{self.uri}: version {found.before} came while version {wanted} was restored;"
                    " the table is at the former again"
                )

    def deletes(self, partition: PartitionOrder, order: Order, what: str) -> StepDone:
        """See the protocol; files with deletion vectors are rewritten without the deleted rows."""
        began, where = self._now, self._predicate(partition)
        with self._signed(order, what):
            self.session.sql(
                f"REORG TABLE {self._sql}{f' WHERE {where}' if where else ''} APPLY (PURGE)"
            )
        found = self._found(_said(order, what), began, self._now)
        if found is None:
            return StepDone("no deleted rows in data files")
        line = f"{found.files:,} files with deleted rows to {found.into:,}"
        return StepDone(line, before=found.before, after=found.after)

    def manifests(self, order: Order) -> StepDone:
        """See the protocol."""
        return StepDone("Delta has none")

    def checkpoint(self, order: Order) -> StepDone:
        """See the protocol; Delta also deletes log entries older than the log's retention."""
        log, snapshot = self._look()
        version = int(snapshot.version())
        if _checkpointed(log) < version:
            # Delta only logs a warning if this fails, or if this version already has a checkpoint.
            log.checkpoint()
        if _checkpointed(log) < version:
            return StepDone("Delta wrote none; what Spark has logged says why")
        return StepDone(f"of version {version}")

    def expire(self, order: Order, now: float) -> StepDone:
        """See the protocol; deletes files that the log records as replaced."""
        hours = self._hours(order, order.keep_seconds)
        if ORPHANS in order.steps and hours == self._hours(order, _orphan_seconds(order)):
            return StepDone(f"left to the step {ORPHANS}, which takes them, too")
        return self._vacuum(order, hours, "LITE")

    def orphans(self, order: Order, now: float) -> StepDone:
        """See the protocol; VACUUM deletes replaced files as well as orphans."""
        return self._vacuum(order, self._hours(order, _orphan_seconds(order)), "")

    def _hours(self, order: Order, seconds: float) -> int:
        """Return the age in hours from which files are deleted."""
        _, snapshot = self._look()
        delta = self._jvm.org.apache.spark.sql.delta.DeltaLog
        own = int(delta.tombstoneRetentionMillis(snapshot.metadata())) / 1000
        # The table's own retention is a lower limit, too, unless the order has below_floor.
        least = max(seconds, 0 if order.below_floor else own)
        return math.ceil(least / _HOUR)

    def _vacuum(self, order: Order, hours: int, how: str) -> StepDone:
        began = self._now
        # Set in the session of the statement, so it affects no other session.
        self.session.conf.set(_RETAIN_CHECKED, "false" if order.below_floor else "true")
        try:
            with self._signed(order, _VACUUM):
                self.session.sql(f"VACUUM {self._sql} {how} RETAIN {hours} HOURS")
        except (Py4JJavaError, PySparkException) as error:
            if "DELTA_CANNOT_VACUUM_LITE" in str(error):
                return StepDone("left: the log does not reach back to what was replaced")
            raise
        finally:
            self.session.conf.unset(_RETAIN_CHECKED)
        files, size = self._vacuumed(_said(order, _VACUUM), began)
        if files is None:
            return StepDone(f"files older than {hours:,} hours; Delta did not say how many")
        line = f"{files:,} files older than {hours:,} hours"
        return StepDone(line, deleted_files=files, deleted_bytes=size)

    def _vacuumed(self, said: str, after: int) -> tuple[int | None, int]:
        """Return the files deleted by a VACUUM after a version, and their bytes.

        The number of files is None if unknown; the bytes are 0 unless all files due were deleted.
        """
        counts: dict[str, int] = {}
        for entry in self._entries.back_from(self._now):
            if entry is None or entry.number <= after:
                break
            if entry.says == said:
                counts |= {
                    one: found for one in _COUNTED if (found := entry.metric(one)) is not None
                }
        files, due, size = (counts.get(one) for one in _COUNTED)
        return files, (size or 0) if files == due else 0

    @property
    def _sql(self) -> str:
        return f"delta.{quoted(self.uri)}"

    @contextmanager
    def _signed(self, order: Order, what: str) -> Iterator[None]:
        with self._saying(_said(order, what)):
            yield

    @contextmanager
    def _saying(self, said: str) -> Iterator[None]:
        """Set the ``userMetadata`` of commits, and translate conflicts.

        Raises:
            TableConflict: another writer committed first.
        """
        self._look()
        self.session.conf.set(_MESSAGE, said)
        try:
            yield
        except (Py4JJavaError, PySparkException) as error:
            if is_conflict(error):
                raise TableConflict(first_line(error)) from error
            raise
        finally:
            self.session.conf.unset(_MESSAGE)


def _checkpointed(log: Any) -> int:
    """Return the version of the last checkpoint; -1 if there is no checkpoint."""
    found = log.readLastCheckpointFile()
    return int(found.get().version()) if found.isDefined() else -1


def _has_row_ids(snapshot: Any) -> bool:
    said = snapshot.metadata().configuration().get("delta.enableRowTracking")
    return bool(said.isDefined()) and str(said.get()).lower() == "true"


def _orphan_seconds(order: Order) -> float:
    return max(order.keep_seconds, order.orphan_seconds, _LEAST_ORPHAN_SECONDS)


def _said(order: Order, what: str) -> str:
    return f"{_OURS}{order.run_id}:{what}"
