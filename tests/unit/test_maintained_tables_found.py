"""Which tables a run finds, and what its first two steps leave for the others."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import pytest

from compactor.errors import InvalidInput
from compactor.s3.store import S3Store, make_client
from compactor.settings.tables import parse_table
from compactor.settings.uris import parse_location
from compactor_tables import document_keys as places
from compactor_tables.aws.glue_catalog import GlueCatalog
from compactor_tables.orders import read_order
from compactor_tables.request import read_request
from compactor_tables.table_discovery import find_tables
from tests.support.memory_store import ManualClock, MemoryStore
from tests.support.moto_server import moto_server

STATE = "s3://state/maintenance/"


class Databases:
    """A catalog of databases; counts what it is asked."""

    def __init__(self, **tables: list[str]) -> None:
        self._tables = tables
        self.asked: list[str] = []

    def databases(self) -> Iterator[str]:
        self.asked.append("databases")
        yield from self._tables

    def tables(self, database: str) -> Iterator[str]:
        self.asked.append(database)
        if database not in self._tables:
            raise InvalidInput("glue_tables", database, "a database that is there")
        yield from self._tables[database]


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore(ManualClock(1_700_000_000.0), page_size=3)
    for name in ("lake", "state"):
        store.add_bucket(name)
    return store


CATALOG = {"bronze": ["events", "logs"], "silver": ["orders", "odd name"], "old": ["x"]}


def found(store: MemoryStore, catalog: Databases | None = None, **given: Any) -> list[str]:
    request = read_request({"s3_state_uri": STATE, **given})
    return [one.text for one in find_tables(request, store, catalog or Databases()).tables]


def test_tables_are_found_by_the_patterns_of_their_names(store):
    catalog = Databases(**CATALOG)
    assert found(store, catalog, glue_tables=["bronze.*", "*.orders", "glue:*ld.x"]) == [
        "glue:bronze.events",
        "glue:bronze.logs",
        "glue:old.x",
        "glue:silver.orders",
    ]


def test_only_databases_that_may_match_are_looked_into(store):
    catalog = Databases(**CATALOG)
    assert found(store, catalog, glue_tables=["bronze.e*"]) == ["glue:bronze.events"]
    assert catalog.asked == ["bronze"]
    assert found(store, catalog, glue_tables=["b*.logs"]) == ["glue:bronze.logs"]
    assert catalog.asked == ["bronze", "databases", "bronze"]
    assert len(found(store, catalog, glue_tables=["*"])) == 4
    with pytest.raises(InvalidInput, match="gold"):
        found(store, catalog, glue_tables=["gold.*"])


def test_a_table_that_no_address_can_name_is_reported(store):
    request = read_request({"s3_state_uri": STATE, "glue_tables": ["silver.*"]})
    assert find_tables(request, store, Databases(**CATALOG)).unnamed == ("silver.odd name",)


def test_a_table_is_found_once_and_those_that_are_named_come_first(store):
    given = {"tables": ["glue:silver.orders", "glue:bronze.logs"], "glue_tables": ["*.*"]}
    assert found(store, Databases(**CATALOG), **given) == [
        "glue:silver.orders",
        "glue:bronze.logs",
        "glue:bronze.events",
        "glue:old.x",
    ]


def test_more_tables_than_a_run_takes_are_refused(store):
    with pytest.raises(InvalidInput, match="max_tables: 3 is not accepted; expected at least 4"):
        found(store, Databases(**CATALOG), glue_tables=["*"], max_tables=3)


def test_delta_tables_are_found_by_their_logs_and_none_is_looked_into(store):
    for key in (
        "a/_delta_log/00000000000000000000.json",
        "a/day=1/part.parquet",
        "a/nested/_delta_log/0.json",
        "b/c/d/_delta_log/0.json",
        "b/c/other.json",
        "b/_hidden/e/_delta_log/0.json",
        "b/.hidden/e/_delta_log/0.json",
        "b/_delta_log_of_mine/0.json",
        *(f"b/f{n}/x" for n in range(10)),
        "1/2/3/4/5/6/_delta_log/0.json",
        "1/2/3/4/5/6/7/_delta_log/0.json",
        "1/2/3/4/5/x/7/_delta_log/0.json",
    ):
        store.seed("lake", key, b"", last_modified=1.0)
    listed: list[str] = []
    store.hooks.before.append(lambda call: listed.append(call.key))
    assert found(store, delta_prefixes=["s3://lake/"]) == [
        "delta:s3://lake/1/2/3/4/5/6/",
        "delta:s3://lake/a/",
        "delta:s3://lake/b/c/d/",
    ]
    assert not [key for key in listed if key.startswith(("a/day", "a/nested", "b/_", "b/."))]
    assert found(store, delta_prefixes=["s3://lake/a/"]) == ["delta:s3://lake/a/"]
    assert found(store, delta_prefixes=["s3://lake/b/", "s3://lake/b/c/"]) == [
        "delta:s3://lake/b/c/d/"
    ]


def test_where_there_is_too_much_else_a_longer_prefix_is_asked_for(store, monkeypatch):
    monkeypatch.setattr("compactor_tables.table_discovery._MOST_PREFIXES", 5)
    for number in range(5):
        store.seed("lake", f"raw/{number}/x", b"", last_modified=1.0)
    with pytest.raises(InvalidInput, match="a longer prefix: below it are more than 5 others"):
        found(store, delta_prefixes=["s3://lake/raw/"])


# Glue's catalog.


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with moto_server() as url:
        for name, value in (("AWS_ENDPOINT_URL", url), ("AWS_REGION", "us-east-1")):
            monkeypatch.setenv(name, value)
        yield url


def test_glue_names_its_tables_of_iceberg_page_by_page(aws):
    glue = boto3.client("glue")
    for database in [f"d{n:03}" for n in range(120)]:
        glue.create_database(DatabaseInput={"Name": database})
    for number in range(120):
        kind = {"table_type": "ICEBERG"} if number % 2 else {"classification": "json"}
        glue.create_table(
            DatabaseName="d001", TableInput={"Name": f"t{number:03}", "Parameters": kind}
        )
    catalog = GlueCatalog()
    assert len(list(catalog.databases())) == 120
    assert list(catalog.tables("d001")) == [f"t{n:03}" for n in range(1, 120, 2)]
    with pytest.raises(InvalidInput, match="nothing"):
        list(catalog.tables("nothing"))


def test_what_glue_has_more_is_asked_for():
    found = {"Name": "t", "Parameters": {"table_type": "iceberg"}}
    pages: list[Any] = [{"TableList": [], "NextToken": "2"}, {"TableList": [found]}]
    asked: list[Any] = []

    def get_tables(**given: Any) -> Any:
        asked.append(given)
        return pages[len(asked) - 1]

    assert list(GlueCatalog(SimpleNamespace(get_tables=get_tables)).tables("d")) == ["t"]
    assert asked == [{"DatabaseName": "d"}, {"DatabaseName": "d", "NextToken": "2"}]


# The handlers.


class Context:
    function_name = "plan"
    memory_limit_in_mb = 1769
    invoked_function_arn = "arn:aws:lambda:us-east-1:123456789012:function:plan"
    aws_request_id = "1"

    def get_remaining_time_in_millis(self) -> int:
        return 60_000


def test_tables_are_listed_planned_and_ordered(aws, tmp_path: Path):
    pytest.importorskip("pyiceberg")
    pytest.importorskip("deltalake")
    from compactor.invocation import kept_store
    from compactor_tables.handlers import list_tables, plan_table
    from tests.support.maintained_tables import DeltaLines, added

    kept_store.cache_clear()
    client = make_client(aws)
    for bucket in ("state", "lake"):
        client.create_bucket(Bucket=bucket)
    memory = MemoryStore(ManualClock(1.0))
    memory.add_bucket("lake")
    DeltaLines(memory).commit(*(added(f"{n}", 100) for n in range(20)))
    store = S3Store(client)
    for key, body in memory.contents("lake").items():
        store.put("lake", key, body)
    given = {
        "s3_state_uri": STATE,
        "delta_prefixes": ["s3://lake/"],
        "policies": [{"match": ["delta:*"], "closed_after_seconds": 0}],
    }
    listed = list_tables.handler({"run_id": "r1", "input": given}, Context())
    assert listed == {
        "run_id": "r1",
        "count": 1,
        "tables": {"bucket": "state", "key": "maintenance/runs/r1/tables.json"},
        "request": {"bucket": "state", "key": "maintenance/runs/r1/maintenance-request.json"},
    }
    assert json.loads(store.get(**listed["request"])) == given
    (item,) = json.loads(store.get(**listed["tables"]))
    assert item == {
        "table": "delta:s3://lake/events/",
        "run_id": "r1",
        "request": listed["request"],
    }
    planned = plan_table.handler(item, Context())
    assert {name: planned[name] for name in ("run_id", "table", "engine", "rule")} == {
        "run_id": "r1",
        "table": "delta:s3://lake/events/",
        "engine": "spark",
        "rule": "rule 1 (delta:*)",
    }
    assert planned["estimate"] == {
        "files": 20,
        "bytes": 2_000,
        "dollars": planned["estimate"]["dollars"],
    }
    assert planned["estimate"]["dollars"] > 0
    table = parse_table("delta:s3://lake/events/")
    place = places.order_key(parse_location(STATE), "r1", table)
    assert planned["order"]["uri"] == f"s3://{place[0]}/{place[1]}"
    order = read_order(planned["order"]["bucket"], planned["order"]["key"], store)
    assert (order.run_id, order.steps, order.partitions[0].files) == (
        "r1",
        ("rewrite", "orphans"),
        20,
    )


def test_a_request_at_fault_ends_immediately(aws):
    from compactor_tables.handlers import list_tables

    given = {"s3_state_uri": STATE, "tabels": []}
    with pytest.raises(InvalidInput, match="tabels"):
        list_tables.handler({"run_id": "r1", "input": given}, Context())
