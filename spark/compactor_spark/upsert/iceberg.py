"""Iceberg: a MERGE into a branch, then one commit of metadata that moves main to it.

The MERGE itself cannot set a property, and Iceberg would retry its commit on top of any other. So
the MERGE is written to a branch that no other writer knows. Then one commit moves ``main`` there,
sets the number and drops the branch. It is a compare-and-swap of the table's metadata, which any
catalog supports, and is made only if main is still the snapshot that the branch started from. If
the job is killed before, nothing is visible; the branch is removed by the first expiry of snapshots
after ``_KEEP_DAYS``.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped] # py4j has no annotations
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from compactor.errors import IntegrityError, TableConflict, TransientStoreError
from compactor.failures import first_line
from compactor.settings.tables import KEYS_SUFFIX
from compactor.sinks.named_history import Snapshot, rolled_back
from compactor.sinks.upserts import quoted
from compactor_spark.upsert.engines import PREFIX, Seen, Token, cause_of, columns_of

_MAIN = "main"
_KEEP_DAYS = 7
_SUMMARY = f"spark.sql.iceberg.snapshot-property.{PREFIX}.token"
_UNKNOWN = "org.apache.iceberg.exceptions.CommitStateUnknownException"
_CONFLICTS = (
    "org.apache.iceberg.exceptions.CommitFailedException",
    "org.apache.iceberg.exceptions.ValidationException",
)


@dataclass(frozen=True, slots=True)
class IcebergTables:
    """Implements :class:`compactor_spark.upsert.engines.Engine`; names are ``catalog.ns.table``.

    Args:
        session: with the catalog, and Iceberg's extensions.
        makes_namespaces: whether a missing namespace of a new table is created, as pyiceberg does
            in a database.
        keys_beside: whether the table of keys is placed next to the table of rows instead of at its
            namespace's default location, as access rights to locations are granted before it
            exists. Not every catalog allows this.
    """

    session: SparkSession
    makes_namespaces: bool = False
    keys_beside: bool = False

    def keys_of(self, name: str) -> str:
        """See the protocol."""
        return f"{name}{KEYS_SUFFIX}"

    def see(self, name: str, log_id: str) -> Seen | None:
        """See the protocol."""
        if not self.session.catalog.tableExists(_sql(name)):
            return None
        operations = self._operations(name)
        metadata = operations.refresh()
        properties = dict(metadata.properties())
        last = _number(name, properties, log_id)
        current = metadata.currentSnapshot()
        return Seen(
            uuid=str(metadata.uuid()),
            location=str(metadata.location()),
            last=last,
            version=None if current is None else int(current.snapshotId()),
            schema=self.session.table(_sql(name)).schema,
            properties=properties,
            fault=self._fault(operations, properties, log_id) if last else "",
            handle=metadata,
        )

    def rows(self, name: str, seen: Seen) -> DataFrame:
        """See the protocol."""
        if seen.version is None:
            return self.session.createDataFrame([], seen.schema)
        return self.session.read.option("versionAsOf", seen.version).table(_sql(name))

    def create(
        self, name: str, schema: StructType, properties: Mapping[str, str], beside: str = ""
    ) -> None:
        """See the protocol."""
        if self.makes_namespaces:
            namespace = name.rpartition(".")[0]
            self.session.sql(f"CREATE NAMESPACE IF NOT EXISTS {_sql(namespace)}")
        writer = self.session.createDataFrame([], schema).writeTo(_sql(name)).using("iceberg")
        for one, value in properties.items():
            writer = writer.tableProperty(one, value)
        if beside and self.keys_beside:
            writer = writer.tableProperty("location", f"{beside.rstrip('/')}{KEYS_SUFFIX}")
        try:
            writer.create()
        except PySparkException as error:
            if error.getCondition() == "TABLE_OR_VIEW_ALREADY_EXISTS":
                raise TableConflict(f"{name} is there already") from error
            raise

    def add_columns(self, name: str, added: StructType) -> None:
        """See the protocol."""
        self.session.sql(f"ALTER TABLE {_sql(name)} ADD COLUMNS ({columns_of(added)})")

    def merge(self, name: str, seen: Seen, statement: Callable[[str], str], token: Token) -> None:
        """See the protocol."""
        branch = f"{PREFIX.replace('-', '_')}_{token.number}_{uuid.uuid4().hex[:8]}"
        with _translated(name):
            self._branch(name, seen, branch)
            with self._summary(token):
                self.session.sql(statement(f"{_sql(name)}.branch_{branch}"))
            self._move(name, seen, branch, token)

    def _branch(self, name: str, seen: Seen, branch: str) -> None:
        at = "" if seen.version is None else f" AS OF VERSION {seen.version}"
        self.session.sql(
            f"ALTER TABLE {_sql(name)} CREATE BRANCH {branch}{at} RETAIN {_KEEP_DAYS} DAYS"
        )

    def _move(self, name: str, seen: Seen, branch: str, token: Token) -> None:
        table = self._table(name)
        if _snapshot_of(table.operations().current(), branch) == seen.version:
            # Even if the merge changed nothing, the commit must move main: catalogs compare the
            # snapshot of main, not properties.
            append = table.newAppend().set(f"{PREFIX}.token", token.text)
            append.toBranch(branch).commit()
        operations = table.operations()
        base = operations.refresh()
        if str(base.uuid()) != seen.uuid or _snapshot_of(base, _MAIN) != seen.version:
            raise TableConflict(f"{name} was changed by another writer during the merge")
        if _number(name, dict(base.properties()), token.log_id) != seen.last:
            raise TableConflict(f"{name} was given other entries during the merge")
        staged = base.snapshot(base.ref(branch).snapshotId())
        said = {
            f"{PREFIX}.{token.log_id}.last": str(token.number),
            f"{PREFIX}.{token.log_id}.snapshot": f"{staged.snapshotId()}:{staged.sequenceNumber()}",
        }
        jvm: Any = self.session._jvm
        builder = jvm.org.apache.iceberg.TableMetadata.buildFrom(base)
        builder = builder.setBranchSnapshot(staged.snapshotId(), _MAIN).setProperties(said)
        self._commit(operations, base, builder.removeRef(branch).build())

    def _commit(self, operations: Any, base: Any, changed: Any) -> None:
        """Do the catalog's compare-and-swap, without retries."""
        operations.commit(base, changed)

    @contextmanager
    def _summary(self, token: Token) -> Iterator[None]:
        self.session.conf.set(_SUMMARY, token.text)
        try:
            yield
        finally:
            self.session.conf.unset(_SUMMARY)

    def _fault(self, operations: Any, properties: Mapping[str, str], log_id: str) -> str:
        text = properties.get(f"{PREFIX}.{log_id}.snapshot", "")
        ours, _, sequence = text.partition(":")
        if not ours.isdecimal() or not sequence.isdecimal():
            return f"its property {PREFIX}.{log_id}.snapshot is {text!r}"
        metadata = operations.current()
        return rolled_back(
            _snapshots(metadata),
            _snapshot_of(metadata, _MAIN),
            int(ours),
            int(sequence),
            self._earlier(operations, int(sequence)),
        )

    def _earlier(self, operations: Any, sequence: int) -> Iterator[Mapping[int, Snapshot]]:
        """Yield the snapshots of earlier metadata, newest first, back to a sequence number."""
        jvm: Any = self.session._jvm
        for one in reversed(operations.current().previousFiles()):
            try:
                metadata = jvm.org.apache.iceberg.TableMetadataParser.read(
                    operations.io(), one.file()
                )
            except Py4JJavaError:
                # This metadata file has been deleted.
                return
            yield _snapshots(metadata)
            if int(metadata.lastSequenceNumber()) < sequence:
                return

    def _table(self, name: str) -> Any:
        jvm: Any = self.session._jvm
        loader = jvm.org.apache.iceberg.spark.Spark3Util
        table = loader.loadIcebergTable(self.session._jsparkSession, _sql(name))
        # The session's catalog may have cached the table.
        table.refresh()
        return table

    def _operations(self, name: str) -> Any:
        return self._table(name).operations()


