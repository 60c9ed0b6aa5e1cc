"""Whatever instant a clean-up dies at, or another one comes between: nothing is lost."""

from __future__ import annotations

import pytest

from compactor.errors import CompactorError, TransientStoreError
from tests.support.cleaning import DAY, compact_more, left, old_world, records
from tests.support.memory_store import Crashed
from tests.support.world import LOG_LINE, World
from tests.unit.test_crashes import at_call, death


def old(**given: object) -> World:
    """Three commits past retention, one of which quarantines a source; and an orphan."""
    made = old_world("ab", **given)
    compact_more(made, "c.log", template=LOG_LINE)
    made.clock.advance(-8 * DAY)
    made.put("g.log.gz", b"\x1f\x8b broken")
    made.run()
    made.store.create_upload("lake", f"compacted/2026/01/02/compacted-{'0' * 32}.json")
    made.clock.advance(8 * DAY)
    return made


def calls_of_a_clean_up() -> int:
    made = old()
    before = len(made.store.calls)
    made.clean_up()
    return len(made.store.calls) - before


CALLS = calls_of_a_clean_up()


def must_be_clean(made: World) -> None:
    """Every compacted source is gone, all is written down, and nothing is tried again."""
    made.check()
    assert left(made) == ["g.log.gz"], "quarantined: never deleted"
    assert set(made.destination()) == made.records
    assert sorted(records(made)) == [1, 2, 3]
    assert made.store.unfinished_uploads("lake") == {}
    deletes = made.store.count("delete_source")
    receipt = made.clean_up()
    assert (receipt.status, receipt.counts.deleted, receipt.unsafe) == ("done", 0, [])
    assert made.store.count("delete_source") == deletes


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("number", range(1, CALLS + 1))
def test_a_clean_up_that_dies_at_any_request_is_made_good_by_the_next(
    number: int, moment: str
) -> None:
    made = old()
    finished = False
    with death(made, number, moment):
        made.clean_up()
        finished = True
    assert not finished
    made.store.hooks.after.append(made.check)
    assert made.clean_up().unsafe == []
    must_be_clean(made)


@pytest.mark.parametrize("number", range(1, CALLS + 1))
def test_two_concurrent_clean_ups_delete_what_one_would(number: int) -> None:
    made = old()
    made.store.hooks.after.append(made.check)
    made.store.hooks.before.append(at_call(number, made.clean_up))
    made.clean_up()
    must_be_clean(made)


@pytest.mark.parametrize("number", range(1, CALLS + 1))
def test_an_answer_may_be_lost(number: int) -> None:
    made = old()

    def lose() -> None:
        raise TransientStoreError("the answer was lost")

    made.store.hooks.after.append(at_call(number, lose))
    try:
        made.clean_up()
    except TransientStoreError:
        made.check()
    made.store.hooks.clear()
    made.clean_up()
    must_be_clean(made)


@pytest.mark.parametrize("number", range(1, CALLS + 1))
def test_a_source_may_be_overwritten_at_any_request(number: int) -> None:
    made = old()

    def overwrite() -> None:
        made.records.add(9_000)
        made.put("a.json", b'{"id": "record-9000"}\n')

    made.store.hooks.before.append(at_call(number, overwrite))
    made.store.hooks.after.append(made.check)
    made.clean_up()
    made.run()
    made.clean_up()
    assert made.sources()[9_000] == 1, "the new content is in no output"
    assert made.destination()[9_000] == 0


@pytest.mark.parametrize("number", range(1, CALLS + 1))
def test_a_compaction_may_come_between(number: int) -> None:
    made = old()
    made.add("late.json", '{{"id": "{}"}}')

    def compact() -> None:
        # Its writer is another process: what it raises is its own affair.
        try:
            made.run()
        except CompactorError:
            made.check()

    made.store.hooks.after.append(made.check)
    made.store.hooks.before.append(at_call(number, compact))
    made.clean_up()
    made.store.hooks.clear()
    assert set(made.destination()) == made.records
    assert left(made) == ["g.log.gz", "late.json"], "that commit is young"


@pytest.mark.parametrize("name", ["delete_source", "create"])
def test_a_kill_between_the_deletes_and_the_record_leaves_the_rest_to_the_next(name: str) -> None:
    made = old()
    made.store.hooks.crash("after" if name == "delete_source" else "before", name, nth=1)
    with pytest.raises(Crashed):
        made.clean_up()
    made.store.hooks.clear()
    assert records(made) == {}
    assert made.clean_up().counts.commits == 2
    must_be_clean(made)
