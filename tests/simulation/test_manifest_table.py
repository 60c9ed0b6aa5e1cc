"""Whatever fails and whoever comes between: the manifest table ends as the log tells."""

from __future__ import annotations

import io
from collections import Counter
from dataclasses import replace
from typing import Any

import pyarrow.parquet as pq
import pytest

from compactor_cli.mapping import mapping
from tests.simulation import schedule
from tests.simulation import world as world_module
from tests.simulation.ledger import LAKE
from tests.simulation.world import SETTINGS, World

SCHEDULES = 150
_TABLE = "_compactor/compacted/manifest/sources/"
Row = tuple[Any, ...]


def told(world: World) -> list[Row]:
    """All rows of the table."""
    found = world.s3.contents(LAKE, _TABLE).values()
    tables = [pq.read_table(io.BytesIO(body)).to_pylist() for body in found]
    return sorted((tuple(row.values()) for rows in tables for row in rows), key=_order)


def exported(world: World) -> list[Row]:
    """What ``compactor manifest`` exports."""
    return sorted(map(tuple, mapping(SETTINGS[0].state, world.s3)), key=_order)


def _order(row: Row) -> str:
    return repr((*row[:4], *row[-2:]))


@pytest.mark.slow
def test_in_every_schedule_that_nobody_spoils_it_ends_as_the_export(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept = tuple(replace(one, manifest_table=True) for one in SETTINGS)
    monkeypatch.setattr(world_module, "SETTINGS", kept)
    worlds: list[World] = []

    def made(*given: Any) -> World:
        worlds.append(World(*given))
        return worlds[-1]

    monkeypatch.setattr(schedule, "World", made)
    seen = Counter[str]()
    for seed in range(SCHEDULES):
        outcome = schedule.play(seed)
        assert not outcome.violation, f"schedule {seed}: {outcome.violation}"
        world = worlds.pop()
        # Where bytes were changed on their way, or the state by hand, it may be damaged as well.
        if world.spoiled:
            continue
        rows = exported(world)
        assert told(world) == rows, f"schedule {seed}"
        seen += Counter(schedules=1, rows=len(rows), again=sum(row[-1] for row in rows))
    assert seen["schedules"] > SCHEDULES / 2
    assert seen["again"] > SCHEDULES
