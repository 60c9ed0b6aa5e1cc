"""Schedules with a table, and whether what watches them would notice anything."""

from __future__ import annotations

import pytest

from tests.simulation.faults import Fault
from tests.simulation.tables import (
    TABLE_MUTATIONS,
    TABLE_NOTICED,
    explore_many_tables,
    explore_tables,
    play_table,
)
from tests.support.proof_figures import leave, note_mutation
from tests.support.sample import sample

# 40 ms each on one processor; `make proof` plays all of them, `make test` some.
SCHEDULES = 5_000
SAMPLE = 300
MOST_FOR_A_GUARD = 1_000
EVENTS = {
    "another publisher",
    "another worker",
    "clean-up",
    "late arrival",
    "retention passes",
    "snapshots expired",
    "table appended to by others",
    "table compacted",
    "table compacted and expired",
}


@pytest.mark.slow
@pytest.mark.timeout(1_200)
def test_each_record_is_in_the_table_once_in_thousands_of_schedules(proof_directory):
    count = SCHEDULES if proof_directory else SAMPLE
    first = 0 if proof_directory else sample() * SAMPLE
    found = explore_many_tables(first, count)
    assert found.violations == []
    assert found.schedules == count
    never = EVENTS | {fault for fault in Fault if fault not in {Fault.NONE, Fault.FLIPPED}}
    assert never <= set(found.faults)
    if proof_directory:
        faults = {str(kind): many for kind, many in found.faults.most_common()}
        figures = {"schedules": count, "requests": found.turns, "violations": 0, "faults": faults}
        leave(proof_directory, "simulation-tables", figures)


@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("name", TABLE_MUTATIONS)
def test_the_schedules_notice_when_a_guard_of_the_table_is_removed(name, proof_directory):
    found = explore_tables(TABLE_NOTICED[name], 1, name)
    if proof_directory or not found.violations:
        found = explore_tables(0, MOST_FOR_A_GUARD, name)
    assert found.violations, f"{found.schedules} schedules did not notice"
    assert "no error of ours" not in found.violations[0][1], "the mutation itself is broken"
    if proof_directory:
        note_mutation(proof_directory, "tables", name, found.schedules)


def test_a_schedule_is_told_line_by_line():
    told = play_table(4, tell=True)
    assert told.violation == ""
    assert any("publisher" in line for line in told.story)
    assert play_table(0, replay=told.recorded).faults == told.faults
