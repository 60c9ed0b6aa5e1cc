"""Like :mod:`tests.support.killed_tables`, with Athena and an Iceberg table in Glue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from compactor.settings.tables import parse_table
from compactor_tables.handlers import athena_step, plan_table
from compactor_tables.orders import (
    EXPIRE,
    REWRITE,
    Condition,
    Order,
    PartitionOrder,
    write_order,
)
from tests.support.athena_tables import MORE_OPTIMIZE, MORE_VACUUM, FakeAthena
from tests.support.killed_tables import DAY, STATE, World

TABLE = parse_table("glue:bronze.events")
PARTITIONS = ("a", "b")


@dataclass
class AthenaWorld(World):
    """Runs whose orders are planned for Athena.

    Attributes:
        prefixes: prefixes of our own writes, without what Athena writes.
    """

    prefixes: tuple[str, ...] = ("state/",)
    address: str = TABLE.text
    athena: FakeAthena = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        now = self.clock.now()
        self.athena = FakeAthena(self.store)
        self.athena.reasons = {"OPTIMIZE": ["", MORE_OPTIMIZE], "VACUUM": [MORE_VACUUM]}
        self.athena.add_snapshot(now - 30 * DAY)
        self.athena.add_snapshot(now - DAY)
        for run_id in ("one", "two"):
            write_order(_order(run_id), STATE, self.store)

    def patch(self) -> None:
        super().patch()
        self.monkeypatch.setattr(plan_table, "glue", lambda: SimpleNamespace(optimizers_on=_none))
        self.monkeypatch.setattr(athena_step, "load_iceberg", lambda *_: self._table_now())
        self.monkeypatch.setattr(athena_step, "row_of", self._row)

    def _row(self, query_id: str) -> Sequence[str]:
        return self.athena.row(query_id)

    def _table_now(self) -> SimpleNamespace:
        return SimpleNamespace(metadata=self.athena.table())

    def _engine(self, item: Mapping[str, Any], plan: dict[str, Any]) -> None:
        work, answer = None, None
        for _ in range(100):
            event = {**item, "plan": plan, "work": work, "answer": answer}
            step = self._call(athena_step, event)
            if step["status"] != "query":
                return
            work = step["work"]
            for attempt in range(20):
                self.clock.advance(1)
                token = f"{step['token']}-{attempt}"
                answer = self.athena.run(step["sql"], token, self.clock.now())
                if "MORE_RUNS_NEEDED" not in answer.get("Cause", ""):
                    break
        raise AssertionError("it does not end")


def _none(*_: object) -> list[str]:
    return []


def _order(run_id: str) -> Order:
    partitions = tuple(
        PartitionOrder(f"kind={one}", where=(Condition("kind", "identity", one),), files=9)
        for one in PARTITIONS
    )
    steps = (REWRITE, EXPIRE)
    return Order(
        run_id=run_id, table=TABLE.text, engine="athena", steps=steps, partitions=partitions
    )
