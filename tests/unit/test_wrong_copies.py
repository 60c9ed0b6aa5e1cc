"""Outputs of which the store keeps a wrong CRC32 are taken away and built again without copies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from compactor.conditions import Condition, StoreTraits
from compactor.errors import IntegrityError
from compactor.limits import WorkerLimits
from compactor.model import SourceObject
from compactor.outputs.verify import check_commit
from compactor.ports import Deletion, Refused
from tests.support.cleaning import DAY, commits
from tests.support.examples import PARTITION
from tests.support.memory_store import Call, Crashed
from tests.support.world import World

SLICE = 200_000
PART = 50_000
RECORDS = 20


def world(*, trusting: bool = True, large: int = 1, **limits: int) -> World:
    """A small source before large ones that the store copies, and keeps a wrong CRC32 of."""
    small = WorkerLimits(copy_slice_bytes=SLICE, min_part_bytes=PART, **limits)
    made = World(clean_up="delete", retention_days=7, limits=small)
    made.store._min_part_bytes = PART
    made.store.ignores = {Condition.COPIED_CHECKSUM}
    made.store = made.store.with_traits(StoreTraits(knows_copied_crc32=trusting))
    made.add("0.json", '{{"id": "{}"}}')
    for number in range(large):
        filler = "x" * (SLICE // RECORDS + 1)
        made.add(f"{number + 1}.json", f'{{{{"id": "{{}}", "x": "{filler}"}}}}', RECORDS)
    return made


def must_be_right(made: World) -> None:
    """Every record is readable once, in outputs that any reader takes."""
    made.check()
    assert set(made.destination()) == made.records
    for commit in commits(made):
        check_commit(commit, made.store)


@pytest.mark.parametrize("trusting", [True, False])
def test_a_wrong_one_is_built_again_in_the_same_run(*, trusting: bool) -> None:
    made = world(trusting=trusting)
    made.store.hooks.after.append(made.check)
    receipt = made.run()
    assert (receipt.status, receipt.counts.repaired) == ("done", 1)
    made.store.hooks.clear()
    must_be_right(made)
    (commit,) = commits(made)
    assert commit.replaces == 1
    assert commit.output is not None
    assert commit.output.crc32 is not None
    assert made.store.unfinished_uploads("lake") == {}
    assert not [key for key in made.store.contents("lake") if "/withdrawn/" in key]
    made.must_be_finished()


def test_nothing_more_is_copied_in_that_partition_of_the_run() -> None:
    made = world(large=3, group_sources=2)
    made.run()
    assert made.store.count("copy_part") == 1
    must_be_right(made)


def test_a_source_copied_whole_passes_through_the_worker_instead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("compactor.planning.packing.target_bytes", lambda *_: 2 * SLICE)
    made = world()
    made.store.hooks.after.append(made.check)
    made.run()
    made.store.hooks.clear()
    must_be_right(made)
    assert {commit.output.copied for commit in commits(made) if commit.output} == {True, False}


def killed_at(made: World, number: int, moment: str) -> bool:
    """The worker dies at this request; False where it asked for fewer."""
    seen = Counter[str]()

    def die(call: Call) -> None:
        seen[moment] += 1
        if seen[moment] >= number:
            raise Crashed(str(call))

    def dead(call: Call) -> None:
        if seen[moment] >= number:
            raise Crashed(f"already dead at {call}")

    made.store.hooks.before.append(dead)
    getattr(made.store.hooks, moment).append(die)
    try:
        made.run()
    except Crashed:
        return True
    finally:
        made.store.hooks.clear()
        made.check()
    return False


@pytest.mark.parametrize("moment", ["before", "after"])
def test_killed_at_any_request_nothing_is_doubled_and_the_next_run_ends_it(moment: str) -> None:
    request, killed = 0, True
    while killed:
        request += 1
        made = world()
        killed = killed_at(made, request, moment)
        # A clean-up in between deletes nothing that is nowhere else.
        made.clock.advance(8 * DAY)
        made.clean_up()
        made.check()
        made.store.hooks.after.append(made.check)
        made.run()
        made.store.hooks.clear()
        must_be_right(made)
    assert request > 30


@pytest.mark.parametrize(
    "moment", ["head", "create", "delete_source", "create_upload", "complete_upload"]
)
def test_of_two_runs_that_see_it_at_once_one_builds_it_again(moment: str) -> None:
    made = world()
    began: list[Call] = []

    def other(call: Call) -> None:
        deleting = any(one.name == "delete_source" for one in made.store.calls)
        if call.name == moment and not began and (deleting or moment == "delete_source"):
            began.append(call)
            made.run()

    made.store.hooks.before.append(other)
    made.store.hooks.after.append(made.check)
    made.run()
    made.store.hooks.clear()
    assert began
    must_be_right(made)


def gone_at(made: World, name: str) -> None:
    """The owner deletes the large source just before the nth such request."""

    def remove(call: Call) -> None:
        if call.name == name and not removed:
            removed.append(call)
            made.store.remove("source", PARTITION.prefix + "1.json")

    removed: list[Call] = []
    made.store.hooks.before.append(remove)


def test_records_of_a_source_that_goes_meanwhile_are_published_from_the_kept_copy() -> None:
    for killed in (False, True):
        made = world()
        gone_at(made, "delete_source")
        if killed:
            made.store.hooks.crash("after", "delete_source")
            with pytest.raises(Crashed):
                made.run()
            made.store.hooks.clear()
        made.run()
        assert made.store.contents("source", PARTITION.prefix + "1.json") == {}
        assert set(made.destination()) == made.records
        made.check()
        (commit,) = commits(made)
        assert commit.output is not None
        assert commit.output.crc32 is not None
        check_commit(commit, made.store)


def test_where_a_source_is_gone_before_the_wrong_output_stays_and_is_told() -> None:
    made = world()
    gone_at(made, "complete_upload")
    with pytest.raises(IntegrityError, match="it is not built again: source"):
        made.run()
    assert set(made.destination()) == made.records


def test_an_output_that_may_not_be_deleted_stays_and_is_told() -> None:
    made = world()

    def refuse(sources: Sequence[SourceObject]) -> Deletion:
        return Deletion(tuple(Refused(one.key, "AccessDenied") for one in sources))

    made.store.delete_sources = refuse  # type: ignore[method-assign] # a refusing store
    with pytest.raises(IntegrityError, match="stays: AccessDenied"):
        made.run()
    assert set(made.destination()) == made.records
    made.check()


def test_the_output_built_again_has_another_key_for_the_same_sources() -> None:
    made = world()
    made.run()
    keys = [one.key for one in made.store.calls if one.name == "create_upload"]
    first, again = (key for key in keys if key.startswith("compacted/"))
    assert first != again
    (commit,) = commits(made)
    assert commit.group_id in again
