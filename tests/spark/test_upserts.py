"""Upserts on the real Iceberg and the real Delta: the last record of each key, however it came."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from compactor.clock import NoDeadline
from compactor.errors import IntegrityError, InvalidInput, TableConflict
from compactor.sinks.table_catalog import TableFile
from compactor.sinks.table_publisher import Publishing, publish_table
from compactor.sinks.table_receipts import TableReceipt
from compactor.sinks.upserts import UpsertKey
from compactor_spark.upsert.delta import DeltaTables
from compactor_spark.upsert.engines import Seen
from compactor_spark.upsert.iceberg import IcebergTables
from compactor_spark.upsert.tables import SparkUpserts
from tests.spark.upsert_world import KEY, LOG_ID, Record, UpsertWorld, histories, winning
from tests.support.world import World

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


FOREIGN = "INSERT INTO lake.db.rows (k, part, v) VALUES ('foreign', 0, 'theirs')"


class Overtaken(IcebergTables):
    """Somebody else commits between the last look at the table and the commit."""

    def _commit(self, *given: Any) -> None:
        self.session.sql(FOREIGN.replace("0", "1"))
        super()._commit(*given)


def test_iceberg_has_the_last_record_of_each_key_in_every_order_of_arrival(
    iceberg: UpsertWorld,
) -> None:
    records = histories(_KEYS, seed=1)
    table = iceberg.table()
    # What came once comes again; objects that were written again have other records in its place.
    again = [one._replace(v=f"{one.v} again") for one in records[200:600:3]]
    # Spark reads larger outputs first, and these are the later ones.
    still_again = [one._replace(v=f"{one.v} again") for one in again]
    iceberg.entry(records[:700])
    iceberg.publish(table)
    assert iceberg.rows() == winning(iceberg.records)
    iceberg.entry([*records[500:510], *again])
    iceberg.entry([*still_again[::2], *records[700:900]])
    iceberg.publish(table)
    assert iceberg.rows() == winning(iceberg.records)
    iceberg.entry(records[900:])
    iceberg.publish(table)
    assert iceberg.rows() == winning(iceberg.records)
    counts = table.counts
    assert counts.records == len(iceberg.records)
    assert min(counts.inserted, counts.updated, counts.deleted, counts.superseded, counts.stale) > 9


def test_a_publisher_killed_in_between_leaves_what_the_next_one_brings_to_an_end(
    iceberg: UpsertWorld,
) -> None:
    records = histories(_KEYS, seed=2)
    iceberg.entry(records[:500])
    iceberg.publish(iceberg.table())
    iceberg.entry(records[500:700])
    before = iceberg.rows()
    on_branch = KilledOnBranch(iceberg.engine.session)
    with pytest.raises(Killed):
        iceberg.publish(iceberg.table(on_branch))
    assert iceberg.rows() == before

    for number, (merge_number, after) in enumerate([(1, True), (2, False)], 3):
        # The table of rows is merged, that of keys is not.
        killed = KilledEngine(iceberg.engine, merge_number, after, [])
        with pytest.raises(Killed):
            iceberg.publish(iceberg.table(killed))
        state = iceberg.table().load(LOG_ID)
        assert state is not None
        assert (state.last, state.fault) == (1, "")
        # The next one takes one more entry, older records among them.
        iceberg.entry(records[number * 250 : number * 250 + 150])
    # What the table of rows has already is not merged into it a second time: an older row would
    # come back until the next merge.
    before = iceberg.rows()
    iceberg.publish(iceberg.table(), through=2)
    assert iceberg.rows() == before
    table = iceberg.table()
    iceberg.publish(table)
    assert iceberg.rows() == winning(iceberg.records)
    state = table.load(LOG_ID)
    assert state is not None
    assert (state.last, state.fault) == (len(iceberg.entries), "")


def test_rows_of_another_writer_are_kept_and_make_the_merge_begin_again(
    iceberg: UpsertWorld, tables: SparkSession
) -> None:
    records = histories(40, seed=3)
    iceberg.entry(records[:60])
    iceberg.publish(iceberg.table())
    iceberg.entry(records[60:])
    table = iceberg.table()
    state = table.load(LOG_ID)
    assert state is not None
    tables.sql(FOREIGN)
    with pytest.raises(TableConflict, match="changed by another writer during the merge"):
        table.append(state, iceberg.entries[2], 2, evolve=False)
    with pytest.raises(TableConflict, match=r"^lake\.db\.rows: "):
        iceberg.publish(iceberg.table(Overtaken(tables)))
    assert table.counts.records == 0
    iceberg.publish(table)
    assert iceberg.rows() == {
        **winning(iceberg.records),
        ("foreign", 0): "theirs",
        ("foreign", 1): "theirs",
    }


def test_a_table_that_was_taken_back_is_reported_and_left_alone(
    iceberg: UpsertWorld, tables: SparkSession
) -> None:
    iceberg.entry(histories(4, seed=4))
    iceberg.publish(iceberg.table())
    first, *_ = tables.table("lake.db.rows.snapshots").orderBy("committed_at").take(1)
    assert _fault(iceberg) == ""
    tables.sql(f"CALL lake.system.rollback_to_snapshot('db.rows', {first.snapshot_id})")
    assert "was rolled back to snapshot" in _fault(iceberg)
    tables.sql(FOREIGN)
    tables.sql(
        "CALL lake.system.expire_snapshots(table => 'db.rows', retain_last => 1,"
        " older_than => TIMESTAMP '2100-01-01 00:00:00')"
    )
    assert "was rolled back to snapshot" in _fault(iceberg)
    tables.sql("CREATE OR REPLACE TABLE lake.db.rows (k STRING) USING iceberg")
    assert "emptied of all" in _fault(iceberg)
    state = iceberg.table().load(LOG_ID)
    assert state is not None
    with pytest.raises(IntegrityError, match="emptied of all"):
        iceberg.table().append(state, iceberg.entries[1], 2, evolve=False)
    tables.sql("DROP TABLE lake.db.rows__keys")
    assert _fault(iceberg) == "its table of keys is gone"


def _fault(world: UpsertWorld) -> str:
    state = world.table().load(LOG_ID)
    assert state is not None
    return state.fault


def test_delta_has_the_last_record_of_each_key_and_survives_a_kill(
    delta: UpsertWorld, tables: SparkSession
) -> None:
    records = histories(_KEYS, seed=5)
    delta.entry(records[:600])
    delta.publish(delta.table())
    delta.entry([*records[600:], *records[100:200]])
    killed = KilledEngine(delta.engine, 1, True, [])
    with pytest.raises(Killed):
        delta.publish(delta.table(killed))
    table = delta.table()
    delta.publish(table)
    assert delta.rows() == winning(delta.records)
    assert table.counts.records == len(delta.records) - 600
    tables.sql(f"RESTORE TABLE delta.`{delta.name}` TO VERSION AS OF 1")
    state = delta.table().load(LOG_ID)
    assert state is not None
    assert "restored it to version 1" in state.fault


def test_delta_merges_nothing_into_keys_that_were_restored_since_they_were_seen(
    delta: UpsertWorld, tables: SparkSession
) -> None:
    records = histories(20, seed=9)
    for part in (records[:20], records[20:40]):
        delta.entry(part)
        delta.publish(delta.table())
    delta.entry(records[40:])
    table = delta.table()
    state = table.load(LOG_ID)
    assert state is not None
    keys = delta.engine.keys_of(delta.name)
    tables.sql(f"RESTORE TABLE delta.`{keys}` TO VERSION AS OF 1")
    with pytest.raises(TableConflict, match="changed by another writer before the merge"):
        table.append(state, delta.entries[3], 3, evolve=False)
    state = delta.table().load(LOG_ID)
    assert state is not None
    assert "restored it to version 1" in state.fault


class OnS3(IcebergTables):
    """Says that its tables lie where those of a run do."""

    def see(self, name: str, log_id: str) -> Seen | None:
        seen = super().see(name, log_id)
        return seen and replace(seen, location=f"s3://tables/{name}/")


def test_the_publisher_of_the_table_log_brings_records_in_also_after_a_kill(
    tables: SparkSession, tmp_path: Path
) -> None:
    world = World(settle_seconds=0)
    address = "sql:file#db.rows"
    world.settings = replace(world.settings, table=address)
    upserts = UpsertWorld(OnS3(tables), "lake.db.rows", tmp_path)
    records = histories(60, seed=6)

    def compact(name: str, chosen: list[Record]) -> None:
        lines = [json.dumps(one._asdict()) for one in chosen]
        world.put(name, "\n".join(lines).encode())
        assert world.run().status == "done"

    def outputs(files: Sequence[TableFile]) -> list[str]:
        """The rows of the outputs, which this store has as lines."""
        stored = [world.store.get(file.bucket, file.key).splitlines() for file in files]
        read = [[Record(**json.loads(line)) for line in lines] for lines in stored]
        return [
            upserts.paths[upserts.output(rows, file.key.rsplit("/", 1)[-1])]
            for rows, file in zip(read, files, strict=True)
        ]

    def publish(engine: Any) -> TableReceipt:
        catalog = SparkUpserts(engine, upserts.name, KEY, address, outputs)
        receipt = TableReceipt()
        deadline, clock = NoDeadline(), world.clock
        publish_table(
            Publishing(world.settings, world.store, catalog, clock, deadline, "run"), receipt
        )
        return receipt

    compact("a.json", records[:100])
    first = publish(upserts.engine)
    assert (first.status, first.last, first.commits) == ("done", 1, 1)
    assert upserts.rows() == winning(records[:100])
    compact("b.json", records[100:])
    with pytest.raises(Killed):
        publish(KilledEngine(upserts.engine, 1, True, []))
    second = publish(upserts.engine)
    assert (second.last, second.commits, second.conflicts) == (2, 1, 0)
    assert upserts.rows() == winning(records)
    assert publish(upserts.engine).commits == 0


def test_outputs_that_do_not_fit_are_refused_before_anything_is_merged(
    iceberg: UpsertWorld,
) -> None:
    iceberg.entry(histories(4, seed=7))
    (first, _) = iceberg.entries[1]
    doubtful = first._replace(rows=1)
    iceberg.paths[doubtful] = iceberg.paths[first]
    iceberg.table().create([first])
    for key, file, told in (
        (UpsertKey(("gone",)), first, "missing: gone"),
        (replace(KEY, delete_when={"gone": ("D",)}), first, "missing: gone"),
        (KEY, doubtful, f"have {first.rows} records, not the 1 of their commits"),
    ):
        table = iceberg.table(key=key)
        state = table.load(LOG_ID)
        assert state is not None
        with pytest.raises((InvalidInput, IntegrityError), match=told):
            table.append(state, [file], 1, evolve=False)
    assert iceberg.rows() == {}
    for key in (
        UpsertKey(("k",), KEY.order_by, KEY.delete_when),
        UpsertKey(KEY.columns, ("step", "at"), KEY.delete_when),
        UpsertKey(KEY.columns, KEY.order_by),
    ):
        with pytest.raises(InvalidInput, match="upsert_key, order_by and delete_when"):
            iceberg.table(key=key).load(LOG_ID)


def test_columns_of_the_table_are_added_where_that_is_wanted_and_never_narrowed(
    iceberg: UpsertWorld, tables: SparkSession
) -> None:
    records = histories(4, seed=8)
    iceberg.entry(records)
    table = iceberg.table()
    table.create(iceberg.entries[1])
    tables.sql("ALTER TABLE lake.db.rows DROP COLUMN v")
    state = table.load(LOG_ID)
    assert state is not None
    found = table.unfit(state, iceberg.entries[1], evolve=False)
    assert all("column v" in one for one in found.values())
    assert set(found) == set(iceberg.entries[1])
    assert table.unfit(state, iceberg.entries[1], evolve=True) == {}
    table.append(state, iceberg.entries[1], 1, evolve=True)
    assert iceberg.rows() == winning(records)
    for change in ("DROP COLUMN at", "ADD COLUMN at INT"):
        tables.sql(f"ALTER TABLE lake.db.rows {change}")
    state = table.load(LOG_ID)
    assert state is not None
    found = table.unfit(state, iceberg.entries[1], evolve=True)
    assert set(found) == set(iceberg.entries[1])
    for one in found.values():
        assert "column at: 'bigint' is not accepted; expected int" in one
