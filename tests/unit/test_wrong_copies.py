"""An output of which the store keeps a wrong CRC32 ends the run; nothing is touched."""

from __future__ import annotations

import pytest

from compactor.conditions import Condition, StoreTraits
from compactor.errors import IntegrityError
from compactor.outputs.verify import check_commit
from tests.support.cleaning import DAY, commits
from tests.support.world import World

RECORDS = 20


def world(*, trusting: bool = True) -> World:
    """A source that the store copies, and keeps a wrong CRC32 of."""
    made = World(clean_up="delete", retention_days=7, small_object_bytes=1)
    made.store.ignores = {Condition.COPIED_CHECKSUM}
    made.store = made.store.with_traits(StoreTraits(knows_copied_crc32=trusting))
    made.add("0.json", '{{"id": "{}"}}', RECORDS)
    return made


def must_be_right(made: World) -> None:
    """Every record is readable once, in outputs that any reader takes."""
    made.check()
    assert set(made.destination()) == made.records
    for commit in commits(made):
        check_commit(commit, made.store)


@pytest.mark.parametrize("trusting", [True, False])
def test_a_wrong_one_ends_the_run_and_every_later_one_and_nothing_is_touched(
    *, trusting: bool
) -> None:
    made = world(trusting=trusting)
    made.store.hooks.after.append(made.check)
    for _ in range(2):
        with pytest.raises(IntegrityError, match="readers that compare them refuse it"):
            made.run()
    assert set(made.destination()) == set(made.sources()) == made.records


def test_clean_up_keeps_the_sources_of_a_wrong_one() -> None:
    made = world()
    with pytest.raises(IntegrityError):
        made.run()
    made.clock.advance(8 * DAY)
    receipt = made.clean_up()
    assert len(receipt.unsafe) == 1
    assert set(made.sources()) == made.records


def test_once_it_was_deleted_by_hand_a_run_that_copies_nothing_builds_it_again() -> None:
    made = world()
    with pytest.raises(IntegrityError):
        made.run()
    (output,) = made.store.contents("lake", "compacted/")
    made.store.remove("lake", output)
    made.store = made.store.with_traits(StoreTraits(copies=False))
    made.store.hooks.after.append(made.check)
    made.run()
    made.store.hooks.clear()
    must_be_right(made)
    (commit,) = commits(made)
    assert commit.replaces == 1
    made.must_be_finished()
