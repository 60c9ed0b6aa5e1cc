"""A catalog in a database keeps its tables under its name, which is part of a table's address."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from compactor.errors import InvalidInput
from compactor.model import Partition
from compactor.settings.tables import parse_table
from compactor.table_formats.file_io import properties_of
from compactor_tables.metadata.measuring import measure_table
from tests.support.examples import NOW
from tests.support.memory_store import ManualClock, MemoryStore
from tests.support.table_places import Place

pytest.importorskip("pyiceberg")

from pyiceberg.catalog.sql import SqlCatalog


def test_an_address_names_its_catalog_where_it_is_not_ours():
    found = parse_table("sql:sqlite:////c.db#prod:lake.events")
    assert (found.uri, found.catalog, found.name) == (
        "sqlite:////c.db",
        "prod",
        ("lake", "events"),
    )
    assert found.text == "sql:sqlite:////c.db#prod:lake.events"
    assert found.keys.text == "sql:sqlite:////c.db#prod:lake.events__keys"
    ours = parse_table("sql:sqlite:////c.db#lake.events")
    assert (ours.catalog, ours.text) == ("compactor", "sql:sqlite:////c.db#lake.events")
    assert parse_table("sql:sqlite:////c.db#compactor:lake.events") == ours


@pytest.mark.parametrize(
    "text",
    [
        "sql:sqlite:////c.db#:lake.events",
        "sql:sqlite:////c.db#a b:lake.events",
        "sql:sqlite:////c.db#a:b:lake.events",
        "rest:https://catalog#prod:lake.events",
        "glue:prod:lake.events",
    ],
)
def test_what_is_no_name_of_a_catalog_is_refused(text):
    with pytest.raises(ValueError, match=r"sql:URI#CATALOG:NAMESPACE\.TABLE"):
        parse_table(text)


def test_a_table_of_another_catalog_in_the_database_is_found_by_its_name(tmp_path: Path):
    store = MemoryStore(ManualClock(NOW))
    store.add_bucket("lake")
    uri = f"sqlite:///{tmp_path}/catalog.db"
    theirs = SqlCatalog("prod", uri=uri, **properties_of(store))
    theirs.create_namespace("lake")
    made = theirs.create_table(
        "lake.events", pa.schema([("id", pa.int64())]), location="s3://lake/events"
    )
    made.append(pa.table({"id": [1, 2, 3]}))
    found = measure_table(parse_table(f"sql:{uri}#prod:lake.events"), store, 0.0)
    assert (found.rows, found.files) == (3, 1)
    with pytest.raises(InvalidInput):
        measure_table(parse_table(f"sql:{uri}#lake.events"), store, 0.0)


def test_outputs_come_into_a_table_of_another_catalog(tmp_path: Path):
    place = Place("sql", "", "names", tmp_path)
    uri = f"sqlite:///{tmp_path}/catalog.db"
    place.settings = replace(place.settings, table=f"sql:{uri}#prod:lake.events")
    place.commit(Partition("source", "logs/a/", "a/"), id=[1, 2])
    assert place.publish().outputs == 1
    table = SqlCatalog("prod", uri=uri, **properties_of(place.store)).load_table("lake.events")
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2]
