"""Runs schedules with a table, and checks that a removed guard would be noticed."""

from __future__ import annotations

import pytest

from tests.simulation.faults import SPOILED, Fault
from tests.simulation.playing import notice_without_guard, played_to_the_end
from tests.simulation.tables import (
    TABLE_MUTATIONS,
    TABLE_NOTICED,
    explore_many_tables,
    explore_tables,
    play_table,
)
from tests.support.proof_figures import leave

# 40 ms each on one processor; `make proof` runs all of them, `make test` a sample.
SCHEDULES = 5_000
SAMPLE = 300
MOST_FOR_A_GUARD = 3_000
EVENTS = {
    "another publisher",
    "another worker",
    "clean-up",
    "commit replaced between two publishers",
    "late arrival",
    "late arrival that does not fit",
    "publishers with lists of different age",
    "retention passes",
    "rows deleted by a user",
    "snapshots expired",
    "some snapshots expired",
    "table appended to by others",
    "table compacted",
    "table compacted and expired",
    "table overwritten by a user",
    "table rolled back by a user",
    "table takes every output",
}


@pytest.mark.slow
@pytest.mark.timeout(1_200)
def test_each_record_is_in_the_table_once_in_thousands_of_schedules(proof_directory):
    found = played_to_the_end(
        explore_many_tables, proof_directory, all_of_them=SCHEDULES, some=SAMPLE
    )
    never = EVENTS | (set(Fault) - SPOILED - {Fault.NONE})
    assert never <= set(found.faults)
    if proof_directory:
        leave(proof_directory, "simulation-tables", found.figures)


@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("name", TABLE_MUTATIONS)
def test_the_schedules_notice_when_a_guard_of_the_table_is_removed(name, proof_directory):
    notice_without_guard(
        explore_tables,
        name,
        kind="tables",
        most=MOST_FOR_A_GUARD,
        proof=proof_directory,
        known=TABLE_NOTICED[name],
    )


def test_a_schedule_is_reported_line_by_line():
    told = play_table(4, tell=True)
    assert told.violation == ""
    assert any("publisher" in line for line in told.story)
    assert play_table(0, replay=told.recorded).faults == told.faults
