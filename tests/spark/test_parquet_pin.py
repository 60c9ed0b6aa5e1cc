"""The columns of a destination's outputs are found out once, whichever run comes first."""

from __future__ import annotations

import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from compactor.errors import IntegrityError, InvalidInput
from compactor.layout import parquet_schema_key
from compactor.model import ObjectGroup
from compactor_spark.columnar.pin import pinned_schema
from compactor_spark.columnar.sample import SAMPLE_BYTES, SAMPLE_SOURCES, sample
from tests.spark.row_world import NO_SESSION
from tests.support.examples import settings, source
from tests.support.memory_store import Call, MemoryStore

IDS = StructType([StructField("id", LongType())])
NAMES = StructType([StructField("name", StringType())])
RUN = settings(output_format="parquet")


def a_store() -> MemoryStore:
    store = MemoryStore()
    store.add_bucket("lake")
    return store


def pinned(store: MemoryStore, found: StructType) -> StructType:
    return pinned_schema(NO_SESSION, RUN, store, lambda known: found)


def test_the_first_finding_stays() -> None:
    store = a_store()
    assert pinned(store, IDS) == IDS
    assert pinned(store, NAMES) == IDS
    assert store.count("create") == 1


def test_of_two_first_runs_one_takes_what_the_other_found() -> None:
    store = a_store()

    def other_run(call: Call) -> None:
        if call.name == "create":
            store.hooks.before.clear()
            assert pinned(store, NAMES) == NAMES

    store.hooks.before.append(other_run)
    assert pinned(store, IDS) == NAMES


def test_a_pin_grows_by_what_two_runs_find_where_columns_may_be_added() -> None:
    store = a_store()
    run = settings(output_format="parquet", schema_evolution="add_columns")
    more = [StructField("a", LongType()), StructField("b", StringType())]

    def grown(*fields: StructField) -> StructType:
        return pinned_schema(
            NO_SESSION, run, store, lambda known: StructType([*known, *fields[len(known) - 1 :]])
        )

    assert pinned(store, IDS) == IDS

    def other_run(call: Call) -> None:
        if call.name == "create":
            store.hooks.before.clear()
            assert grown(more[0]) == StructType([*IDS, more[0]])

    store.hooks.before.append(other_run)
    assert grown(*more) == StructType([*IDS, *more])
    assert store.count("create") == 4
    assert pinned(store, NAMES) == StructType([*IDS, *more])


@pytest.mark.parametrize("found", [StructType(), StructType([*IDS, StructField("ID", LongType())])])
def test_findings_that_make_no_columns_are_not_pinned(found: StructType) -> None:
    store = a_store()
    with pytest.raises(InvalidInput, match="parquet_schema: no value; expected"):
        pinned(store, found)
    assert not store.contents("lake")


@pytest.mark.parametrize("body", [b"{", b"{}", b'{"version": 2, "schema": {}}'])
def test_a_pin_that_this_program_did_not_write_is_not_overlooked(body: bytes) -> None:
    store = a_store()
    store.seed(*parquet_schema_key(RUN, 1), body)
    with pytest.raises(IntegrityError, match="parquet-schemas/"):
        pinned(store, IDS)


def test_a_sample_has_sources_of_every_group_spread_over_its_keys() -> None:
    groups = [
        ObjectGroup(str(number), tuple(source(f"{number}-{n:04d}") for n in range(3_000)))
        for number in range(4)
    ]
    keys = [one.key for one in sample(groups)]
    assert len(keys) == SAMPLE_SOURCES
    assert [sum(f"{number}-" in key for key in keys) for number in range(4)] == [500] * 4
    assert keys[0].endswith("0-0000")
    assert keys[499].endswith("0-2994")


def test_a_sample_of_large_sources_is_bounded_in_bytes_but_never_empty() -> None:
    large = [source(str(n), size=SAMPLE_BYTES // 2 + 1) for n in range(9)]
    assert len([*sample([ObjectGroup("one", tuple(large))])]) == 1
    assert [*sample([])] == []
