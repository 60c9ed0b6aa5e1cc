"""An Iceberg table's metadata in an in-memory store, and a fake Athena that changes it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from compactor.settings.tables import TableAddress
from compactor_tables.touched_partitions import Touched
from tests.support.memory_store import MemoryStore

BUCKET = "lake"
MORE_OPTIMIZE = "ICEBERG_OPTIMIZE_MORE_RUNS_NEEDED: Optimize has more to do, run it again"
MORE_VACUUM = "ICEBERG_VACUUM_MORE_RUNS_NEEDED: Vacuum has more to do, run it again"
CONFLICT = "ICEBERG_COMMIT_ERROR: Failed to commit Iceberg update to table: events"


@dataclass
class FakeAthena:
    """A fake Athena with one table, which its statements change.

    Attributes:
        may_delete: whether its role may delete objects.
        reasons: reasons of upcoming failures, by the first word of a statement; empty for success.
        counts: rows and hash of each side, if they differ.
        sent: statements so far, by their tokens.
        ended: results of these statements.
        made: the number of snapshots so far.
        wrote: what snapshots touched, by their ids; missing ones touched nothing.
    """

    store: MemoryStore
    snapshots: list[dict[str, Any]] = field(default_factory=list)
    properties: dict[str, str] = field(default_factory=dict)
    may_delete: bool = True
    reasons: dict[str, list[str]] = field(default_factory=dict)
    counts: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    sent: dict[str, str] = field(default_factory=dict)
    version: int = 0
    ended: dict[str, dict[str, Any]] = field(default_factory=dict)
    made: int = 0
    wrote: dict[str, list[Touched]] = field(default_factory=dict)

    def add_snapshot(self, at: float, **summary: str) -> str:
        """Add a snapshot, as a commit does."""
        number = 100 + self.made
        self.made += 1
        path = f"t/metadata/snap-{number}.avro"
        self.store.put(BUCKET, path, b"list")
        self.snapshots.append(
            {
                "snapshot-id": number,
                "timestamp-ms": int(at * 1_000),
                **self._parent(),
                "manifest-list": f"s3://{BUCKET}/{path}",
                "schema-id": 0,
                "summary": summary or {"operation": "append"},
            }
        )
        self._commit()
        return f"{number}"

    def metadata_uri(self, table: TableAddress) -> str:
        """See :class:`compactor_tables.service_ports.Catalog`."""
        return f"s3://{BUCKET}/t/metadata/{self.version}.metadata.json"

    def rows(self, query_id: str) -> Sequence[Sequence[str]]:
        """See :class:`compactor_tables.service_ports.Queries`."""
        same = ("7", "AB")
        return [[side, *self.counts.get(side, same)] for side in ("before", "after")]

    def touched(self, metadata_uri: str, snapshot_id: str) -> Sequence[Touched]:
        """See :class:`compactor_tables.service_ports.Writes`."""
        return self.wrote.get(snapshot_id, [])

    def run(self, sql: str, token: str, at: float) -> dict[str, Any]:
        """Run a query; return what Step Functions gets when it ends, or catches if it fails."""
        word = sql.partition(" ")[0]
        if token in self.ended:
            # "The same query execution", whatever its result was.
            return self.ended[token]
        self.sent[token] = sql
        self.ended[token] = answer = self._answer(word, sql, at)
        return answer

    def _answer(self, word: str, sql: str, at: float) -> dict[str, Any]:
        reasons = self.reasons.get(word, [])
        reason = reasons.pop(0) if reasons else ""
        execution: dict[str, Any] = {
            "QueryExecutionId": f"q{len(self.sent)}",
            "Statistics": {"DataScannedInBytes": 25_000_000, "EngineExecutionTimeInMillis": 1_500},
            "Status": {"State": "SUCCEEDED"},
        }
        if reason:
            execution["Status"] = {"State": "FAILED", "StateChangeReason": reason}
            cause = json.dumps({"QueryExecution": execution})
            return {"Error": "States.TaskFailed", "Cause": cause}
        self._apply(word, sql, at)
        return {"QueryExecution": execution}

    def _parent(self) -> dict[str, int]:
        return {"parent-snapshot-id": self.snapshots[-1]["snapshot-id"]} if self.snapshots else {}

    def _apply(self, word: str, sql: str, at: float) -> None:
        if word == "OPTIMIZE":
            self.add_snapshot(
                at,
                **{
                    "operation": "replace",
                    "deleted-data-files": "9",
                    "removed-files-size": "900",
                    "added-data-files": "1",
                    "added-files-size": "800",
                },
            )
        if word == "ALTER":
            pairs = sql.partition("(")[2].removesuffix(")").split(", ")
            self.properties |= {
                name.strip("'"): value.strip("'")
                for name, _, value in (pair.partition("=") for pair in pairs)
            }
            self._commit()
        if word == "VACUUM":
            self._vacuum(at)

    def _vacuum(self, at: float) -> None:
        oldest = (at - float(self.properties["vacuum_max_snapshot_age_seconds"])) * 1_000
        gone = [one for one in self.snapshots[:-1] if one["timestamp-ms"] < oldest]
        self.snapshots = [one for one in self.snapshots if one not in gone]
        self._commit()
        for one in gone if self.may_delete else ():
            key = one["manifest-list"].removeprefix(f"s3://{BUCKET}/")
            listed = [found for page in self.store.list_objects(BUCKET, key) for found in page]
            self.store.delete_sources(listed)

    def _commit(self) -> None:
        self.version += 1
        document = {
            "format-version": 2,
            "location": f"s3://{BUCKET}/t",
            "current-snapshot-id": self.snapshots[-1]["snapshot-id"] if self.snapshots else -1,
            "current-schema-id": 0,
            "schemas": [
                {
                    "schema-id": 0,
                    "fields": [
                        {"id": 1, "name": "kind", "type": "string"},
                        {"id": 2, "name": "id", "type": "long"},
                        {"id": 3, "name": "more", "type": {"type": "struct", "fields": []}},
                    ],
                }
            ],
            "snapshots": self.snapshots,
            "properties": self.properties,
            "refs": {},
        }
        body = json.dumps(document).encode()
        self.store.put(BUCKET, f"t/metadata/{self.version}.metadata.json", body)
