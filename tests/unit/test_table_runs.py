"""A run with a table: its settings, the whole of it, the Lambda function, and what is reported."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa
import pytest

from compactor.catalogs.opening import open_catalog
from compactor.errors import IntegrityError, InvalidInput, TransientStoreError
from compactor.invocation import kept_store
from compactor.orchestration.partition_retry import RETRIES
from compactor.report.page import render
from compactor.s3.store import S3Store, make_client
from compactor.settings.settings import Settings
from compactor.settings.tables import parse_table
from compactor.sinks.table_catalog import TableFile
from compactor_handlers import discover, publish_table, report
from tests.support.examples import PARTITION, settings
from tests.support.memory_tables import ADDRESS, IcebergTable, MemoryCatalog
from tests.support.moto_server import moto_server
from tests.support.parquet_outputs import commit_rows, parquet
from tests.support.world import records_in
from tests.unit.test_handlers import STARTED, Context, answer_of, emitted
from tests.unit.test_whole_run import World

# Settings.


@pytest.mark.parametrize(
    "table",
    [
        "glue:lake.events",
        "rest:https://catalog/v1#a.b.events",
        "sql:sqlite:////data/catalog.db#lake.events",
    ],
)
def test_a_table_makes_rows_of_the_outputs_and_reads_back_as_it_was(table):
    made = settings(table=table)
    assert (made.output_format, made.columnar, made.table) == ("parquet", True, table)
    assert Settings.from_input(made.to_dict()) == made


@pytest.mark.parametrize(
    "table",
    [
        *("", "events", "glue:events", "glue:a.b.c", "glue:uri#a.b", "rest:#a.b", "rest:a.b"),
        *("sql:uri#events", "hive:a.b", "delta:", "delta:lake", "delta:s3://lake/", "glue:a.b c"),
        *("glue:a.é", 7),
    ],
)
def test_what_is_no_address_of_a_table_is_refused(table):
    with pytest.raises(InvalidInput, match="table"):
        settings(table=table)


def test_a_delta_table_has_its_outputs_below_it_where_vacuum_does_not_look():
    table = "delta:s3://lake/events"
    made = settings(table=table, s3_destination_uri="s3://lake/events/_compacted/")
    assert made.table == "delta:s3://lake/events/"
    for place in (
        "s3://lake/compacted/",
        "s3://lake/events/compacted/",
        "s3://lake/events/",
        "s3://lake/events/_delta_log/x/",
        "s3://other/events/_compacted/",
    ):
        with pytest.raises(InvalidInput, match="a prefix such as s3://lake/events/_compacted/"):
            settings(table=table, s3_destination_uri=place)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"table_partitioning": ["day"]}, "an empty list unless table is given"),
        ({"table": ADDRESS, "table_partitioning": ["day", "day"]}, "each once"),
        ({"table": ADDRESS, "schema_evolution": "rename"}, '"refuse" or "add_columns"'),
        ({"table": ADDRESS, "upsert_key": ["id"], "spark_engine": "none"}, "Spark merges"),
        ({"table": "delta:s3://source/logs/x/"}, "neither contains the source"),
    ],
)
def test_a_setting_that_does_not_fit_a_table_is_reported(given, said):
    with pytest.raises(InvalidInput, match=said):
        settings(**given)


def test_parts_of_an_address():
    found = parse_table("rest:https://catalog/v1#a.b.events")
    assert (found.kind, found.uri, found.name) == (
        "rest",
        "https://catalog/v1",
        ("a", "b", "events"),
    )
    assert found.location is None


# The whole of a run.


class TableRun(World):
    """Partitions of text, whose outputs go into a table in memory as if they were rows."""

    def __init__(self, *paths: str, **given: Any) -> None:
        super().__init__(*paths, **given)
        self.settings = replace(self.settings, table=ADDRESS)
        self.table = IcebergTable(self.store, lambda body: list(records_in(body).elements()))
        self.catalog = MemoryCatalog(self.table)

    def go(self, **given: Any) -> Any:
        done = self.run(open_catalog=lambda *_: self.catalog, **given)
        assert done.report is not None
        return done.report


def test_a_whole_run_brings_its_outputs_into_the_table_by_one_commit():
    world = TableRun("a/", "b/", "c/")
    found = world.go()
    assert found.status == "succeeded"
    assert (found.table.outputs, found.table.rows, found.table.commits) == (3, 6, 1)
    assert len(world.table.snapshots) == 1
    told = world.stored("report.json")["table"]
    assert (told["table"], told["status"]) == (ADDRESS, "done")
    assert "table: 3 outputs, 6 rows in glue:lake.events" in render(world.stored("report.json"))
    assert "table: 3 outputs, 6 rows in glue:lake.events, 1001" in str(found)


def test_what_a_table_does_not_take_fails_the_run_and_nothing_is_cleaned_up():
    world = TableRun("a/", delete_after="0d")
    world.catalog.load = refuse  # type: ignore[method-assign] # a test may
    refusing.clear()
    found = world.go()
    assert found.status == "failed"
    assert "table: IntegrityError: it was rolled back" in found.cause
    assert found.clean_up.deleted == 0
    assert len(world.store.contents("source")) == 2


refusing: list[str] = []


def refuse(log_id: str) -> Any:
    """The look before the run finds nothing wrong."""
    refusing.append(log_id)
    if len(refusing) > 1:
        raise IntegrityError("it was rolled back")


def test_a_catalog_that_does_not_answer_is_asked_again():
    world = TableRun("a/")
    left = [2]

    def ask(name: str, request: Any) -> Any:
        if name == "table_load" and len(world.outputs) and left[0]:
            left[0] -= 1
            raise TransientStoreError("no answer")
        return request()

    world.catalog.ask = ask
    assert world.go(retries=RETRIES).status == "succeeded"
    assert len(world.waits) == 2


def test_a_table_that_is_wrong_ends_a_run_before_it_begins():
    world = TableRun("a/")

    def rolled_back(log_id: str) -> Any:
        raise IntegrityError("it was rolled back")

    world.catalog.load = rolled_back  # type: ignore[method-assign] # a test may
    with pytest.raises(IntegrityError, match="it was rolled back"):
        world.go()
    assert world.outputs == []


# The function.


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with moto_server() as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", url)
        kept_store.cache_clear()
        for bucket in ("source", "lake"):
            boto3.client("s3", endpoint_url=url).create_bucket(Bucket=bucket)
        yield url
        kept_store.cache_clear()


def test_the_function_brings_in_what_is_committed_and_says_when_time_is_up(
    s3: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = settings(table=f"sql:sqlite:///{tmp_path}/catalog.db#lake.events")
    store = S3Store(make_client(s3))
    commit_rows(store, given, PARTITION, pa.table({"id": [1, 2, 3]}))
    event = {"run_id": "run-1", "settings": given.to_dict()}
    answer = answer_of(publish_table.handler, event, Context(milliseconds=(30_000,)))
    assert (answer["status"], answer["outputs"]) == ("more", 0)
    capsys.readouterr()
    answer = answer_of(publish_table.handler, event)
    assert (answer["status"], answer["last"]) == ("done", 1)
    assert (answer["outputs"], answer["rows"]) == (1, 3)
    (told,) = [one for one in emitted(capsys) if "PublishedOutputs" in one]
    assert (told["PublishedOutputs"], told["PublishedRows"], told["TableConflicts"]) == (
        [1.0],
        [3.0],
        [0.0],
    )
    reported = answer_of(report.handler, {**event, "started_at": STARTED})
    assert reported["table"]["outputs"] == 1


def test_discovery_refuses_a_table_that_cannot_take_outputs_and_writes_nothing(
    s3: str, tmp_path: Path
) -> None:
    given = settings(table=f"sql:sqlite:///{tmp_path}/catalog.db#lake.events")
    store = S3Store(make_client(s3))
    store.put("source", f"{PARTITION.prefix}a.json", b"{}\n")
    body = parquet(pa.table({"id": [1]}))
    store.put("lake", "first.parquet", body)
    catalog: Any = open_catalog(given, store)
    catalog.create([TableFile("lake", "first.parquet", len(body), 1)])
    handle = catalog._catalog.load_table(catalog._address.name)
    with handle.transaction() as transaction:
        transaction.set_properties({"encryption.key-id": "arn:key"})
    before = [one.key for page in store.list_objects("lake", "") for one in page]
    asked = {"input": given.to_dict(), "run_id": "run-1", "started_at": STARTED}
    with pytest.raises(InvalidInput, match="expected an Iceberg table without encryption"):
        answer_of(discover.handler, asked)
    assert [one.key for page in store.list_objects("lake", "") for one in page] == before


def test_a_run_that_never_came_to_its_table_has_failed(s3: str) -> None:
    given = settings(table=ADDRESS)
    event = {"run_id": "run-2", "settings": given.to_dict(), "started_at": STARTED}
    failure = {"Error": "InvalidInput", "Cause": json.dumps({"errorMessage": "no such column"})}
    reported = answer_of(report.handler, {**event, "table_failure": failure})
    assert reported["status"] == "failed"
    assert "table: InvalidInput: no such column" in reported["cause"]
    reported = answer_of(report.handler, event)
    assert "the run ended before anything came into the table" in reported["cause"]


def test_what_is_not_installed_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    from compactor.catalogs import opening
    from compactor.table_formats import installed

    monkeypatch.setattr(installed, "find_spec", lambda _: None)
    with pytest.raises(InvalidInput, match=r"pip install 's3-compactor\[iceberg\]'"):
        opening.open_catalog(settings(table=ADDRESS), S3Store(make_client("http://127.0.0.1:9")))
