"""Runs of many partitions through each kind of fault and through all, workers killed among them.

COMPACTOR_FAULT_SEEDS=n goes through all types together with n seeds instead of one.
"""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from tests.faults.fault_sources import large_partition, partitions
from tests.faults.processes import CONNECTIONS
from tests.support.faults import KILLS, Fault, Rule

SEEDS = int(os.environ.get("COMPACTOR_FAULT_SEEDS", "1"))
WORKERS = 2
PARTITIONS, PARTITIONS_OF_ALL = 5, 24
KILLED = tuple(Rule(fault, 0.08, most=4) for fault in KILLS)
# Shares at which each kind befalls some of a run's hundred requests; what makes clients wait is
# limited.
FAMILIES = {
    "network": (
        Rule(Fault.RESET, 0.06),
        Rule(Fault.HALF_REQUEST, 0.3),
        Rule(Fault.FLIPPED_REQUEST, 0.5, operations=("PART",)),
        Rule(Fault.LOST_ANSWER, 0.06),
        Rule(Fault.CUT_ANSWER, 0.06),
        Rule(Fault.SHORT_ANSWER, 0.06),
        Rule(Fault.SILENCE, 0.06, most=6),
    ),
    "server": (
        Rule(Fault.SLOW_DOWN, 0.06, most=4),
        Rule(Fault.INTERNAL_ERROR, 0.06),
        Rule(Fault.CONFLICT, 0.5, operations=("COMPLETE",)),
    ),
    "workers": (Rule(Fault.LATENCY, 0.3), *KILLED),
}
EVERY = tuple(rule for family in FAMILIES.values() for rule in family)


@pytest.mark.parametrize("family", FAMILIES)
def test_runs_through_one_kind_of_fault_each_lose_and_double_nothing(world, family):
    if family == "workers" and not CONNECTIONS.exists():
        pytest.skip(f"without {CONNECTIONS} nobody can tell which process asks")
    for number, rule in enumerate(FAMILIES[family]):
        name = rule.fault.name.lower()
        world.seed(partitions(PARTITIONS, seed=number, name=name))
        before = world.bench.proxy.counts[rule.fault]
        these = f"{world.places[0]}{name}-*/"
        world.run([rule], seed=number, workers=WORKERS, s3_source_uri=these)
        assert world.bench.proxy.counts[rule.fault] > before, rule
        world.must_not_be_doubled()
    world.must_be_proven()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_run_through_all_types_concurrently_loses_and_doubles_nothing(world, seed):
    world.seed(partitions(PARTITIONS_OF_ALL, seed=100 + seed))
    world.seed(large_partition(seed=seed))
    before = world.bench.proxy.counts.copy()
    rules = [replace(rule, share=rule.share / 6) for rule in EVERY]
    world.run(rules, seed=seed, workers=WORKERS)
    assert len(world.bench.proxy.counts - before) > len(EVERY) // 2
    world.must_be_proven()
