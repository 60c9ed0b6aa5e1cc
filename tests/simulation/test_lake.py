"""Runs schedules from events to a table, and checks that a removed guard would be noticed."""

from __future__ import annotations

import pytest

from tests.simulation.faults import SPOILED, Fault
from tests.simulation.lake import (
    LAKE_MUTATIONS,
    LAKE_NOTICED,
    explore_lakes,
    explore_many_lakes,
    play_lake,
)
from tests.simulation.playing import notice_without_guard, played_to_the_end
from tests.support.proof_figures import leave

# 0.1 s each on one processor; `make proof` runs all of them, `make test` a sample.
SCHEDULES = 5_000
SAMPLE = 80
MOST_FOR_A_GUARD = 400
EVENTS = {
    "delivered",
    "delivered again by its producer",
    "done item expires",
    "message lost",
    "produced",
    "reconciled",
    "run by hand",
    "run given up",
    "run started",
    "somebody else at the table meanwhile",
    "step called once more",
    "sweep",
    "table appended to by others",
    "table compacted",
    "table compacted and expired",
    "withdrawn by its producer",
}
# Faults that are possible only at few moments of a schedule.
SELDOM = {Fault.TRUNCATED, Fault.CONFLICT}


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_each_record_that_events_name_is_in_the_table_once(proof_directory):
    found = played_to_the_end(
        explore_many_lakes, proof_directory, all_of_them=SCHEDULES, some=SAMPLE
    )
    wanted = EVENTS | (set(Fault) - SELDOM - SPOILED - {Fault.NONE})
    assert wanted <= set(found.faults)
    if proof_directory:
        leave(proof_directory, "simulation-lake", found.figures)


@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("name", LAKE_MUTATIONS)
def test_the_schedules_notice_when_a_guard_of_the_entrance_is_removed(name, proof_directory):
    notice_without_guard(
        explore_lakes,
        name,
        kind="lake",
        most=MOST_FOR_A_GUARD,
        proof=proof_directory,
        known=LAKE_NOTICED[name],
    )


def test_a_schedule_of_the_entrance_is_reported_line_by_line():
    told = play_lake(3, tell=True)
    assert told.violation == ""
    for who in ("registrar", "sweep", "discovery", "worker", "publisher", "clean-up"):
        assert any(f"{who}" in line for line in told.story), who
    assert play_lake(0, replay=told.recorded).faults == told.faults
