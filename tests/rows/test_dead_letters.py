"""Dead-letter records stay with their sources, and come into an output as the manual says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rows.row_world import RowWorld, account
from tests.support.examples import PARTITION

MANUAL = Path(__file__).parents[2] / "docs" / "parquet.md"
NARROW, WIDE = "id BIGINT", "id BIGINT, more DOUBLE, name STRING"


def narrow() -> RowWorld:
    """Two rows, and three records that the columns do not take."""
    world = RowWorld(parquet_schema=NARROW, format="json_lines")
    world.put_lines("1.json", {"id": 1}, {"id": 2, "more": 0.5}, {"id": 3})
    world.put("2.json", b'{"id": 4, "name": "four"}\n{"id": 5, "name": "\xff"}\n')
    world.run()
    return world


def ids(world: RowWorld) -> list[int]:
    return sorted(one["id"] for one in world.rows())


def test_other_columns_alone_change_nothing() -> None:
    world = narrow()
    (commit,) = world.commits()
    assert account(commit).dead == 3
    before = world.dead_letters()
    world.given["parquet_schema"] = WIDE
    assert world.run() == []
    assert ids(world) == [1, 3]
    assert world.dead_letters() == before
    assert not world.uploads()


def test_the_manual_s_example_loads_what_fits_by_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = narrow()
    monkeypatch.chdir(tmp_path)
    Path("dead-letters").mkdir()
    _, prefix = world.settings.layout.dead_letters(PARTITION.path, "")
    for number, body in enumerate(world.store.contents("lake", prefix).values()):
        (Path("dead-letters") / f"{number}.json").write_bytes(body)
    _, _, example = MANUAL.read_text().partition("```python\n")
    exec(example.partition("```")[0], {})  # noqa: S102 - it is our own manual
    world.put("again-1.json", Path("again.json").read_bytes())
    world.given["parquet_schema"] = WIDE
    (commit,) = world.run()
    assert account(commit).dead == 1, "which is not UTF-8"
    assert ids(world) == [1, 2, 3, 4]
    assert world.run() == []
