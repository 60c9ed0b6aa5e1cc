"""Upserts on the real Iceberg and the real Delta: the last record of each key, however it came."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from compactor.errors import TableConflict
from compactor_spark.upsert.delta import DeltaTables
from compactor_spark.upsert.iceberg import IcebergTables
from tests.spark.upsert_world import LOG_ID, UpsertWorld, histories, winning

_KEYS = 300


@pytest.fixture
def iceberg(tables: SparkSession, tmp_path: Path) -> UpsertWorld:
    return UpsertWorld(IcebergTables(tables), "lake.db.rows", tmp_path)


@pytest.fixture
def delta(tables: SparkSession, tmp_path: Path) -> UpsertWorld:
    return UpsertWorld(DeltaTables(tables), f"{tmp_path.as_uri()}/rows", tmp_path)


class Killed(BaseException):
    """As if the driver were gone."""


@dataclass(frozen=True)
class KilledEngine:
    """An engine whose driver is killed before or after its merge of this number."""

    engine: Any
    merge_number: int
    after: bool
    merges: list[str]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    def merge(self, name: str, *given: Any) -> None:
        self.merges.append(name)
        mine = len(self.merges) == self.merge_number
        if mine and not self.after:
            raise Killed
        self.engine.merge(name, *given)
        if mine:
            raise Killed


class KilledOnBranch(IcebergTables):
    """Killed behind the MERGE into the branch, before main moves there."""

    def _move(self, *given: Any) -> None:
        raise Killed


def test_iceberg_has_the_last_record_of_each_key_in_every_order_of_arrival(
    iceberg: UpsertWorld,
) -> None:
    records = histories(_KEYS, seed=1)
    table = iceberg.table()
    portions = [records[:700], records[700:705], records[705:1000], records[1000:]]
    # What came once comes again, under another number.
    portions.insert(2, records[300:600])
    for number, portion in enumerate(portions, 1):
        assert iceberg.entry(portion) == number
        # Entries 3 and 4 come in with one commit.
        if number != 3:
            iceberg.publish(table)
            assert iceberg.rows() == winning(iceberg.records)
    counts = table.counts
    assert counts.records == len(iceberg.records)
    assert min(counts.inserted, counts.updated, counts.deleted, counts.superseded, counts.stale) > 9
    iceberg.publish(table)
    assert table.counts == counts


def test_whoever_is_killed_in_between_leaves_what_the_next_one_brings_to_an_end(
    iceberg: UpsertWorld,
) -> None:
    records = histories(_KEYS, seed=2)
    iceberg.entry(records[:500])
    iceberg.publish(iceberg.table())
    iceberg.entry(records[500:700])
    before = iceberg.rows()
    on_branch = KilledOnBranch(iceberg.engine.session)
    with pytest.raises(Killed):
        iceberg.publish(iceberg.table(lambda _: on_branch))
    assert iceberg.rows() == before

    for number, (merge_number, after) in enumerate([(1, True), (2, False)], 3):
        # The table of rows is merged, that of keys is not.
        killed = KilledEngine(iceberg.engine, merge_number, after, [])
        with pytest.raises(Killed):
            iceberg.publish(iceberg.table(lambda _, killed=killed: killed))
        state = iceberg.table().load(LOG_ID)
        assert state is not None
        assert (state.last, state.fault) == (1, "")
        # The next one takes one more entry, older records among them.
        iceberg.entry(records[number * 250 : number * 250 + 150])
    # What the table of rows has already is not merged into it a second time, in whatever
    # portions the entries come now.
    iceberg.publish(iceberg.table(), through=2)
    table = iceberg.table()
    iceberg.publish(table)
    assert iceberg.rows() == winning(iceberg.records)
    seen = iceberg.engine.see("lake.db.rows", LOG_ID)
    assert seen is not None
    # The branches that were left behind end with the table's own expiry.
    assert seen.last == len(iceberg.entries)


def test_rows_of_somebody_else_are_kept_and_make_the_merge_begin_again(
    iceberg: UpsertWorld, tables: SparkSession
) -> None:
    records = histories(40, seed=3)
    iceberg.entry(records[:60])
    iceberg.publish(iceberg.table())
    iceberg.entry(records[60:])
    table = iceberg.table()
    state = table.load(LOG_ID)
    assert state is not None
    foreign = "INSERT INTO lake.db.rows (k, part, v) VALUES ('foreign', 0, 'theirs')"
    tables.sql(foreign)
    with pytest.raises(TableConflict):
        table.append(state, iceberg.entries[2], 2, evolve=False)
    assert table.counts.records == 0
    iceberg.publish(table)
    assert iceberg.rows() == {**winning(iceberg.records), ("foreign", 0): "theirs"}


@pytest.mark.parametrize(
    ("done", "told"),
    [
        (
            "CALL lake.system.rollback_to_snapshot('db.rows', {first})",
            "was rolled back to snapshot",
        ),
        ("DROP TABLE lake.db.rows__keys", "its table of keys is gone"),
        ("CREATE OR REPLACE TABLE lake.db.rows (k STRING) USING iceberg", "emptied of all"),
    ],
)
def test_a_table_that_was_taken_back_is_told_and_left_alone(
    iceberg: UpsertWorld, tables: SparkSession, done: str, told: str
) -> None:
    records = histories(4, seed=4)
    for part in (records[:5], records[5:]):
        iceberg.entry(part, outputs=1)
        iceberg.publish(iceberg.table())
    first = tables.table("lake.db.rows.snapshots").orderBy("committed_at").first()
    assert first is not None
    tables.sql(done.format(first=first.snapshot_id))
    state = iceberg.table().load(LOG_ID)
    assert state is not None
    assert told in state.fault


def test_delta_has_the_last_record_of_each_key_and_survives_a_kill(
    delta: UpsertWorld, tables: SparkSession
) -> None:
    records = histories(_KEYS, seed=5)
    delta.entry(records[:600])
    delta.publish(delta.table())
    delta.entry([*records[600:], *records[100:200]])
    killed = KilledEngine(delta.engine, 1, True, [])
    with pytest.raises(Killed):
        delta.publish(delta.table(lambda _: killed))
    state = delta.table().load(LOG_ID)
    assert state is not None
    assert (state.last, state.fault) == (1, "")
    table = delta.table()
    delta.publish(table)
    assert delta.rows() == winning(delta.records)
    assert table.counts.records == len(delta.records) - 600
    tables.sql(f"RESTORE TABLE delta.`{delta.name}` TO VERSION AS OF 1")
    state = delta.table().load(LOG_ID)
    assert state is not None
    assert "restored it to version 1" in state.fault
