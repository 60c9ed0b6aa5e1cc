"""Sources, a destination and the work of one partition whose outputs hold rows, in memory."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from compactor.clock import NoDeadline
from compactor.log.entries import Columnar, Commit
from compactor.log.log import CommitLog
from compactor.model import ObjectGroup
from compactor.outputs.group import draft_of
from compactor.outputs.pending import PendingOutput
from compactor.partition.inputs import PartitionRun
from compactor.partition.listing import Window
from compactor.partition.receipts import Counts, Receipt
from compactor.partition.run import compact_partition
from compactor.partition.steps import store
from compactor.partition.work import PartitionWork
from compactor.planning.partition_listing import listing_of, take_listing
from compactor.planning.plan import Knowledge, plan
from compactor.settings.settings import Settings
from tests.support.examples import NOW, PARTITION, settings
from tests.support.memory_store import ManualClock, MemoryStore


class RowWorld:
    """One partition of a strict store."""

    def __init__(self, **given: Any) -> None:
        self.given: dict[str, Any] = {"output_format": "parquet", **given}
        self.clock = ManualClock(NOW)
        self.store = MemoryStore(self.clock)
        self.store.add_bucket("lake")
        self.runs = 0

    @property
    def settings(self) -> Settings:
        return settings(**self.given)

    # Sources.

    def put(self, name: str, body: bytes) -> None:
        self.store.seed("source", PARTITION.prefix + name, body, last_modified=NOW - 86_400)

    def put_lines(self, name: str, *records: Mapping[str, Any]) -> None:
        self.put(name, "".join(json.dumps(one) + "\n" for one in records).encode())

    # Work.

    def groups(self) -> tuple[ObjectGroup, ...]:
        state = self.log.load()
        listing = take_listing(listing_of(self.store, PARTITION), PARTITION, state.committed)
        known = Knowledge(state.committed, state.quarantined)
        return plan(listing, self.settings, known, self.clock.now()).groups

    def pending(self) -> PendingOutput:
        """Steps 1 to 3 for the one group that there is."""
        (group,) = self.groups()
        return self._store(group)

    def run(self) -> list[Commit]:
        """The partition, as a worker does it; its commits of this run."""
        self.runs += 1
        run = self._run()
        work = PartitionWork(run, run.log.load(), Receipt(PARTITION.path, run.run_id, "failed"))
        work.publish_unpublished()
        commits = []
        for group in work.plan(Window()).groups:
            pending = self._store(group)
            draft = draft_of(pending, run.run_id, self.clock.now())
            if draft is not None:
                commits.append(work.commit(draft))
        work.finish()
        work.write_checkpoint()
        return commits

    def compact(self) -> Receipt:
        """The partition, as a worker does it, planned again where a group asks for it."""
        self.runs += 1
        return compact_partition(self._run(), Counts())

    def _store(self, group: ObjectGroup) -> PendingOutput:
        return store(group, self.settings, self.store, self._run().destination)

    def _run(self) -> PartitionRun:
        return PartitionRun(
            PARTITION, self.settings, self.store, self.clock, NoDeadline(), f"run-{self.runs}"
        )

    # What is there.

    @property
    def log(self) -> CommitLog:
        return CommitLog(self.store, self.settings, PARTITION)

    def outputs(self) -> list[bytes]:
        found = self.store.contents("lake", "compacted/")
        return [found[key] for key in sorted(found)]

    def table(self) -> pa.Table:
        """What pyarrow reads of all outputs."""
        tables = [pq.read_table(pa.BufferReader(one)) for one in self.outputs()]
        return pa.concat_tables(tables, promote_options="default")

    def rows(self) -> list[dict[str, Any]]:
        """What DuckDB reads of all outputs, as dictionaries."""
        with tempfile.TemporaryDirectory() as directory:
            for number, body in enumerate(self.outputs()):
                (Path(directory) / f"{number}.parquet").write_bytes(body)
            found = duckdb.read_parquet(f"{directory}/*.parquet", union_by_name=True)
            names = found.columns
            return [dict(zip(names, row, strict=True)) for row in found.fetchall()]

    def commits(self) -> list[Commit]:
        """The valid entries of the log, oldest first."""
        return [*self.log.every_commit()][::-1]

    def dead_letters(self) -> list[dict[str, Any]]:
        _, prefix = self.settings.layout.dead_letters(PARTITION.path, "")
        found = self.store.contents("lake", prefix)
        return [json.loads(line) for body in found.values() for line in body.splitlines()]

    def reasons(self) -> list[tuple[str, str]]:
        return [(one["record"], one["reason"]) for one in self.dead_letters()]

    def uploads(self) -> list[str]:
        return [one.key for one in self.store.list_uploads("lake", "")]


def account(commit: Commit) -> Columnar:
    assert commit.output is not None
    assert commit.output.columnar is not None
    return commit.output.columnar