def _sql(name: str) -> str:
    return ".".join(quoted(part) for part in name.split("."))


def _snapshot_of(metadata: Any, branch: str) -> int | None:
    ref = metadata.ref(branch)
    return None if ref is None else int(ref.snapshotId())


def _number(name: str, properties: Mapping[str, str], log_id: str) -> int:
    text = properties.get(f"{PREFIX}.{log_id}.last", "0")
    if not text.isdecimal():
        raise IntegrityError(f"{name} has property {PREFIX}.{log_id}.last = {text!r}: no number")
    return int(text)


def _snapshots(metadata: Any) -> dict[int, Snapshot]:
    found = {}
    for one in metadata.snapshots():
        summary = dict(one.summary() or {})
        total = summary.get("total-data-files")
        adds_all = total is not None and total == summary.get("added-data-files")
        found[int(one.snapshotId())] = Snapshot(one.parentId(), int(one.sequenceNumber()), adds_all)
    return found


@contextmanager
def _translated(name: str) -> Iterator[None]:
    try:
        yield
    except (Py4JJavaError, PySparkException) as error:
        cause = cause_of(error)
        if _UNKNOWN in cause:
            raise TransientStoreError(f"{name}: {first_line(error)}") from error
        if any(conflict in cause for conflict in _CONFLICTS):
            raise TableConflict(f"{name}: {first_line(error)}") from error
        raise
