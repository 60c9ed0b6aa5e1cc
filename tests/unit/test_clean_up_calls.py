"""Clean-up over several calls, and over a log that is not as it was written."""

from __future__ import annotations

from typing import Any

import pytest

from compactor.cleaning.clean_partition import record_clean_up
from compactor.cleaning.clean_up_receipts import CleanUpReceipt, decode, earlier
from compactor.errors import IntegrityError, TransientStoreError
from tests.support.cleaning import (
    commits,
    compact_more,
    left,
    old_world,
    one_key,
    other_bytes,
    records,
    refusing,
    rewrite,
)
from tests.support.examples import PARTITION, Looks
from tests.support.world import World

# A log that is not as it was written.


def test_a_damaged_entry_keeps_every_source_of_its_partition() -> None:
    world = old_world()
    compact_more(world, "y.json")
    compact_more(world, "z.json")
    damaged = one_key(2)
    world.store.seed("lake", damaged, world.store.contents("lake")[damaged][:-9], last_modified=0)
    with pytest.raises(IntegrityError, match=r"commits/0+2\.json\.gz is damaged"):
        world.clean_up()
    assert len(left(world)) == 4
    receipt = decode(world.store.contents("lake", "_compactor/compacted/runs/")[receipt_key(world)])
    assert (receipt.status, receipt.error) == ("failed", "IntegrityError")
    assert "is damaged" in receipt.cause


def receipt_key(world: World) -> str:
    where = f"_compactor/compacted/runs/run-{world.runs}/clean-ups/"
    return f"{where}{PARTITION.id}.json"


def test_an_entry_under_the_number_of_another_is_damage() -> None:
    world = old_world()
    compact_more(world, "y.json")
    world.store.seed("lake", one_key(2), world.store.contents("lake")[one_key(1)], last_modified=0)
    with pytest.raises(IntegrityError, match="it says that it is entry 1"):
        world.clean_up()
    assert len(left(world)) == 3


def test_a_missing_entry_keeps_every_source_of_its_partition() -> None:
    world = old_world()
    compact_more(world, "y.json")
    compact_more(world, "z.json")
    world.store.remove("lake", one_key(2))
    with pytest.raises(IntegrityError, match="no entry 2, but was 3 entries long"):
        world.clean_up()
    assert len(left(world)) == 4


def test_an_entry_that_is_gone_keeps_every_source_also_when_it_was_done_with() -> None:
    world = old_world()
    world.clean_up()
    compact_more(world, "z.json")
    world.store.remove("lake", one_key(1))
    with pytest.raises(IntegrityError, match="no entry 1"):
        world.clean_up()
    assert left(world) == ["z.json"]


def test_a_record_of_another_commit_stops_everything() -> None:
    world = old_world()
    compact_more(world, "y.json")
    (newest, _) = commits(world)
    refusing(world, a="AccessDenied: no")
    world.clean_up()
    assert list(records(world)) == [2]
    rewrite(world, newest, commit_id="another")
    with pytest.raises(IntegrityError, match="and the log has another there"):
        world.clean_up()


def test_a_record_that_another_commit_left_is_not_overwritten() -> None:
    world = old_world()
    key = one_key(1).replace("commits/", "cleaned/").removesuffix(".gz")

    def leave(call: Any) -> None:
        if call.name == "delete_source" and key not in world.store.contents("lake"):
            record = b'{"version": 1, "commit_id": "x", "run_id": "r", "at": 1}'
            world.store.seed("lake", key, record)

    world.store.hooks.before.append(leave)
    with pytest.raises(IntegrityError, match="is about commit x"):
        world.clean_up()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'{"version": 1}',
        b'{"version": 2, "commit_id": "x", "run_id": "", "at": 1}',
    ],
)
def test_a_damaged_record_is_an_integrity_error(body: bytes) -> None:
    world = old_world()
    compact_more(world, "y.json")
    key = one_key(2).replace("commits/", "cleaned/").removesuffix(".gz")
    world.store.seed("lake", key, body)
    with pytest.raises(IntegrityError, match=r"cleaned/0+2\.json"):
        world.clean_up()
    assert len(left(world)) == 3


# Time, and calls.


def fresh(world: World) -> CleanUpReceipt:
    return CleanUpReceipt(PARTITION.path, f"run-{world.runs}")


def test_a_call_ends_between_two_commits_and_the_next_goes_on() -> None:
    world = old_world()
    compact_more(world, "y.json")
    compact_more(world, "z.json")
    first = record_clean_up(world.clean_up_run(deadline=Looks(1)), fresh(world))
    assert (first.status, first.counts.commits, left(world)) == ("more", 2, ["z.json"])
    again = world.clean_up_run()
    second = record_clean_up(again, earlier(world.settings, again.run_id, PARTITION, world.store))
    assert (second.status, second.counts.commits, second.counts.calls) == ("done", 3, 2)
    assert second.counts.deleted == 4
    assert second.counts.requests["DELETE"] == 4


def test_every_call_gets_one_commit_further_however_little_time_there_is() -> None:
    world = old_world()
    compact_more(world, "y.json")
    receipt = fresh(world)
    for number in (1, 2):
        receipt = record_clean_up(world.clean_up_run(deadline=Looks(0)), receipt)
        assert receipt.counts.commits == number
    assert left(world) == []


def test_a_later_call_of_the_run_looks_at_nothing_twice() -> None:
    world = old_world()
    compact_more(world, "y.json")
    other_bytes(world, next(c.output.key for c in commits(world) if c.output and c.sequence == 1))
    refusing(world, y="AccessDenied: no")
    receipt = fresh(world)
    for _ in range(3):
        receipt = record_clean_up(world.clean_up_run(deadline=Looks(0)), receipt)
    assert (receipt.status, len(receipt.unsafe), receipt.counts.refused) == ("done", 1, 1)


def test_a_call_that_fails_half_way_leaves_what_it_did() -> None:
    world = old_world()
    compact_more(world, "y.json")

    def trouble(call: Any) -> None:
        if call.name == "delete_source" and call.key.endswith("y.json"):
            raise TransientStoreError("busy")

    world.store.hooks.before.append(trouble)
    with pytest.raises(TransientStoreError):
        world.clean_up()
    run_id = f"run-{world.runs}"
    receipt = earlier(world.settings, run_id, PARTITION, world.store)
    assert (receipt.status, receipt.error, receipt.cause) == (
        "failed",
        "TransientStoreError",
        "busy",
    )
    assert (receipt.counts.deleted, receipt.counts.commits) == (2, 1)
    world.store.hooks.clear()
    run = world.clean_up_run(run_id=run_id)
    receipt = record_clean_up(run, receipt)
    assert (receipt.status, receipt.error, receipt.cause) == ("done", "", "")
    assert (receipt.counts.deleted, receipt.counts.commits) == (3, 2)


def test_the_log_is_read_one_commit_at_a_time() -> None:
    world = old_world()
    compact_more(world, "y.json")
    order: list[str] = []

    def note(call: Any) -> None:
        order.append(f"{call.name} {call.key.rpartition('/')[2]}")

    world.store.hooks.before.append(note)
    world.clean_up()
    gets = [one for one in order if one.startswith("get 0")]
    name = "get {:020d}.json.gz".format
    assert gets == [name(2), name(1), name(1), name(2)], "all of it before anything is deleted"
    assert order.index("delete_source a.json") > order.index(gets[1])
