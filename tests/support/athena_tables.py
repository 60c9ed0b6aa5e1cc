"""An Iceberg table's metadata in an in-memory store, and a fake Athena that changes it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil

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
        counts: rows before and after a rewrite.
        sent: statements so far, by their tokens.
        ended: results of these statements.
        made: the number of snapshots so far.
    """

    store: MemoryStore
    snapshots: list[dict[str, Any]] = field(default_factory=list)
    properties: dict[str, str] = field(default_factory=dict)
    may_delete: bool = True
    reasons: dict[str, list[str]] = field(default_factory=dict)
    counts: Sequence[str] = ("7", "7")
    sent: dict[str, str] = field(default_factory=dict)
    refs: dict[str, Any] = field(default_factory=dict)
    ended: dict[str, dict[str, Any]] = field(default_factory=dict)
    made: int = 0

    def add_snapshot(self, at: float, **summary: str) -> str:
        """Add a snapshot, as a commit does."""
        number = 100 + self.made
        self.made += 1
        path = f"t/metadata/snap-{number}.avro"
        self.store.put(BUCKET, path, b"list")
        self.snapshots.append(
            {
                "snapshot-id": number,
                "sequence-number": number,
                "timestamp-ms": int(at * 1_000),
                **self._parent(),
                "manifest-list": f"s3://{BUCKET}/{path}",
                "schema-id": 0,
                "summary": summary or {"operation": "append"},
            }
        )
        return f"{number}"

    def table(self) -> TableMetadata:
        """Return the table's present metadata."""
        return TableMetadataUtil.parse_raw(json.dumps(self._document()))

    def row(self, query_id: str) -> Sequence[str]:
        """Return what a comparison answered with."""
        return self.counts

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
        if word == "VACUUM":
            self._vacuum(at)

    def _vacuum(self, at: float) -> None:
        oldest = (at - float(self.properties["vacuum_max_snapshot_age_seconds"])) * 1_000
        gone = [one for one in self.snapshots[:-1] if one["timestamp-ms"] < oldest]
        self.snapshots = [one for one in self.snapshots if one not in gone]
        for one in gone if self.may_delete else ():
            key = one["manifest-list"].removeprefix(f"s3://{BUCKET}/")
            listed = [found for page in self.store.list_objects(BUCKET, key) for found in page]
            self.store.delete_sources(listed)

    def _document(self) -> dict[str, Any]:
        return {
            "format-version": 2,
            "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
            "last-updated-ms": 0,
            "last-sequence-number": 1_000,
            "last-column-id": 2,
            "partition-specs": [{"spec-id": 0, "fields": []}],
            "default-spec-id": 0,
            "last-partition-id": 999,
            "sort-orders": [{"order-id": 0, "fields": []}],
            "default-sort-order-id": 0,
            "location": f"s3://{BUCKET}/t",
            "current-snapshot-id": self.snapshots[-1]["snapshot-id"] if self.snapshots else None,
            "current-schema-id": 0,
            "schemas": [
                {
                    "type": "struct",
                    "schema-id": 0,
                    "fields": [
                        {"id": 1, "name": "kind", "type": "string", "required": False},
                        {"id": 2, "name": "id", "type": "long", "required": False},
                    ],
                }
            ],
            "snapshots": self.snapshots,
            "properties": self.properties,
            "refs": self.refs,
        }
