"""The columns of a destination's outputs are inferred from a sample of all its partitions."""

from __future__ import annotations

import pyarrow as pa
import pytest

from compactor.model import Partition
from compactor.rows import sample
from compactor.rows.pin import known_schema
from compactor.rows.sample import pin_columns
from compactor.settings.settings import Settings
from tests.support.examples import settings
from tests.support.memory_store import Call, MemoryStore

RUN = settings(output_format="parquet")


def some_partitions(names: str, objects: int = 1) -> tuple[MemoryStore, list[Partition]]:
    """Partitions of objects of which each has a field of the partition's name."""
    store = MemoryStore()
    store.add_bucket("lake")
    partitions = [Partition("source", f"logs/{one}/", f"{one}/") for one in names]
    for name, partition in zip(names, partitions, strict=True):
        for number in range(objects):
            body = b'{"id": 1, "%s": %d}' % (name.encode(), number)
            store.seed("source", f"{partition.prefix}{number:04d}.json", body)
    return store, partitions


def sampled(
    store: MemoryStore, partitions: list[Partition], run: Settings = RUN
) -> pa.Schema | None:
    pin_columns(run, store, lambda: partitions)
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
        assert sampled(store, [partition], settings(output_format="parquet")) is None
    assert sampled(store, []) is None


def sources_read(store: MemoryStore) -> list[str]:
    """The keys of sources read from now on."""
    keys: list[str] = []

    def note(call: Call) -> None:
        if call.bucket == "source" and call.name == "read_source":
            keys.append(call.key)

    store.hooks.before.append(note)
    return keys
