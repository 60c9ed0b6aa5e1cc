"""A world whose sources and outputs are read by a table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from compactor.cleaning.clean_partition import record_clean_up
from compactor.cleaning.clean_up_receipts import CleanUpReceipt
from compactor.clock import NoDeadline
from compactor.partition.inputs import PartitionRun
from compactor.partition.receipts import Counts, Receipt
from compactor.partition.run import compact_partition
from compactor.readers.clean_up_gate import ReaderGate
from compactor.readers.outcome import Outcome
from compactor.readers.refresh import Refreshing, refresh
from tests.support.examples import PARTITION
from tests.support.memory_readers import TABLE, MemoryReaders, shown
from tests.support.world import World

LINE = '{{"id": "{}"}}'


class Lake:
    """A world with a readers' table over its sources and outputs."""

    def __init__(self, **given: Any) -> None:
        defaults: dict[str, Any] = {
            "reader_table": TABLE,
            "date_format": "%Y/%m/%d",
            "window": "2026-01-02..",
            "settle_seconds": 0,
            "delete_after": "7d",
        }
        self.world = World(**{**defaults, **given})
        self.store, self.clock = self.world.store, self.world.clock
        self.catalog = MemoryReaders()
        self.unsafe: list[str] = []

    def refresh(self, **given: Any) -> Outcome:
        work = Refreshing(self.world.settings, self.store, self.clock, self.catalog, **given)
        (outcome,) = refresh([PARTITION.path], work)
        return outcome

    def run(self, *, refreshes: bool = False) -> Receipt:
        """Run one worker, which refreshes the table only if asked."""
        self.world.runs += 1
        settings = self.world.settings
        run = PartitionRun(
            PARTITION,
            settings if refreshes else replace(settings, reader_table=None),
            self.store,
            self.clock,
            NoDeadline(),
            f"run-{self.world.runs}",
            readers=lambda _: self.catalog,
        )
        receipt = compact_partition(run, Counts())
        assert receipt.status == "done"
        return receipt

    def add(self, *names: str) -> None:
        for name in names:
            self.world.add(name, LINE)

    def clean_up(self) -> int:
        """Clean up once; return how many sources were deleted."""
        self.world.runs += 1
        run = self.world.clean_up_run(readers=ReaderGate(lambda _: self.catalog))
        receipt = record_clean_up(run, CleanUpReceipt(run.path, run.run_id))
        self.unsafe, self.warnings = receipt.unsafe, receipt.warnings
        assert receipt.status == "done"
        return receipt.counts.deleted

    def each_once(self) -> bool:
        found = shown(self.catalog, self.store)
        return set(found) == self.world.records and max(found.values()) == 1
