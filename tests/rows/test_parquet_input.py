"""Parquet sources are read in batches of bounded memory, whatever their footers say."""

from __future__ import annotations

import gc
import io
import mmap
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compactor.errors import NothingReadable, UnreadableSource
from compactor.model import SourceObject
from compactor.ports import ObjectStore
from compactor.rows import parquet_input
from compactor.rows.batch_sizes import BATCH_BYTES
from compactor.rows.parquet_input import ParquetSources, open_sources
from compactor.sizes import MIB
from tests.support.memory_store import MemoryStore


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore()
    store.add_bucket("source")
    return store


def put(store: MemoryStore, name: str, table: pa.Table, **options: Any) -> SourceObject:
    stream = io.BytesIO()
    pq.write_table(table, stream, **options)
    return store.seed("source", f"logs/{name}", stream.getvalue())


def batches(sources: ParquetSources, **options: Any) -> Iterator[pa.RecordBatch]:
    for body, footer in sources.bodies():
        yield from sources.rows_of(body, footer.reading, **options)


def rows(sources: ParquetSources, **options: Any) -> list[dict[str, Any]]:
    return [row for batch in batches(sources, **options) for row in batch.to_pylist()]


def _texts(count: int, size: int) -> list[str]:
    return [random.Random(n).randbytes(size // 2).hex() for n in range(count)]


# Made when they are asked for: together they take more than a gigabyte.
SHAPES: dict[str, tuple[Callable[[], pa.Table], dict[str, Any]]] = {
    "one long text, a thousand times": (lambda: pa.table({"c": ["x" * 300_000] * 1_000}), {}),
    "long texts in lists": (
        lambda: pa.table({"c": [[{"d": ["y" * 20_000] * 5}] * 5 for _ in range(500)]}),
        {},
    ),
    "long texts in maps": (
        lambda: pa.table(
            {"c": pa.array([[("k", "z" * 400_000)]] * 500, pa.map_(pa.string(), pa.string()))}
        ),
        {},
    ),
    "a constant": (lambda: pa.table({"c": pa.repeat(1, 20_000_000)}), {}),
    "lists of a constant": (lambda: pa.table({"c": [[1] * 100_000] * 200}), {}),
    "few dictionary values of all lengths": (
        lambda: pa.table({"c": [t for t in ["a", "b" * 1_000_000] for _ in range(200)]}),
        {},
    ),
    "one row group of texts": (
        lambda: pa.table({"c": _texts(30_000, 4_000)}),
        {"use_dictionary": False},
    ),
    "many columns": (lambda: pa.table({f"c{n}": range(50) for n in range(3_000)}), {}),
    "old pages": (lambda: pa.table({"c": ["x" * 300_000] * 300}), {"version": "1.0"}),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_memory_is_bounded(store: MemoryStore, shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make, options = SHAPES[shape]
    table = make()
    monkeypatch.setattr(parquet_input, "IN_MEMORY_BYTES", MIB)
    monkeypatch.setattr(parquet_input, "KEPT_BYTES", MIB)
    source = put(store, "1", table, row_group_size=100_000_000, **options)
    pool = pa.proxy_memory_pool(pa.default_memory_pool())
    before = pa.default_memory_pool()
    count = 0
    pa.set_memory_pool(pool)
    try:
        for batch in batches(open_sources([source], store)):
            count += batch.num_rows
            assert batch.nbytes <= 1.1 * BATCH_BYTES
            del batch
    finally:
        pa.set_memory_pool(before)
    assert count == table.num_rows
    assert 0 < pool.max_memory() <= 5 * BATCH_BYTES
    del table
    before.release_unused()


def test_footers_of_many_sources_take_little_memory(store: MemoryStore) -> None:
    found = [put(store, str(n), pa.table({f"c{c}": [n] for c in range(30)})) for n in range(600)]
    before, usual = resident_bytes(), gc.get_threshold()
    # As in a worker, which collects rarely.
    gc.set_threshold(100_000, 50, 50)
    try:
        sources = open_sources(found, store)
    finally:
        gc.set_threshold(*usual)
    assert len({id(footer.columns) for _, footer in sources.footers}) == 1
    # As pyarrow's metadata they would have 25 MB.
    assert resident_bytes() - before < 16 * MIB


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE


@pytest.mark.parametrize("kept", [parquet_input.KEPT_BYTES, 0])
@pytest.mark.parametrize("in_memory", [parquet_input.IN_MEMORY_BYTES, 0])
def test_rows_are_those_of_the_sources_in_order_with_their_origins(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch, kept: int, in_memory: int
) -> None:
    monkeypatch.setattr(parquet_input, "KEPT_BYTES", kept)
    monkeypatch.setattr(parquet_input, "IN_MEMORY_BYTES", in_memory)
    found = [
        put(store, "a", pa.table({"c": range(5)}), row_group_size=2),
        put(store, "b", pa.table({"c": pa.array([], pa.int64())})),
        put(store, "c", pa.table({"c": [5], "d": ["x"]})),
    ]
    assert rows(open_sources(found, store), origins=True) == [
        *({"c": n, "d": None, "__source_key": "logs/a", "__position": n} for n in range(5)),
        {"c": 5, "d": "x", "__source_key": "logs/c", "__position": 0},
    ]


def test_small_sources_are_read_once_and_others_by_ranges(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [put(store, str(n), pa.table({"c": [n], f"c{n}": [n]})) for n in range(6)]
    monkeypatch.setattr(parquet_input, "KEPT_BYTES", sum(one.size for one in found[:4]))
    sources = open_sources(found, store)
    assert sorted(sources.kept) == [f"logs/{n}" for n in range(4)]
    assert [row["c"] for row in rows(sources)] == list(range(6))


def test_texts_that_are_not_utf8_are_passed_on(store: MemoryStore) -> None:
    odd = pa.array([b"\xff\xfe", b"ok"]).view(pa.string())
    source = put(store, "1", pa.table({"c": odd}), store_schema=False)
    (batch,) = batches(open_sources([source], store))
    assert batch.column(0).cast(pa.binary()).to_pylist() == [b"\xff\xfe", b"ok"]


def test_a_role_that_may_read_nothing_ends_the_group(store: MemoryStore) -> None:
    found = [put(store, f"{n:02}", pa.table({"c": [n]})) for n in range(30)]

    class Denied:
        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

        def read_sources(self, sources: list[SourceObject]) -> Any:
            for body in store.read_sources(sources):
                yield body._replace(content=None, error=UnreadableSource("access_denied", "no"))

        def read_range(self, source: SourceObject, start: int, length: int) -> bytes:
            raise UnreadableSource("access_denied", "no")

    denied: ObjectStore = Denied()  # type: ignore[assignment]  # only what is asked of it
    with pytest.raises(NothingReadable):
        open_sources(found, denied)


def test_values_below_nulls_and_slices_of_nested_columns_keep_their_places(
    store: MemoryStore,
) -> None:
    kind = pa.struct([("l", pa.large_list(pa.uint8())), ("m", pa.map_(pa.uint8(), pa.uint16()))])
    values = [
        None if n % 3 == 0 else {"l": None if n % 5 == 0 else list(range(n % 4)), "m": [(n % 9, n)]}
        for n in range(1_000)
    ]
    first = put(store, "1", pa.table({"c": pa.array(values, kind)}), row_group_size=300)
    other = put(store, "2", pa.table({"c": [{"l": [2**40]}]}))
    found = [row["c"] for row in rows(open_sources([first, other], store))]
    assert found == [*values, {"l": [2**40], "m": None}]
