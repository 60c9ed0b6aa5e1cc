"""Runs event schedules, and checks that a removed guard would be noticed."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import chain

import pytest

from tests.simulation.event_mutations import EVENT_MUTATIONS, EVENT_NOTICED
from tests.simulation.events import explore, explore_many, play
from tests.support.proof_figures import leave, note_mutation
from tests.support.sample import sample

# 70 ms each on one processor; `make proof` runs all of them, `make test` a sample.
SCHEDULES = 2_000
SAMPLE = 100
MOST_FOR_A_GUARD = 10_000


_TOLD = "from tests.simulation.events import explore; print(sorted(explore(97, 20)[0].items()))"


@pytest.mark.timeout(1_800)
def test_no_promise_is_broken_whatever_comes_of_events(proof_directory) -> None:
    if proof_directory:
        counts, broken = explore_many(0, SCHEDULES)
    else:
        counts, broken = explore(sample() * SAMPLE, SAMPLE)
    assert broken == []
    wanted = {"died", "meanwhile", "lost", "expired", "reconciled", "compacted", "started"}
    assert wanted <= set(counts)
    if proof_directory:
        disturbed = {name: counts[name] for name in ("died", "meanwhile", "lost", "expired")}
        figures = {"schedules": SCHEDULES, "faults": disturbed, "violations": 0}
        leave(proof_directory, "simulation-events", figures)


@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("guard", EVENT_MUTATIONS)
def test_without_this_guard_a_promise_is_broken(guard: str, proof_directory) -> None:
    known = [] if proof_directory else [EVENT_NOTICED.get(guard, 0)]
    seeds = chain(known, range(MOST_FOR_A_GUARD))
    with EVENT_MUTATIONS[guard]():
        played = next((n for n, seed in enumerate(seeds, 1) if play(seed).violation), 0)
    assert played, "no schedule noticed"
    if proof_directory:
        note_mutation(proof_directory, "events", guard, played)


def test_a_schedule_is_the_same_one_in_every_process() -> None:
    told = {
        subprocess.run(
            [sys.executable, "-c", _TOLD],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in "123"
    }
    assert len(told) == 1
    assert b"died" in told.pop()
