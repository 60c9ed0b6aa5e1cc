"""Runs schedules of a table with a key, and checks that a removed guard would be noticed."""

from __future__ import annotations

import pytest

from tests.simulation.faults import SPOILED, Fault
from tests.simulation.keyed import (
    KEYED_MUTATIONS,
    KEYED_NOTICED,
    explore_keyed,
    explore_many_keyed,
    play_keyed,
)
from tests.simulation.playing import notice_without_guard, played_to_the_end
from tests.support.proof_figures import leave

# 0.1 s each on one processor; `make proof` runs all of them, `make test` a sample.
SCHEDULES = 5_000
SAMPLE = 80
MOST_FOR_A_GUARD = 2_000
EVENTS = {
    "a table that was taken back is refused",
    "another publisher",
    "another worker",
    "clean-up",
    "late arrival",
    "late, older records",
    "retention passes",
    "snapshots expired",
    "somebody else at the table meanwhile",
    "somebody looks at the merge",
    "table appended to by others",
    "table compacted",
    "table compacted and expired",
    "table of keys compacted and expired",
    "taken back by others",
}
# Faults that are possible only at few moments of a schedule.
SELDOM = {Fault.TRUNCATED, Fault.CONFLICT}


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_each_key_has_its_last_record_in_thousands_of_schedules(proof_directory):
    found = played_to_the_end(
        explore_many_keyed, proof_directory, all_of_them=SCHEDULES, some=SAMPLE
    )
    wanted = EVENTS | (set(Fault) - SELDOM - SPOILED - {Fault.NONE})
    assert wanted <= set(found.faults)
    if proof_directory:
        leave(proof_directory, "simulation-keyed", found.figures)


@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("name", KEYED_MUTATIONS)
def test_the_schedules_notice_when_a_guard_of_the_merges_is_removed(name, proof_directory):
    notice_without_guard(
        explore_keyed,
        name,
        kind="keyed",
        most=MOST_FOR_A_GUARD,
        proof=proof_directory,
        known=KEYED_NOTICED[name],
    )


def test_a_schedule_of_merges_is_reported_line_by_line():
    told = play_keyed(3, tell=True)
    assert told.violation == ""
    for who in ("producer", "worker", "driver", "clean-up", "table_merge"):
        assert any(who in line for line in told.story), who
    assert play_keyed(0, replay=told.recorded).faults == told.faults
