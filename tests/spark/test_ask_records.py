"""The demo's question, asked of Spark where DuckDB is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

from compactor.errors import IntegrityError
from compactor_cli import demo_engines, demo_query
from compactor_cli.demo_engines import PARQUET, Engine
from compactor_cli.demo_query import Asked, ask_both
from compactor_cli.queried import Staged
from compactor_machine.spark_submit import SparkHere
from tests.support.demo_sources import SAME_RECORDS_OTHERWISE, compacted, rewrite
from tests.support.examples import PARTITION
from tests.support.world import World

pytestmark = pytest.mark.timeout(1_800)


@pytest.fixture(scope="module")
def engine(spark_here: SparkHere) -> Iterator[Engine]:
    """What a machine without DuckDB asks."""
    assert spark_here.java.is_file()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo_engines, "find_spec", lambda _: None)
        with demo_engines.engine_here() as found:
            yield found


@pytest.fixture(autouse=True)
def asked_first(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """One Spark for all of them."""

    @contextmanager
    def here(_: object) -> Iterator[Engine]:
        yield engine

    monkeypatch.setattr(demo_query, "engine_here", here)


def asked_of(world: World) -> Asked:
    return ask_both(world.settings, world.store, lambda: world.store.count("read_source"))


@pytest.mark.parametrize("name", SAME_RECORDS_OTHERWISE)
def test_what_a_run_frames_otherwise_is_the_same_to_spark(name: str) -> None:
    sources, records = SAME_RECORDS_OTHERWISE[name]
    asked = asked_of(compacted(sources))
    assert asked.engine.startswith("Spark 4.")
    assert asked.sources is not None
    assert asked.outputs is not None
    assert (asked.differing, asked.missing) == ([], "")
    assert (asked.sources.records, asked.outputs.records) == (records, records)
    assert (asked.sources.gets, asked.outputs.gets) == (len(sources), 1)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"record-1", b"record-9"),
        (b'{"id": "record-1"}\n', b""),
        (b"1.10", b"1.1"),
        (b"1.10", b'"1.10"'),
    ],
)
def test_an_output_that_lacks_or_changes_a_record_answers_otherwise(old: bytes, new: bytes) -> None:
    world = World()
    world.add("a.json", '{{"id": "{}"}}')
    world.add("b.json", '{{"id": "{}", "size": 1.10}}')
    world.run()
    rewrite(world, old, new)
    assert asked_of(world).differing == [PARTITION.path]


def test_outputs_that_spark_cannot_read_where_it_read_the_sources_are_a_fault() -> None:
    world = compacted({"a.json": b'{"a":1}\n', "b.json": b'{"a":2}\n'})
    rewrite(world, b'{"a":1}', b'{"a":1')
    told = "Spark reads the sources, and not the outputs: .*JSONDecodeError: "
    with pytest.raises(IntegrityError, match=told):
        asked_of(world)


def test_rows_of_parquet_are_the_same_whatever_the_order_of_their_columns(
    engine: Engine, tmp_path: Path
) -> None:
    columns = {"id": [1, 2, 3], "name": ["a", None, "c"]}
    whole, turned = tmp_path / "1.parquet", tmp_path / "2.parquet"
    parquet.write_table(pyarrow.table(columns), whole)
    parquet.write_table(pyarrow.table(dict(reversed(columns.items()))), turned)
    found = engine.answer(
        [Staged(whole, PARQUET, "whole/"), Staged(turned, PARQUET, "turned/")], []
    )
    assert [row[:2] for row in found] == [("turned/", 3), ("whole/", 3)]
    assert found[0][2] == found[1][2]
