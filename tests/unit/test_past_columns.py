"""A column that others renamed or dropped does not come back by an output that still has it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from compactor.catalogs.iceberg_history import past_columns
from compactor.model import Partition
from compactor.sinks.table_log import TableLog
from tests.support.table_places import Place, lake_on_aws

pytest.importorskip("pyiceberg")
pytest.importorskip("deltalake")
pytest.importorskip("duckdb")

A, B = (Partition("source", f"logs/{name}/", f"{name}/") for name in "ab")
MAPPING = "schema.name-mapping.default"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with lake_on_aws() as url:
        yield url


@pytest.fixture
def make(endpoint: str, tmp_path: Path, request: pytest.FixtureRequest) -> Callable[[str], Place]:
    name = f"{abs(hash(request.node.name)):x}"[:12]

    def made(kind: str) -> Place:
        place = Place(kind, endpoint, name, tmp_path)
        place.settings = replace(place.settings, schema_evolution="add_columns")
        place.commit(A, id=[1], name=["secret"])
        place.publish()
        return place

    return made


@pytest.fixture(params=["sql", "glue"])
def place(request: pytest.FixtureRequest, make: Callable[[str], Place]) -> Place:
    return make(request.param)


def columns(place: Place) -> list[str]:
    handle: Any = place.state().handle
    fields = handle.schema().fields
    return [one.name for one in fields]


def last_entry(place: Place) -> int:
    return TableLog(place.store, place.settings, place.log_id).load().last


def must_refuse(place: Place, said: str) -> None:
    """The output is set aside, with the reason; nothing else keeps it out."""
    before = last_entry(place)
    (line,) = place.publish().faults
    assert re.search(said, line)
    assert last_entry(place) == before


@pytest.mark.parametrize("evolution", ["add_columns", "refuse"])
def test_a_renamed_column_does_not_come_back_as_a_second_one(place, evolution):
    handle: Any = place.state().handle
    with handle.update_schema() as update:
        update.rename_column("name", "label")
    place.settings = replace(place.settings, schema_evolution=evolution)
    place.commit(B, id=[2], name=["late"])
    must_refuse(place, "column name, which .* has and the table renamed to label; compact")
    assert columns(place) == ["id", "label"]
    assert place.rows("label") == Counter(["secret"])


def test_a_dropped_column_does_not_come_back_with_its_values(place, tmp_path):
    handle: Any = place.state().handle
    with handle.update_schema() as update:
        update.delete_column("name")
    place.commit(B, id=[2], name=["late"])
    must_refuse(place, "column name, which .* has and the table dropped; compact")
    assert columns(place) == ["id"]
    assert place.rows() == place.rows_by_duckdb(tmp_path) == Counter([1])
    assert "secret" not in str(place.state().handle.scan().to_arrow().to_pylist())


def test_names_are_the_same_whatever_their_case(place):
    handle: Any = place.state().handle
    with handle.update_schema() as update:
        update.delete_column("name")
    place.commit(B, id=[2], Name=["late"])
    must_refuse(place, "column Name, which")


def test_outputs_without_that_column_and_with_new_ones_come_in(place, tmp_path):
    handle: Any = place.state().handle
    with handle.update_schema() as update:
        update.delete_column("name")
    place.commit(B, id=[2], other=["x"])
    place.publish()
    assert columns(place) == ["id", "other"]
    assert place.rows("other") == Counter([None, "x"])
    assert place.rows_by_duckdb(tmp_path) == Counter([1, 2])


def test_a_column_within_another_is_looked_for_as_well(make):
    place = make("sql")
    place.commit(A, id=[2], place=[{"lat": 1.5, "lon": 2.5}])
    place.publish()
    handle: Any = place.state().handle
    with handle.update_schema() as update:
        update.rename_column("place.lat", "latitude")
    place.commit(B, id=[3], place=[{"lat": 1.5}])
    must_refuse(place, r"column place\.lat, which .* renamed to place\.latitude")


def test_a_column_that_was_dropped_and_added_again_takes_no_outputs(make):
    """Files without field ids show their old values in it, as pyiceberg's own mapping says."""
    from pyiceberg.types import StringType

    place = make("sql")
    handle: Any = place.state().handle
    with handle.update_schema() as update:
        update.delete_column("name")
    with handle.update_schema() as update:
        update.add_column("name", StringType())
    place.commit(B, id=[2], name=["late"])
    must_refuse(place, "the table dropped, and has another column of this name now")
    assert place.rows() == Counter([1])


def test_a_mapping_that_is_made_here_shows_no_old_values_in_a_column_that_was_added_again(make):
    from pyiceberg.types import StringType

    place = make("sql")
    handle: Any = place.state().handle
    with handle.transaction() as transaction:
        transaction.remove_properties(MAPPING)
    with handle.update_schema() as update:
        update.delete_column("name")
    with handle.update_schema() as update:
        update.add_column("name", StringType())
    place.commit(B, id=[2])
    place.publish()
    assert place.rows() == Counter([1, 2])
    assert place.rows("name") == Counter([None, None])


def test_a_name_that_only_the_mapping_remembers_counts_as_well(make):
    place = make("sql")
    handle: Any = place.state().handle
    with handle.update_schema() as update:
        update.rename_column("name", "label")
    metadata = place.state().handle.metadata
    known = metadata.model_copy(update={"schemas": [metadata.schema()]})
    assert past_columns(known) == {"name": "renamed to label"}


# Delta.


def without_name(place: Place, **more: Any) -> None:
    """All rows written again under another schema, as Delta drops columns without mapping."""
    from deltalake import write_deltalake

    handle: Any = place.state().handle
    write_deltalake(
        handle, pa.table({"id": [1], **more}), mode="overwrite", schema_mode="overwrite"
    )


@pytest.mark.parametrize("more", [{}, {"label": ["secret"]}])
def test_a_column_that_a_delta_table_dropped_or_renamed_does_not_come_back(make, more, tmp_path):
    place = make("delta")
    without_name(place, **more)
    place.commit(B, id=[2], name=["late"])
    must_refuse(place, "column name, which .* the table dropped or renamed in version 2; compact")
    assert columns(place) == ["id", *more]
    assert place.rows() == place.rows_by_duckdb(tmp_path) == Counter([1])
    place.settings = replace(place.settings, schema_evolution="refuse")
    must_refuse(place, "dropped or renamed in version 2")


def test_the_whole_log_of_a_delta_table_is_gone_through(make):
    place = make("delta")
    without_name(place)
    for number in range(2, 24):
        handle: Any = place.state().handle
        from deltalake import write_deltalake

        write_deltalake(handle, pa.table({"id": [number]}), mode="append")
    place.commit(B, id=[99], name=["late"])
    must_refuse(place, "dropped or renamed in version 2")


def test_a_column_that_a_restore_took_back_was_not_dropped(make, tmp_path):
    place = make("delta")
    before = place.state().handle.version()
    place.commit(B, id=[2], other=["x"])
    place.publish()
    place.state().handle.restore(before)
    catalog, state = place.catalog, place.state()
    file = place.put("more", pa.table({"id": [3], "other": ["y"]}))
    assert catalog.unfit(state, [file], evolve=True) == {}
