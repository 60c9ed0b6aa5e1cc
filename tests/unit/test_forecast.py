"""``compactor plan`` shows exactly what a run then does: windows, borders of groups, outputs."""

from __future__ import annotations

import random
from dataclasses import replace
from unittest.mock import patch

import pytest

from compactor.destination import LOG_METADATA
from compactor.limits import WorkerLimits
from compactor.log.log import CommitLog
from compactor.model import SkipReason
from compactor.planning import packing
from compactor.report.declared import coverage_lines
from compactor_cli.commands.plan import Forecast, coverage_of, forecast
from tests.support.examples import NOW, PARTITION
from tests.support.world import LOG_LINE, World


def forecast_of(world: World) -> Forecast:
    with patch("time.time", world.clock.now):
        (found,) = forecast([PARTITION], world.settings, world.store)
    return found


def committed_by(world: World, run_id: str) -> list[tuple[str, tuple[str, ...]]]:
    """Groups that a run committed, and the keys of their sources, in order."""
    log = CommitLog(world.store, world.settings, PARTITION)
    commits = [one for one in log.every_commit() if one.run_id == run_id]
    return [(one.group_id, tuple(row.source.key for row in one.rows)) for one in reversed(commits)]


def planned(found: Forecast) -> list[tuple[str, tuple[str, ...]]]:
    return [(one.id, tuple(s.key for s in one.sources)) for one in found.plan.groups]


def put_some(world: World, chance: random.Random, start: int) -> None:
    for number in range(start, start + chance.randrange(1, 25)):
        kind = chance.choice(["json", "log", "log.gz", "csv"])
        name = f"{chance.randrange(1000):03}-{number:03}.{kind}"
        if kind == "json":
            world.add(name, '{{"id": "{}"}}', chance.randrange(1, 30))
        elif kind == "csv":
            rows = "".join(f"record-{number}{row},{row}\n" for row in range(9))
            world.put(name, f"id,count\n{rows}".encode())
        else:
            world.add(name, LOG_LINE, chance.randrange(1, 30), packed=kind == "log.gz")


@pytest.mark.parametrize("seed", range(40))
def test_a_run_makes_the_very_groups_that_plan_showed(seed: int, monkeypatch) -> None:
    chance = random.Random(seed)
    limits = WorkerLimits(
        window_objects=chance.choice([2, 3, 5, 8, 1000]), group_sources=chance.choice([2, 4, 1000])
    )
    target = chance.choice([400, 2_000, 1 << 20])
    monkeypatch.setattr(packing, "target_bytes", lambda *_: target)
    fewest = chance.choice([1, 2, 5])
    world = World(min_objects=fewest, small_object_bytes=1 << 20, limits=limits)
    # A second round meets what the first committed.
    for start in (0, 100):
        put_some(world, chance, start)
        found = forecast_of(world)
        receipt = world.run()
        assert receipt.status == "done"
        assert planned(found) == committed_by(world, f"run-{world.runs}")
        assert len(found.plan.groups) == receipt.counts.objects_out
        assert found.objects == receipt.counts.objects_in
        told = {reason.value: one for reason, one in found.plan.skipped.items()}
        assert told == receipt.skipped


def test_plan_leaves_out_what_a_run_finds_to_be_outputs() -> None:
    world = World(limits=WorkerLimits(window_objects=3))
    world.add("a.json", '{{"id": "{}"}}')
    world.add("c.json", '{{"id": "{}"}}')
    world.add("d.json", '{{"id": "{}"}}')
    name = PARTITION.prefix + f"compacted-{'0' * 32}.json"
    body = b'{"id": "record-99"}\n'
    world.store.seed("source", name, body, last_modified=NOW - 86_400)
    objects = world.store._buckets["source"].objects
    objects[name] = replace(objects[name], metadata={LOG_METADATA: "of-another-run"})
    found = forecast_of(world)
    receipt = world.run()
    assert planned(found) == committed_by(world, "run-1")
    assert found.plan.skipped[SkipReason.OWN_STATE] == receipt.skipped["own_state_or_output"]
    assert found.plan.skipped[SkipReason.OWN_STATE].examples == (name,)
    assert found.objects == 3


def test_plan_counts_what_each_declaration_covers_and_what_none() -> None:
    declared = [
        {"match": "*.csv", "format": "csv", "header": True},
        {"match": "*.x", "format": "text"},
    ]
    world = World(formats=declared)
    for name in ("a.csv", "b.csv", "c.json"):
        world.put(name, b"id,count\n1,2\n")
    covered = coverage_of(world.settings, [forecast_of(world)])
    assert covered == {"1": (2, 26), "0": (1, 13)}
    assert coverage_lines(world.settings.formats, covered) == [
        'formats declares 2 objects, 26 B: *.csv: {"format":"csv","header":true}',
        'formats declares 0 objects, 0 B: *.x: {"format":"text"}',
        "not declared: 1 object, 13 B, compacted if named, dated or proven",
    ]
