"""Objects named .parquet are merged undeclared, and never stop what lies beside them."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.world import World


def parquet(**columns: list[Any]) -> bytes:
    written = io.BytesIO()
    pq.write_table(pa.table(columns), written)
    return written.getvalue()


def outcome(world: World) -> tuple[list[str], dict[str, str]]:
    """Suffixes of the outputs, and why sources were left alone."""
    receipt = world.run()
    assert receipt.status == "done"
    outputs = world.store.contents("lake", "compacted/")
    assert world.run().status == "done"
    assert world.store.contents("lake", "compacted/") == outputs
    left = {one.key.rpartition("/")[2]: one.detail for one in receipt.quarantined}
    return sorted(key.partition(".")[2] for key in outputs), left


def world_of(**contents: bytes) -> World:
    world = World(formats=[])
    for name, body in contents.items():
        world.put(name.replace("_", "."), body)
    return world


JSON = {"x_json": b'{"id": 1}\n', "y_json": b'{"id": 2}\n'}


def test_they_are_merged_and_what_only_has_the_name_is_left_alone() -> None:
    world = world_of(
        a_parquet=parquet(id=[1]), b_parquet=parquet(id=[2]), c_parquet=b"PAR1", **JSON
    )
    outputs, left = outcome(world)
    assert outputs == ["json", "parquet"]
    assert list(left) == ["c.parquet"]


def test_one_without_columns_is_left_alone() -> None:
    empty = parquet()
    outputs, left = outcome(world_of(a_parquet=parquet(id=[1]), b_parquet=empty, **JSON))
    assert outputs == ["json", "parquet"]
    assert left == {"b.parquet": "it has no columns"}


@pytest.mark.parametrize("other", [{"id": ["a"]}, {"ID": [1]}])
def test_columns_that_do_not_fit_get_an_output_of_their_own(other: dict) -> None:
    world = world_of(a_parquet=parquet(id=[1]), b_parquet=parquet(**other), **JSON)
    assert outcome(world) == (["json", "parquet", "parquet"], {})


def test_columns_that_fit_no_output_leave_one_alone_and_nothing_else() -> None:
    world = world_of(a_parquet=parquet(id=[1]), b_parquet=parquet(id=[1], ID=[2]), **JSON)
    outputs, left = outcome(world)
    assert outputs == ["json", "parquet"]
    assert list(left) == ["b.parquet"]


def test_without_arrow_they_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compactor.partition.steps.find_spec", lambda _: None)
    outputs, left = outcome(world_of(a_parquet=parquet(id=[1]), **JSON))
    assert outputs == ["json"]
    assert "extra rows" in left["a.parquet"]
