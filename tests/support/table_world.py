"""A world whose outputs are published to a table in memory."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from compactor.clock import NoDeadline
from compactor.sinks.table_log import TableLog
from compactor.sinks.table_publisher import Publishing, record_publish
from compactor.sinks.table_receipts import TableReceipt
from tests.support.memory_store import Crashed
from tests.support.memory_tables import ADDRESS, DeltaTable, IcebergTable, MemoryCatalog
from tests.support.world import World, records_in

KINDS: dict[str, Callable[..., Any]] = {"iceberg": IcebergTable, "delta": DeltaTable}


class Tables:
    """A world with a table."""

    def __init__(self, kind: str) -> None:
        self.world = World(settle_seconds=0)
        self.world.settings = replace(self.world.settings, table=ADDRESS)
        self.store = self.world.store
        self.table = KINDS[kind](self.store, lambda body: list(records_in(body).elements()))
        self.catalog = MemoryCatalog(self.table)
        self.publishers = 0

    def compact(self, *names: str) -> None:
        """Add sources, and run one worker over them."""
        for name in names:
            self.world.add(name, '{{"id": "{}"}}')
        assert self.world.run().status == "done"

    def publishing(self, **given: Any) -> Publishing:
        self.publishers += 1
        return replace(
            Publishing(
                self.world.settings,
                self.store,
                self.catalog,
                self.world.clock,
                NoDeadline(),
                f"publisher-{self.publishers}",
                pause=lambda _: None,
            ),
            **given,
        )

    def publish(self, **given: Any) -> TableReceipt:
        """Run one publisher, which tests may let die."""
        try:
            return record_publish(self.publishing(**given))
        except Crashed:
            return TableReceipt(status="crashed")

    def load(self) -> Any:
        marker = json.loads(self.store.contents("lake")["_compactor/compacted/identity.json"])
        return TableLog(self.store, self.world.settings, marker["log_id"]).load()

    def must_have_all(self) -> None:
        """Check that each record of each source is in the table once."""
        assert self.table.records() == Counter(dict.fromkeys(self.world.records, 1))

    @property
    def log_keys(self) -> list[str]:
        return list(self.store.contents("lake", "_compactor/compacted/table/"))
