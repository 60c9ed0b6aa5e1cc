"""The demo's question, asked of sources and of outputs."""

from __future__ import annotations

import pytest

from compactor.errors import IntegrityError
from compactor_cli.audit import Proof
from compactor_cli.commands import demo
from compactor_cli.commands.failures import Failure
from compactor_cli.demo_query import Asked, ask_both
from compactor_cli.machine import extras
from tests.support.demo_sources import SAME_RECORDS_OTHERWISE, compacted, rewrite
from tests.support.examples import PARTITION
from tests.support.world import LOG_LINE, World


def asked_of(world: World) -> Asked:
    return ask_both(world.settings, world.store)


def test_sources_and_outputs_answer_alike() -> None:
    world = World()
    world.add_variety()
    world.run()
    asked = asked_of(world)
    assert asked.sources is not None
    assert asked.outputs is not None
    assert (asked.partitions, asked.differing, asked.missing) == (1, [], "")
    assert asked.sources.records == asked.outputs.records == len(world.records)
    assert asked.sources.objects == 7
    assert asked.outputs.objects == len(world.store.contents("lake", "compacted/"))


@pytest.mark.parametrize("name", SAME_RECORDS_OTHERWISE)
def test_what_a_run_frames_otherwise_is_the_same_to_the_question(name: str) -> None:
    sources, records = SAME_RECORDS_OTHERWISE[name]
    asked = asked_of(compacted(sources))
    assert asked.sources is not None
    assert asked.outputs is not None
    assert (asked.differing, asked.missing) == ([], "")
    assert (asked.sources.records, asked.outputs.records) == (records, records)
    assert asked.outputs.objects == 1


@pytest.mark.parametrize(
    ("old", "new"), [(b"record-1", b"record-9"), (b'{"id": "record-1"}\n', b"")]
)
def test_an_output_that_lacks_or_changes_a_record_answers_otherwise(old: bytes, new: bytes) -> None:
    world = World()
    world.add("a.json", '{{"id": "{}"}}')
    world.add("b.json", '{{"id": "{}"}}')
    world.run()
    rewrite(world, old, new)
    assert asked_of(world).differing == [PARTITION.path]


LONGER_THAN_DUCKDB_TAKES = 3_000_000


def test_what_duckdb_cannot_read_is_said_and_not_called_equal() -> None:
    line = b"2026-01-02T03:04:05Z " + b"x" * LONGER_THAN_DUCKDB_TAKES
    asked = asked_of(compacted({"a.log": line, "b.log": b"2026-01-02T03:04:05Z short"}))
    assert asked.sources is None
    assert asked.missing.startswith("no query: DuckDB cannot read the sources (")
    assert len(asked.missing) < 300


def test_outputs_that_duckdb_cannot_read_where_it_read_the_sources_are_a_fault() -> None:
    world = compacted({"a.json": b'{"a":1}\n', "b.json": b'{"a":2}\n'})
    rewrite(world, b'{"a":1}', b'{"a":1')
    with pytest.raises(IntegrityError, match="reads the sources but not the outputs"):
        asked_of(world)


def test_without_duckdb_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    world.add("a.log", LOG_LINE)
    world.run()
    monkeypatch.setattr(extras, "find_spec", lambda _: None)
    asked = asked_of(world)
    assert asked.missing == (
        "a query over sources and outputs needs more than the base install:"
        " pip install 's3-compactor[query]'"
    )
    assert asked.to_dict()["sources"] is None


def test_different_answers_end_the_demo_as_failed() -> None:
    proof = Proof(sources=2, records=6, matched=6)
    demo.require_equal(proof, Asked())
    with pytest.raises(
        Failure, match=r"sources and outputs give different query results for 2026/01/02/"
    ):
        demo.require_equal(proof, Asked(differing=[PARTITION.path]))
