"""The columns of a destination's outputs are found out once, whichever run comes first."""

from __future__ import annotations

import pyarrow as pa
import pytest

from compactor.errors import IntegrityError, InvalidInput
from compactor.layout import parquet_schema_key
from compactor.model import Partition
from compactor.planning.dialects import Dialects
from compactor.rows import sample
from compactor.rows.pin import known_schema, pinned_schema
from compactor.rows.sample import pin_columns
from compactor.settings.settings import Settings
from tests.support.examples import settings
from tests.support.memory_store import Call, MemoryStore

IDS = pa.schema([pa.field("id", pa.int64())])
NAMES = pa.schema([pa.field("name", pa.string())])
RUN = settings(output_format="parquet")


def a_store() -> MemoryStore:
    store = MemoryStore()
    store.add_bucket("lake")
    return store


def pinned(store: MemoryStore, found: pa.Schema) -> pa.Schema:
    return pinned_schema(RUN, store, lambda known: found)


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
    more = [pa.field("a", pa.int64()), pa.field("b", pa.string())]

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


@pytest.mark.parametrize("found", [pa.schema([]), pa.schema([*IDS, pa.field("ID", pa.int64())])])
def test_findings_that_make_no_columns_are_not_pinned(found: pa.Schema) -> None:
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


def some_partitions(names: str, objects: int = 1) -> tuple[MemoryStore, list[Partition]]:
    """Partitions of objects of which each has a field of the partition's name."""
    store = a_store()
    partitions = [Partition("source", f"logs/{one}/", f"{one}/") for one in names]
    for name, partition in zip(names, partitions, strict=True):
        for number in range(objects):
            body = b'{"id": 1, "%s": %d}' % (name.encode(), number)
            store.seed("source", f"{partition.prefix}{number:04d}.json", body)
    return store, partitions


def sampled(
    store: MemoryStore, partitions: list[Partition], run: Settings = RUN
) -> pa.Schema | None:
    pin_columns(run, store, partitions, Dialects(run, store))
    return known_schema(run, store)


def test_a_sample_has_sources_of_every_partition() -> None:
    store, partitions = some_partitions("abc", 3)
    found = sampled(store, partitions)
    assert found == pa.schema([(one, pa.int64()) for one in ("a", "b", "c", "id")])
    _, others = some_partitions("d")
    store.seed(
        "source",
        others[0].prefix + "1.json",
        b'{"d": 1}',
    )
    assert sampled(store, [*partitions, *others]) == found, "it is pinned already"


def test_a_sample_is_bounded_in_sources_and_spread_over_the_keys(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sample, "SAMPLE_SOURCES", 20)
    store, partitions = some_partitions("ab", 99)
    read = sources_read(store)
    sampled(store, partitions)
    assert len(read) == 20
    for partition in partitions:
        keys = [key for key in read if key.startswith(partition.prefix)]
        assert (len(keys), min(keys)[-9:], max(keys)[-9:]) == (10, "0000.json", "0090.json")


def test_a_sample_of_large_sources_is_bounded_in_bytes_but_never_empty(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, partitions = some_partitions("ab", 9)
    read = sources_read(store)
    monkeypatch.setattr(sample, "SAMPLE_BYTES", 5)
    assert sampled(store, partitions) == pa.schema([("a", pa.int64()), ("id", pa.int64())])
    assert len(read) == 1


def test_a_sample_without_records_pins_nothing() -> None:
    store, _ = some_partitions("")
    partition = Partition("source", "logs/a/", "a/")
    for body in (b"", b"id,name\n"):
        store.seed("source", f"{partition.prefix}{len(body)}.csv", body)
        assert (
            sampled(store, [partition], settings(output_format="parquet", csv_header="present"))
            is None
        )
    assert sampled(store, []) is None


def sources_read(store: MemoryStore) -> list[str]:
    """The keys of sources read from now on."""
    keys: list[str] = []

    def note(call: Call) -> None:
        if call.bucket == "source" and call.name == "read_source":
            keys.append(call.key)

    store.hooks.before.append(note)
    return keys
