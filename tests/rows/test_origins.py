"""Outputs whose rows have a key say of each row where it comes from."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from compactor.errors import InvalidInput
from compactor.outputs.verify import check_commit
from compactor.rows.schema import from_spark_json
from tests.rows.row_world import RowWorld, account

KEYED: dict[str, Any] = {"table": "glue:lake.people", "upsert_key": ["id"]}


def origins(world: RowWorld) -> list[tuple[int, str, int]]:
    return [
        (one["id"], one["__source_key"].rpartition("/")[2], one["__position"])
        for one in world.rows()
    ]


def test_a_record_is_named_by_its_source_and_its_place_among_all_records_there() -> None:
    world = RowWorld(**KEYED, parquet_schema="id BIGINT")
    world.put_lines("1.json", {"id": 7}, {"id": 8})
    # A record that does not fit has its place, too; what is blank has none.
    world.put("2 %+é.json", b'{"id": 9}\n\n{"other": 1}\n{"id": 10}\n')
    (commit,) = world.run()
    assert origins(world) == [
        (7, "1.json", 0),
        (8, "1.json", 1),
        (9, "2 %+é.json", 0),
        (10, "2 %+é.json", 2),
    ]
    assert from_spark_json(account(commit).schema) == pa.schema(
        [("id", pa.int64()), ("__source_key", pa.string()), ("__position", pa.int64())]
    )
    assert check_commit(commit, world.store) == 4


def test_places_go_on_through_the_blocks_of_a_long_source(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("records", "sink"):
        monkeypatch.setattr(f"compactor.rows.{module}.BLOCK_BYTES", 64)
    world = RowWorld(**KEYED, parquet_schema="id BIGINT")
    for name in ("1.json", "2.json"):
        world.put_lines(name, *({"other" if one == 50 else "id": one} for one in range(100)))
    world.run()
    assert origins(world) == [
        (one, name, one) for name in ("1.json", "2.json") for one in range(100) if one != 50
    ]
    assert [one["position"] for one in world.dead_letters()] == [50, 50]


def test_a_column_that_is_called_so_already_is_refused() -> None:
    world = RowWorld(**KEYED)
    world.put_lines("1.json", {"id": 1, "__Position": 2})
    with pytest.raises(InvalidInput, match=r"column: '__Position' .* another name with upsert_key"):
        world.pending()
