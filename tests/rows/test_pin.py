"""The columns of a destination's outputs are found once, whichever run comes first."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from compactor.errors import IntegrityError, InvalidInput, TransientStoreError
from compactor.rows.ddl import parse_ddl
from compactor.rows.pin import given_schema, known_schema, pinned_schema
from tests.support.examples import settings
from tests.support.memory_store import Call, MemoryStore

IDS = parse_ddl("id BIGINT")
NAMES = parse_ddl("name STRING")
RUN = settings(output_format="parquet")


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore()
    store.add_bucket("lake")
    return store


def pinned(store: MemoryStore, found: pa.Schema) -> pa.Schema:
    return pinned_schema(RUN, store, lambda known: found)


def given(store: MemoryStore, ddl: str) -> pa.Schema:
    run = settings(output_format="parquet", parquet_schema=ddl)

    def never(known: pa.Schema) -> pa.Schema:
        raise AssertionError("a schema was given")

    return pinned_schema(run, store, never)


def test_the_first_schema_stays(store: MemoryStore) -> None:
    assert known_schema(RUN, store) is None
    assert pinned(store, IDS) == IDS
    assert pinned(store, NAMES) == IDS == known_schema(RUN, store)
    assert store.count("create") == 1


def test_the_stored_document_is_the_documented_one(store: MemoryStore) -> None:
    pinned(store, IDS)
    body = store.get(*RUN.layout.parquet_schema(1))
    field = {"name": "id", "type": "long", "nullable": True, "metadata": {}}
    document = {"version": 1, "schema": {"type": "struct", "fields": [field]}}
    assert body == json.dumps(document, indent=1).encode()


def test_of_two_first_runs_one_adopts_the_schema_of_the_other(store: MemoryStore) -> None:
    def other_run(call: Call) -> None:
        if call.name == "create":
            store.hooks.before.clear()
            assert pinned(store, NAMES) == NAMES

    store.hooks.before.append(other_run)
    assert pinned(store, IDS) == NAMES


def test_a_pin_grows_by_the_columns_of_two_runs_if_columns_may_be_added(
    store: MemoryStore,
) -> None:
    run = settings(output_format="parquet", schema_evolution="add_columns")
    more = list(parse_ddl("a BIGINT, b STRING"))

    def grown(*fields: pa.Field) -> pa.Schema:
        return pinned_schema(
            run, store, lambda known: pa.schema([*known, *fields[len(known) - 1 :]])
        )

    assert pinned(store, IDS) == IDS

    def other_run(call: Call) -> None:
        if call.name == "create":
            store.hooks.before.clear()
            assert grown(more[0]) == pa.schema([*IDS, more[0]])

    store.hooks.before.append(other_run)
    assert grown(*more) == pa.schema([*IDS, *more])
    assert store.count("create") == 4
    assert pinned(store, NAMES) == pa.schema([*IDS, *more])


@pytest.mark.parametrize("found", [pa.schema([]), parse_ddl("id BIGINT, ID BIGINT")])
def test_a_schema_that_outputs_cannot_have_is_not_pinned(
    store: MemoryStore, found: pa.Schema
) -> None:
    with pytest.raises(InvalidInput, match="parquet_schema: no value; expected"):
        pinned(store, found)
    assert not store.contents("lake")


@pytest.mark.parametrize(
    "body",
    [b"{", b"{}", b'{"version": 2, "schema": {}}', b'{"version": 1, "schema": {"type": "long"}}'],
)
def test_a_pin_that_this_program_did_not_write_is_an_error(store: MemoryStore, body: bytes) -> None:
    store.seed(*RUN.layout.parquet_schema(1), body)
    with pytest.raises(IntegrityError, match="parquet-schemas/"):
        pinned(store, IDS)


def test_a_given_schema_may_extend_the_pinned_one(store: MemoryStore) -> None:
    given(store, "id INT, s STRUCT<x: INT>")
    wider = "id BIGINT, s STRUCT<x: INT, y: STRING>, name STRING"
    assert given(store, wider) == parse_ddl(wider) == known_schema(RUN, store)
    assert given(store, wider) == parse_ddl(wider)
    assert store.count("create") == 2


@pytest.mark.parametrize(
    ("ddl", "reason"),
    [
        ("name STRING", "column id must be int"),
        ("id STRING", "column id is int there and string here"),
        ("id SMALLINT", "column id must be int"),
        ("ID INT", "column id is int named id there and int named ID here"),
    ],
)
def test_a_given_schema_that_is_no_superset_is_refused(
    store: MemoryStore, ddl: str, reason: str
) -> None:
    given(store, "id INT")
    with pytest.raises(InvalidInput, match="a superset of the columns that outputs have") as error:
        given(store, ddl)
    assert reason in str(error.value)
    assert store.count("create") == 1


@pytest.mark.parametrize("ddl", ["id", "id BIGINT, ID BIGINT", "id MONEY"])
def test_an_invalid_given_schema_is_refused_in_one_line(ddl: str) -> None:
    with pytest.raises(InvalidInput, match=f"parquet_schema: '{ddl}' is not accepted") as error:
        given_schema(ddl)
    assert "\n" not in str(error.value)


def test_a_hundred_lost_races_end_the_run(store: MemoryStore) -> None:
    store.seed(*RUN.layout.parquet_schema(1), b"another run's")
    # The listing never has the entry that the store has.
    store.list_objects = lambda *_, **__: iter(())  # type: ignore[method-assign]  # a listing that lags
    with pytest.raises(TransientStoreError, match="100 other schemas came first"):
        pinned(store, IDS)
