"""Delta: a MERGE whose transaction identifier is the number of the entry.

Delta stores the number in the same commit as the rows, and skips a MERGE whose number it already
has.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped] # py4j has no annotations
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from compactor.errors import TableConflict
from compactor.failures import first_line
from compactor.settings.tables import KEYS_SUFFIX
from compactor.sinks.named_history import Restored, restored_before
from compactor.sinks.upserts import quoted
from compactor_spark.upsert.engines import PREFIX, Seen, Token, cause_of, columns_of

_WRITE = "spark.databricks.delta.write"
_MESSAGE = "spark.databricks.delta.commitInfo.userMetadata"
_CONFLICTS = ("ConcurrentModification", "Concurrent", "MetadataChanged", "ProtocolChanged")
# How many commits back our last one is searched for, to see whether a RESTORE followed it.
_HISTORY = 200


@dataclass(frozen=True, slots=True)
class DeltaTables:
    """Implements :class:`compactor_spark.upsert.engines.Engine`; table names are URIs.

    Args:
        session: with Delta's catalog and extensions.
    """

    session: SparkSession

    def keys_of(self, name: str) -> str:
        """See the protocol."""
        return f"{name.rstrip('/')}{KEYS_SUFFIX}/"

    def see(self, name: str, log_id: str) -> Seen | None:
        """See the protocol."""
        jvm: Any = self.session._jvm
        # Spark's own statements would take four jobs for the same information.
        found = jvm.org.apache.spark.sql.delta.DeltaLog.forTableWithSnapshot(
            self.session._jsparkSession, name
        )
        snapshot = found._2()
        version = int(snapshot.version())
        if version < 0:
            return None
        said = snapshot.transactions().get(f"{PREFIX}.{log_id}")
        last = int(said.get()) if said.isDefined() else 0
        metadata = snapshot.metadata()
        return Seen(
            uuid=str(metadata.id()),
            location=str(found._1().dataPath().toString()),
            last=last,
            version=version,
            schema=StructType.fromJson(json.loads(metadata.schemaString())),
            properties=_of_scala(metadata.configuration()),
            fault=self._fault(name, Token(log_id, last)) if last else "",
        )

    def rows(self, name: str, seen: Seen) -> DataFrame:
        """See the protocol."""
        return self.session.read.format("delta").option("versionAsOf", str(seen.version)).load(name)

    def create(
        self, name: str, schema: StructType, properties: Mapping[str, str], beside: str = ""
    ) -> None:
        """See the protocol; the name is also the table's location."""
        try:
            if properties:
                said = [f"{_text(one)} = {_text(value)}" for one, value in properties.items()]
                columns, also = columns_of(schema), f"TBLPROPERTIES ({', '.join(said)})"
                self.session.sql(f"CREATE TABLE {_sql(name)} ({columns}) USING delta {also}")
            else:
                # CREATE TABLE would treat a location with outputs below it as an existing table.
                nothing = self.session.createDataFrame([], schema)
                nothing.write.format("delta").mode("error").save(name)
        except (Py4JJavaError, PySparkException) as error:
            condition = error.getCondition() if isinstance(error, PySparkException) else ""
            if "EXISTS" in (condition or "") or is_conflict(error):
                raise TableConflict(f"{name} is there already") from error
            raise

    def add_columns(self, name: str, added: StructType) -> None:
        """See the protocol."""
        self.session.sql(f"ALTER TABLE {_sql(name)} ADD COLUMNS ({columns_of(added)})")

    def merge(self, name: str, seen: Seen, statement: Callable[[str], str], token: Token) -> None:
        """See the protocol; concurrent changes that Delta itself can reconcile are no conflict.

        Delta would merge into a table that was restored or recreated, so this is checked first.
        """
        now = self.see(name, token.log_id)
        if now is None or now.fault or (now.uuid, now.last) != (seen.uuid, seen.last):
            raise TableConflict(f"{name} was changed by another writer before the merge")
        try:
            with self._transaction(token):
                self.session.sql(statement(_sql(name)))
        except (Py4JJavaError, PySparkException) as error:
            if is_conflict(error):
                raise TableConflict(f"{name}: {first_line(error)}") from error
            raise

    def _fault(self, name: str, token: Token) -> str:
        restores: list[Restored] = []
        history = self.session.sql(f"DESCRIBE HISTORY {_sql(name)} LIMIT {_HISTORY}")
        for one in history.select(
            "version", "operation", "operationParameters", "userMetadata"
        ).collect():
            if one.userMetadata == token.text:
                return restored_before(restores, one.version)
            back = (one.operationParameters or {}).get("version")
            if one.operation == "RESTORE" and back is not None:
                restores.append(Restored(one.version, int(back)))
        return ""

    @contextmanager
    def _transaction(self, token: Token) -> Iterator[None]:
        settings = {
            f"{_WRITE}.txnAppId": f"{PREFIX}.{token.log_id}",
            f"{_WRITE}.txnVersion": str(token.number),
            _MESSAGE: token.text,
        }
        for name, value in settings.items():
            self.session.conf.set(name, value)
        try:
            yield
        finally:
            for name in settings:
                self.session.conf.unset(name)


def is_conflict(error: Exception) -> bool:
    """Return whether Delta reports that another writer committed first."""
    cause = cause_of(error)
    return "delta" in cause and any(conflict in cause for conflict in _CONFLICTS)


def _of_scala(found: Any) -> dict[str, str]:
    pairs = found.iterator()
    said = {}
    while pairs.hasNext():
        pair = pairs.next()
        said[str(pair._1())] = str(pair._2())
    return said


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _sql(name: str) -> str:
    return f"delta.{quoted(name)}"
