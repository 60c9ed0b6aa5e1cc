"""Outputs with records of keys, a table of them, and what must be in it."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from compactor.sinks.table_catalog import TableFile
from compactor.sinks.upserts import POSITION, SOURCE_KEY, UpsertKey
from compactor_spark.upsert.engines import Engine
from compactor_spark.upsert.tables import SparkUpserts

LOG_ID = "log"
KEY = UpsertKey(("k", "part"), ("at", "step"), {"op": ("D",)})


class Record(NamedTuple):
    """``k`` and ``part`` are its key; None is a value like others."""

    k: str | None
    part: int
    at: int | None
    step: str | None
    op: str | None
    v: str
    source: str
    position: int

    @property
    def rank(self) -> tuple[object, ...]:
        at = (self.at is not None, self.at or 0)
        step = (self.step is not None, self.step or "")
        return (at, step, self.source, self.position)


def histories(keys: int, seed: int) -> list[Record]:
    """Records of many keys, with ties in all that orders them, nulls and deletes.

    Each key is a case of its own: what arrives when is drawn for each.
    """
    draw = random.Random(seed)
    records: list[Record] = []
    for number in range(keys):
        k = None if number % 50 == 7 else f"key-{number // 2}"
        for _ in range(draw.choice((1, 2, 3, 5, 8))):
            records.append(
                Record(
                    k,
                    number % 2 if k is not None else number,
                    draw.choice((None, 1, 2, 3)),
                    draw.choice((None, "", "a", "b")),
                    draw.choice((None, "U", "U", "D")),
                    f"v-{len(records)}",
                    f"logs/é/{draw.randrange(6)} +%.json",
                    # No two records have one place.
                    len(records),
                )
            )
    draw.shuffle(records)
    return records


def winning(records: Iterable[Record]) -> dict[tuple[str | None, int], str]:
    """What each key must have, by nothing but a look at all of its records as they arrived."""
    best: dict[tuple[str | None, int], Record] = {}
    for one in records:
        known = best.get((one.k, one.part))
        if known is None or one.rank >= known.rank:
            best[one.k, one.part] = one
    return {key: one.v for key, one in best.items() if one.op != "D"}


@dataclass
class UpsertWorld:
    """One table, and a log of entries with outputs that go into it.

    Attributes:
        engine: what the table is made of.
        name: of the table, for the engine.
        entries: outputs by the number of their entry.
    """

    engine: Engine
    name: str
    directory: Path
    entries: dict[int, list[TableFile]] = field(default_factory=dict)
    paths: dict[TableFile, str] = field(default_factory=dict)
    records: list[Record] = field(default_factory=list)

    def entry(self, records: Sequence[Record], outputs: int = 2) -> int:
        """Name outputs with these records in the next entry."""
        number = len(self.entries) + 1
        files = []
        for part in range(outputs):
            files.append(self.output(records[part::outputs], f"{number} {part}"))
        self.entries[number] = files
        self.records += records
        return number

    def output(self, records: Sequence[Record], name: str) -> TableFile:
        """An output with these records."""
        path = self.directory / f"out put+%{name}.parquet"
        columns = {
            "k": pa.array([one.k for one in records], pa.string()),
            "part": pa.array([one.part for one in records], pa.int32()),
            "at": pa.array([one.at for one in records], pa.int64()),
            "step": pa.array([one.step for one in records], pa.string()),
            "op": pa.array([one.op for one in records], pa.string()),
            "v": pa.array([one.v for one in records], pa.string()),
            SOURCE_KEY: pa.array([one.source for one in records], pa.string()),
            POSITION: pa.array([one.position for one in records], pa.int64()),
        }
        pq.write_table(pa.table(columns), path)
        file = TableFile("lake", path.name, path.stat().st_size, len(records))
        self.paths[file] = str(path)
        return file

    def table(self, engine: Engine | None = None, key: UpsertKey = KEY) -> SparkUpserts:
        return SparkUpserts(
            engine or self.engine,
            self.name,
            key,
            f"test:{self.name}",
            lambda files: [self.paths[file] for file in files],
        )

    def publish(self, table: SparkUpserts, through: int | None = None) -> None:
        """What is named and not in yet comes in with one commit, as the publisher does it."""
        last = through or max(self.entries)
        state = table.load(LOG_ID)
        if state is None:
            table.create(self.entries[1])
            state = table.load(LOG_ID)
        assert state is not None
        assert not state.fault
        files = [file for n in range(state.last + 1, last + 1) for file in self.entries[n]]
        if files:
            table.append(state, files, last, evolve=False)

    def rows(self) -> dict[tuple[str | None, int], str]:
        """What is in the table; fails where a key has two rows."""
        seen = self.engine.see(self.name, LOG_ID)
        assert seen is not None
        found = self.engine.rows(self.name, seen).collect()
        by_key = {(row.k, row.part): row.v for row in found}
        assert len(by_key) == len(found)
        return by_key
