"""A rollback leaves the number that a table says, and takes the rows away: it is seen."""

from __future__ import annotations

import pytest

from compactor.sinks.named_history import Restored, Snapshot, restored_before, rolled_back

# 1 <- 2 (ours) <- 3; and 4, made on 1 after a rollback.
TABLE = {
    1: Snapshot(None, 1),
    2: Snapshot(1, 2),
    3: Snapshot(2, 3),
    4: Snapshot(1, 4),
}


def without(*gone: int) -> dict[int, Snapshot]:
    return {name: one for name, one in TABLE.items() if name not in gone}


@pytest.mark.parametrize(
    ("snapshots", "current"),
    [
        (TABLE, 2),
        (TABLE, 3),
        # What expired says nothing.
        (without(1, 2), 3),
        ({3: Snapshot(2, 3)}, 3),
        # pyiceberg makes those whose parent it expires the first.
        ({3: Snapshot(None, 3)}, 3),
    ],
)
def test_a_snapshot_among_the_ancestors_or_expired_is_no_fault(snapshots, current):
    assert rolled_back(snapshots, current, 2, 2) == ""


@pytest.mark.parametrize(
    ("snapshots", "current", "said"),
    [
        (TABLE, 1, "rolled back to snapshot 1"),
        (TABLE, 4, "rolled back to snapshot 1"),
        (without(2, 3), 4, "rolled back to snapshot 1"),
        ({7: Snapshot(None, 9, adds_all=True)}, 7, "it was replaced"),
        ({}, None, "emptied"),
    ],
)
def test_a_snapshot_that_is_no_ancestor_is_reported(snapshots, current, said):
    assert said in rolled_back(snapshots, current, 2, 2)


def test_a_restore_to_before_our_commit_is_reported():
    assert restored_before([], 3) == ""
    assert restored_before([Restored(5, 3)], 3) == ""
    assert restored_before([Restored(2, 1)], 3) == ""
    assert "version 5 restored it to version 2" in restored_before([Restored(5, 2)], 3)
    assert restored_before([Restored(5, 2), Restored(6, 4)], 3) == ""
    assert restored_before([Restored(5, 2), Restored(7, 6)], 3)


@pytest.mark.parametrize("parent", [1, None])
def test_earlier_metadata_knows_what_expired_and_distinguishes_a_rollback_from_an_expiry(parent):
    # A rollback to 1 and another writer's 4, of which nothing but 4 is left.
    left = {4: Snapshot(parent, 4)}
    assert rolled_back(left, 4, 2, 2) == ""
    assert "rolled back to snapshot 1" in rolled_back(left, 4, 2, 2, [{}, TABLE])
    # The same of 3, whose parent is ours.
    left = {3: Snapshot(None if parent is None else 2, 3)}
    assert rolled_back(left, 3, 2, 2, [TABLE]) == ""


def test_a_table_that_others_emptied_and_filled_is_not_taken_for_a_replaced_one():
    emptied = {**without(3, 4), 5: Snapshot(2, 5), 6: Snapshot(5, 6, adds_all=True)}
    left = {6: Snapshot(None, 6, adds_all=True)}
    assert rolled_back(left, 6, 2, 2, [emptied]) == ""
    assert "it was replaced" in rolled_back(left, 6, 2, 2)
