"""Random schedules: whatever others do during a rewrite, and wherever it is killed.

After each step of another writer the table's rows are noted. A rewrite must not change them.
"""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import pytest

pytest.importorskip("pyiceberg")
pytest.importorskip("deltalake")
pytest.importorskip("duckdb")

import duckdb
from deltalake import DeltaTable, write_deltalake
from pyiceberg.table.snapshots import ancestors_of
from pyiceberg.types import LongType

from compactor.errors import TableConflict
from compactor_tables.engine_choice import NONE
from compactor_tables.lease import LeaseHeld
from compactor_tables.rewriting.delta import DeltaRewrites
from compactor_tables.rewriting.iceberg import IcebergRewrites
from tests.support.directory_store import DirectoryStore
from tests.support.maintained_tables import BUCKET, IcebergLake
from tests.support.memory_hooks import Call, Crashed
from tests.support.memory_store import ManualClock, MemoryStore
from tests.unit import test_worker_delta as delta
from tests.unit import test_worker_iceberg as iceberg

_SCHEDULES, _SECOND = 100, 0.2


class Table(Protocol):
    """A table that others write while it is maintained."""

    store: MemoryStore

    def ids(self) -> Counter[int]: ...

    def steps(self) -> list[Callable[[], Any]]: ...

    def maintain(self, run_id: str) -> None: ...

    def rewrite(self) -> None: ...

    def quiet(self) -> None: ...


class OfIceberg:
    """Written by pyiceberg."""

    def __init__(self, directory: Path, chance: random.Random) -> None:
        self.lake, self.chance = IcebergLake(directory, time.time()), chance
        self.store, self._files = self.lake.store, 0
        self._table = iceberg.small(self.lake, chance.choice([iceberg.BY_KIND, iceberg.BY_NOTHING]))
        self._other = self.lake.catalog.load_table("db.events")

    def ids(self) -> Counter[int]:
        return Counter(self._table.refresh().scan().to_arrow()["id"].to_pylist())

    def steps(self) -> list[Callable[[], Any]]:
        return [self._append, self._delete, self._delete_on_read, self._roll_back, self._evolve]

    def _append(self) -> None:
        iceberg.append(self._other, iceberg.rows(self.chance.randrange(1_000, 9_000)))

    def _delete(self) -> None:
        self._other.refresh().delete(f"id = {self.chance.randrange(40)}")

    def _delete_on_read(self) -> None:
        self._files += 1
        live = [one.file for one in self._other.refresh().scan().plan_files()]
        chosen = self.chance.choice(live)
        position = {chosen.file_path: [self.chance.randrange(chosen.record_count)]}
        iceberg.delete_positions(self.lake, self._other, position, name=f"d{self._files}")

    def _roll_back(self) -> None:
        table = self._other.refresh()
        known = [one.snapshot_id for one in ancestors_of(table.current_snapshot(), table.metadata)]
        target = known[min(len(known) - 1, self.chance.randrange(1, 4))]
        table.manage_snapshots().rollback_to_snapshot(target).commit()

    def _evolve(self) -> None:
        with self._other.refresh().update_schema() as update:
            update.add_column(f"extra{self.chance.randrange(10**9)}", LongType())

    def maintain(self, run_id: str) -> None:
        plan = iceberg.planned(self.lake, min_files=2)
        if plan.engine != NONE:
            iceberg.carried_out(self.lake, plan.order(run_id))

    def rewrite(self) -> None:
        """Rewrite as another maintainer does, who has no lease in this state."""
        order = iceberg.planned(self.lake, min_files=2).order("second")
        worker = IcebergRewrites(order.address, self.store)
        for one in order.partitions:
            with contextlib.suppress(TableConflict):
                worker.rewrite(one, order, f"rewrite {one.name}")

    def quiet(self) -> None:
        self.store.hooks.clear()


class OfDelta:
    """Written by delta-rs."""

    def __init__(self, directory: Path, chance: random.Random) -> None:
        self.store, self.chance = DirectoryStore(BUCKET, directory / "lake"), chance
        delta.small(self.store, chance.choice([["kind"], None]))
        self._uri = delta.uri(self.store)

    def ids(self) -> Counter[int]:
        found = delta.ids(self.store)
        files = DeltaTable(self._uri).file_uris()
        read = duckdb.sql("SELECT id FROM read_parquet($files)", params={"files": files})
        assert read is not None
        assert Counter(row[0] for row in read.fetchall()) == found
        return found

    def steps(self) -> list[Callable[[], Any]]:
        return [self._append, self._delete, self._update, self._overwrite, self._restore]

    def _append(self) -> None:
        write_deltalake(self._uri, delta.rows(self.chance.randrange(1_000, 9_000)), mode="append")

    def _delete(self) -> None:
        DeltaTable(self._uri).delete(f"id = {self.chance.randrange(40)}")

    def _update(self) -> None:
        DeltaTable(self._uri).update(
            {"share": "0.5"}, predicate=f"id < {self.chance.randrange(40)}"
        )

    def _overwrite(self) -> None:
        write_deltalake(self._uri, delta.rows(500), mode="overwrite")

    def _restore(self) -> None:
        table = DeltaTable(self._uri)
        table.restore(max(1, table.version() - self.chance.randrange(1, 4)))

    def maintain(self, run_id: str) -> None:
        plan = delta.planned(self.store, min_files=2)
        if plan.engine != NONE:
            delta.carried_out(self.store, plan.order(run_id))

    def rewrite(self) -> None:
        """Rewrite as another maintainer does, who has no lease in this state."""
        order = delta.planned(self.store, min_files=2).order("second")
        worker = DeltaRewrites(order.address, self.store, ManualClock(time.time()))
        for one in order.partitions:
            with contextlib.suppress(TableConflict):
                worker.rewrite(one, order, f"rewrite {one.name}")

    def quiet(self) -> None:
        self.store.quiet()


@pytest.mark.parametrize("kind", [OfIceberg, OfDelta], ids=["iceberg", "delta"])
@pytest.mark.parametrize("seed", range(_SCHEDULES))
def test_rows_are_those_of_the_other_writers(
    tmp_path: Path, kind: Callable[[Path, random.Random], Table], seed: int
) -> None:
    chance = random.Random(seed)
    table = kind(tmp_path, chance)
    expected = table.ids()
    moments = sorted(chance.sample(range(80), chance.randrange(1, 5)))
    kill, calls, is_busy = chance.randrange(160), 0, False
    lock = threading.Lock()

    def meanwhile(_: Call) -> None:
        nonlocal calls, expected, is_busy
        # The requests of the other writer, from whatever thread, are none of the schedule.
        if is_busy:
            return
        with lock:
            calls += 1
            if calls == kill:
                raise Crashed
            if not moments or calls < moments[0]:
                return
            del moments[0]
            is_busy = True
        if chance.random() < _SECOND:
            table.rewrite()
        else:
            chance.choice(table.steps())()
            expected = table.ids()
        is_busy = False

    # First: a directory is looked at after what the other writer did to it.
    table.store.hooks.before.insert(0, meanwhile)
    for number in range(2):
        with contextlib.suppress(Crashed, LeaseHeld):
            table.maintain(f"run{number}")
    table.quiet()
    assert table.ids() == expected
    # Killed as it gave its lease back, it still has it.
    with contextlib.suppress(LeaseHeld):
        table.maintain("last")
    assert table.ids() == expected
