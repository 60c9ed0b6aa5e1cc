"""A table whose rows have a key, without Spark: its settings, who merges when, what is proved."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from compactor.catalogs.keyed import KeyedCatalog
from compactor.clock import NoDeadline
from compactor.discovery.work_list import oversized_partitions
from compactor.errors import IntegrityError, InvalidInput, NotMerged
from compactor.model import Partition, SourceObject
from compactor.partition import receipts
from compactor.partition.inputs import PartitionRun
from compactor.partition.receipts import Counts
from compactor.partition.run import compact_partition
from compactor.planning.packing import pack
from compactor.settings import arguments as options
from compactor.settings.settings import Settings
from compactor.settings.tables import parse_table
from compactor.sinks.merged_tables import lags
from compactor.sinks.table_catalog import TableState
from compactor.sinks.table_publisher import Publishing, record_publish
from compactor.sinks.table_receipts import TableReceipt, read_receipt, write_receipt
from compactor.sinks.upserts import KEYS_OF, UpsertCounts
from compactor_cli.commands import verify
from compactor_cli.machine.spark_jars import (
    JARS_VARIABLE,
    PACKAGES_VARIABLE,
    jar_settings,
    packages_environment,
)
from compactor_handlers import publish_table
from tests.support.examples import LONG_AGO, settings
from tests.support.memory_tables import ADDRESS
from tests.support.spark_stand_in import workers_as_spark
from tests.support.table_world import Tables
from tests.unit.test_handlers import answer_of
from tests.unit.test_table_proof import check, clean_up, compact_and_expire
from tests.unit.test_table_runs import TableRun

KEYED: dict[str, Any] = {
    "table": ADDRESS,
    "upsert_key": ["id"],
    "order_by": ["at"],
    "delete_when": {"op": ["D", "DELETE"]},
}

# Settings.


def test_a_key_reads_back_as_it_was_and_can_be_given_as_json() -> None:
    made = settings(**KEYED)
    assert (made.upsert_key, made.order_by) == (("id",), ("at",))
    assert made.delete_when == {"op": ("D", "DELETE")}
    assert json.loads(json.dumps(made.to_dict()))["delete_when"] == {"op": ["D", "DELETE"]}
    assert Settings.from_input(made.to_dict()) == made


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"upsert_key": ["id"]}, "upsert_key: .* an empty list unless table is given"),
        ({"table": ADDRESS, "order_by": ["at"]}, "order_by: .* nothing unless upsert_key is given"),
        ({"table": ADDRESS, "delete_when": {"op": ["D"]}}, "delete_when: .* unless upsert_key"),
        ({**KEYED, "order_by": ["at", "id"]}, "columns outside upsert_key: id is equal in all"),
        ({**KEYED, "table_partitioning": ["day"]}, "make the table first"),
        ({**KEYED, "delete_when": {}}, "an object of columns"),
        ({**KEYED, "delete_when": {"op": "D"}}, "an object of columns"),
        ({**KEYED, "delete_when": {"op": []}}, "an object of columns"),
        ({**KEYED, "delete_when": {"op": ["D", "D"]}}, "an object of columns"),
        ({**KEYED, "delete_when": {"": ["D"]}}, "an object of columns"),
        ({**KEYED, "delete_when": "op = 'D'"}, "an object of columns"),
        ({**KEYED, "upsert_key": ["id", "id"]}, "each once"),
        ({**KEYED, "table": "sql:postgresql://h/d#lake.people"}, "a file of SQLite by its whole"),
        (
            {**KEYED, "table": "sql:sqlite:///c.db#lake.people"},
            "a file of SQLite by its whole path",
        ),
        (
            {
                **KEYED,
                "table": "delta:s3://lake/people/",
                "s3_destination_uri": "s3://lake/people/_changes/",
                "s3_source_uri": "s3://lake/people__keys/raw/",
            },
            "the one of its keys, s3://lake/people__keys/, overlaps s3://lake/people__keys/raw/",
        ),
    ],
)
def test_a_setting_that_does_not_fit_a_key_is_reported(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        settings(**given)


def test_the_keys_lie_beside_the_rows() -> None:
    assert parse_table("glue:lake.people").keys.text == "glue:lake.people__keys"
    assert parse_table("rest:https://c/v1#a.b.t").keys.text == "rest:https://c/v1#a.b.t__keys"
    assert parse_table("delta:s3://lake/people/").keys.text == "delta:s3://lake/people__keys/"


def test_an_option_takes_columns_with_their_values_as_json() -> None:
    parser = argparse.ArgumentParser()
    options.add_fields(parser)
    words = ["--upsert-key", "id", "--upsert-key", "part", "--delete-when", '{"op": ["D"]}']
    found = options.fields_from(parser.parse_args(words))
    assert found == {"upsert_key": ["id", "part"], "delete_when": {"op": ["D"]}}
    with pytest.raises(InvalidInput, match="delete_when: 'op = D' is not accepted"):
        options.fields_from(parser.parse_args(["--delete-when", "op = D"]))


def test_nothing_is_copied_into_a_table() -> None:
    large = SourceObject("source", "logs/a.parquet", "e", 2**31, LONG_AGO)
    without_table = settings(format="parquet")
    plain = settings(format="parquet", table=ADDRESS)
    keyed = settings(format="parquet", **KEYED)
    copies = [
        next(pack([large], run_settings, {})).group.copy
        for run_settings in (without_table, plain, keyed)
    ]
    assert copies == [True, False, False]
    # Outputs with these columns and without are not each other's, whatever the key is.
    small = replace(large, size=100)
    groups = {
        next(pack([small], one, {})).group.id
        for one in (plain, keyed, replace(keyed, upsert_key=("other",)))
    }
    assert len(groups) == 2


# What Spark of this machine needs.


def test_spark_is_given_the_jars_of_its_table_or_those_of_a_directory(tmp_path: Path) -> None:
    assert packages_environment(settings(table=ADDRESS)) == {}
    assert jar_settings({}) == {}
    given = packages_environment(settings(**KEYED))
    found = jar_settings(given)
    assert "iceberg-spark-runtime" in found["spark.jars.packages"]
    assert "sqlite" not in found["spark.jars.packages"]
    here = packages_environment(settings(**{**KEYED, "table": "sql:sqlite:////c.db#lake.people"}))
    assert "sqlite-jdbc" in jar_settings(here)["spark.jars.packages"]
    with pytest.raises(InvalidInput, match="a directory with the jars of org"):
        jar_settings({**given, JARS_VARIABLE: str(tmp_path)})
    (tmp_path / "a.jar").touch()
    (tmp_path / "b.jar").touch()
    found = jar_settings({**given, JARS_VARIABLE: str(tmp_path)})
    assert found == {"spark.jars": f"{tmp_path}/a.jar,{tmp_path}/b.jar"}
    place = {"s3_destination_uri": "s3://lake/people/_changes/", "table": "delta:s3://lake/people/"}
    delta = packages_environment(settings(**{**KEYED, **place}))
    assert "delta-spark" in delta[PACKAGES_VARIABLE]


# The catalog of both tables.


@dataclass
class Told:
    """A catalog of a table that says this of itself."""

    state: TableState | None
    address: str = ADDRESS

    def load(self, log_id: str) -> TableState | None:
        return self.state


def said(last: int, *, fault: str = "", keys_of: str = "") -> TableState:
    properties = {KEYS_OF: keys_of} if keys_of else {}
    return TableState("uuid", "s3://t/", last, "snapshot 7", fault, properties=properties)


@pytest.mark.parametrize(
    ("rows", "keys", "last", "fault"),
    [
        (said(0), None, 0, ""),
        (said(3), said(3, keys_of="uuid"), 3, ""),
        # Rows are merged first: killed then, both have what the keys have.
        (said(3), said(2, keys_of="uuid"), 2, ""),
        (said(2), said(3, keys_of="uuid"), 3, "the table was restored"),
        (said(3), None, 0, "its table of keys is gone"),
        (said(3), said(3, keys_of="other"), 3, "belongs to another table, other"),
        (said(3, fault="rolled back"), said(3, keys_of="uuid"), 3, "rolled back"),
        (said(3), said(3, keys_of="uuid", fault="rolled back"), 3, "rolled back"),
    ],
)
def test_a_table_with_a_key_has_what_both_of_its_tables_have(
    rows: TableState, keys: TableState | None, last: int, fault: str
) -> None:
    found = KeyedCatalog(Told(rows), Told(keys)).load("log")  # type: ignore[arg-type] # they only load
    assert found is not None
    assert (found.last, found.version) == (last, "snapshot 7")
    assert fault in found.fault
    assert bool(fault) == bool(found.fault)


def test_the_first_merge_of_all_may_come_in_between_two_looks() -> None:
    tables: dict[str, TableState | None] = {"rows": said(0), "keys": None}

    class Looked:
        def __init__(self, name: str) -> None:
            self._name = name

        def load(self, log_id: str) -> TableState | None:
            found = tables[self._name]
            if self._name == "keys":
                tables.update(rows=said(1), keys=said(1, keys_of="uuid"))
            return found

    found = KeyedCatalog(Looked("rows"), Looked("keys")).load("log")  # type: ignore[arg-type] # they only load
    assert found is not None
    assert (found.last, found.fault) == (1, "")


def test_a_table_with_a_key_is_written_by_spark_alone() -> None:
    catalog = KeyedCatalog(Told(None), Told(said(1)))  # type: ignore[arg-type] # they only load
    assert catalog.load("log") is None
    state = said(0)
    for write in (
        lambda: catalog.create([]),
        lambda: catalog.unfit(state, [], evolve=True),
        lambda: catalog.append(state, [], 1, evolve=True),
    ):
        with pytest.raises(InvalidInput, match="the Spark job of a run"):
            write()


# Who merges, and when.


@dataclass
class MergingSpark:
    """A Spark job that compacts, then brings all that is committed into the table.

    Attributes:
        dies: between the two.
    """

    world: TableRun
    dies: bool = False
    runs: list[str] = field(default_factory=list)

    def run(self, run_id: str, run_uri: str, on_line: Any) -> str:
        self.runs.append(run_id)
        world = self.world
        left = oversized_partitions(*world.settings.layout.run(run_id), world.store)
        for partition in left:
            run = self._partition_run(partition, run_id)
            with workers_as_spark():
                receipt = compact_partition(run, Counts())
            receipt.by_spark = True
            receipts.write(receipt, run.settings, partition, run.store)
        if self.dies:
            return "exit status 137"
        counts = UpsertCounts(records=2, inserted=1, stale=1)
        work = Publishing(
            world.settings, world.store, world.catalog, world.clock, NoDeadline(), run_id,
            counts=counts,
        )  # fmt: skip
        return "" if record_publish(work).status == "done" else "not done"

    def _partition_run(self, partition: Partition, run_id: str) -> PartitionRun:
        world = self.world
        return PartitionRun(
            partition, world.settings, world.store, world.clock, NoDeadline(), run_id
        )

    def stop(self) -> None:
        """Nothing is under way beside the thread that asks."""


class KeyedRun(TableRun):
    """A run whose Spark compacts and merges."""

    def __init__(self, *paths: str, **given: Any) -> None:
        super().__init__(*paths, **given)
        self.settings = replace(self.settings, upsert_key=("id",), order_by=("at",))
        self.spark = MergingSpark(self)
        self.runs = 0

    def next(self) -> Any:
        self.runs += 1
        return self.go(run_id=f"run-{self.runs}", spark=self.spark)


def test_spark_is_started_for_partitions_or_where_the_table_lags_and_nowhere_else() -> None:
    world = KeyedRun("a/", "b/")
    world.spark.dies = True
    first = world.next()
    assert (first.status, first.spark) == ("failed", ["a/", "b/"])
    assert "NotMerged: Spark has not merged all that is committed" in first.cause
    world.spark.dies = False
    second = world.next()
    assert world.spark.runs == ["run-1", "run-2"]
    assert second.spark == []
    assert (second.status, second.table.outputs) == ("succeeded", 2)
    assert "4 records" not in str(second)
    assert "2 records in glue:lake.events: 1 inserted, 0 updated, 0 deleted, 0 superseded," in str(
        second
    )
    third = world.next()
    assert world.spark.runs == ["run-1", "run-2"]
    assert (third.status, third.table.last, third.table.outputs) == ("succeeded", 1, 0)
    assert len(world.table.snapshots) == 1


def test_a_job_that_dies_before_it_merges_fails_the_run_and_the_next_one_merges() -> None:
    world = KeyedRun("a/", delete_after="0d")
    world.spark.dies = True
    found = world.next()
    assert found.status == "failed"
    assert "exit status 137" in found.cause
    assert found.clean_up.deleted == 0
    assert len(world.store.contents("source")) == 2
    world.spark.dies = False
    world.settings = replace(world.settings, delete_after=None)
    found = world.next()
    assert (found.status, found.table.outputs) == ("succeeded", 1)


def test_a_table_lags_while_something_is_committed_that_it_was_not_seen_with() -> None:
    tables = Tables("iceberg")
    assert not lags(tables.world.settings, tables.store)
    tables.compact("a.json")
    assert lags(tables.world.settings, tables.store)

    def nobody(name: str, request: Any) -> Any:
        if name == "table_commit":
            raise IntegrityError("no commit")
        return request()

    tables.catalog.ask = nobody
    with pytest.raises(IntegrityError, match="no commit"):
        tables.publish()
    # Named, and not merged.
    assert tables.load().last == 1
    assert lags(tables.world.settings, tables.store)
    tables.catalog.ask = lambda _, request: request()
    tables.publish()
    assert not lags(tables.world.settings, tables.store)


def test_another_key_is_refused_before_a_run_begins() -> None:
    world = KeyedRun("a/")
    world.next()
    world.next()
    for change, told in (
        ({"order_by": ()}, r'order_by: \[\] .* \["at"\], which glue:lake.events was begun with'),
        ({"upsert_key": (), "order_by": ()}, r'upsert_key: \[\] .* \["id"\]'),
        ({"delete_when": {"op": ("D",)}}, "delete_when: .* null, which"),
    ):
        world.settings = replace(world.settings, **change)
        with pytest.raises(InvalidInput, match=told):
            world.next()
        world.settings = replace(
            world.settings, upsert_key=("id",), order_by=("at",), delete_when=None
        )
    assert world.next().status == "succeeded"


def test_the_function_leaves_such_a_table_to_spark_and_says_whether_it_is_merged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = KeyedRun("a/")
    world.spark.dies = True
    world.next()
    for name, given in (("trusted_store", world.store), ("open_catalog", world.catalog)):
        monkeypatch.setattr(publish_table, name, lambda *_, given=given: given)
    event = {"run_id": "run-9", "settings": world.settings.to_dict()}
    with pytest.raises(NotMerged, match="NotMerged: Spark has not merged"):
        answer_of(publish_table.handler, event)
    assert world.spark.runs == ["run-1"]
    done = TableReceipt(status="done", table=ADDRESS, outputs=3, last=1)
    write_receipt(done, world.settings, "run-9", world.store)
    answer = answer_of(publish_table.handler, event)
    assert (answer["status"], answer["outputs"], answer["last"]) == ("done", 3, 1)


def test_a_receipt_says_what_became_of_the_records() -> None:
    counts = UpsertCounts(records=5, inserted=1, updated=2, deleted=1, stale=1)
    receipt = TableReceipt(table=ADDRESS, outputs=1, rows=5, commits=1, upserts=counts)
    assert receipt.line == f"table: 1 output, 5 records in {ADDRESS}: {counts.line}"
    assert "1 inserted, 2 updated, 1 deleted" in counts.line


def test_counts_of_a_job_that_is_done_again_are_added() -> None:
    world = KeyedRun("a/")
    world.spark.dies = True
    world.next()
    world.spark.dies = False
    world.spark.run("run-2", "", None)
    first = read_receipt(world.settings, "run-2", world.store)
    work = Publishing(
        world.settings, world.store, world.catalog, world.clock, NoDeadline(), "run-2",
        counts=UpsertCounts(records=1, deleted=1),
    )  # fmt: skip
    record_publish(work, first)
    again = read_receipt(world.settings, "run-2", world.store)
    assert again is not None
    assert again.upserts == UpsertCounts(records=3, inserted=1, deleted=1, stale=1)


# Proof.


@pytest.fixture
def tables() -> Iterator[Tables]:
    made = Tables("iceberg")
    made.world.settings = replace(
        made.world.settings,
        delete_after="1d",
        upsert_key=("id",),
        delete_when={"op": ("D",)},
    )
    with workers_as_spark():
        yield made


def test_sources_go_once_their_entry_is_merged(tables: Tables) -> None:
    tables.compact("a.json")
    assert clean_up(tables).counts.deleted == 0
    tables.publish()
    assert clean_up(tables).counts.deleted == 1


def test_sources_stay_where_their_output_is_gone_for_merged_rows_prove_no_records(
    tables: Tables,
) -> None:
    tables.compact("a.json")
    tables.publish()
    compact_and_expire(tables)
    receipt = clean_up(tables)
    assert receipt.counts.deleted == 0
    assert "has one row of each key, which proves no records" in receipt.unsafe[0]
    assert any("which proves no records" in one for one in check(tables).findings)


def test_sources_go_while_their_output_holds_the_records_of_rows_that_a_user_deleted(
    tables: Tables,
) -> None:
    tables.compact("a.json")
    tables.publish()
    tables.table.overwrite([900])
    assert clean_up(tables).counts.deleted == 1


def test_verify_finds_the_key_in_the_log_of_the_table(tables: Tables) -> None:
    tables.compact("a.json")
    tables.publish()
    opened: list[Settings] = []

    def open_catalog(given: Settings, store: Any) -> Any:
        opened.append(given)
        return tables.catalog

    plain = replace(tables.world.settings, table=None, upsert_key=(), order_by=(), delete_when=None)
    checked = verify.check(plain, tables.store, sources=False, catalog=open_catalog)
    assert checked.findings == []
    assert checked.table is not None
    assert (checked.table.outputs, checked.table.waiting) == (1, 0)
    assert [(one.upsert_key, one.delete_when) for one in opened] == [(("id",), {"op": ("D",)})]
