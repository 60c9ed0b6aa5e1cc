"""Originals that are restored to where they were are known, whatever their ETag is now."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compactor.clock import NoDeadline
from compactor.model import Partition
from compactor.partition.inputs import PartitionRun
from compactor.partition.receipts import Counts
from compactor.partition.run import compact_partition
from compactor_cli import restore_targets
from tests.support.examples import NOW, PARTITION
from tests.support.memory_store import MemoryStore
from tests.support.world import LOG_LINE, World
from tests.unit.test_cli_restore_many import Command, restore, use

__all__ = ["restore"]

DAY = 86_400
COPIED_BYTES = 2_000


def world_of_all_kinds() -> World:
    """Joined, compressed, headed, empty, copied and twice delivered sources, all cleaned up."""
    world = World(small_object_bytes=COPIED_BYTES, delete_after="1d")
    world.store = MemoryStore(world.clock, min_part_bytes=1)
    world.store.add_bucket("lake")
    world.add_variety()
    world.store.remove("source", PARTITION.prefix + "g.log.gz")
    world.add("large.log", LOG_LINE, 90)
    world.add("large.log.gz", LOG_LINE, 400, packed=True)
    assert world.run().status == "done"
    world.clock.advance(2 * DAY)
    world.clean_up()
    return world


@pytest.mark.parametrize("other_etags", [False, True], ids=["same ETags", "other ETags"])
def test_originals_of_every_kind_go_back_and_no_run_compacts_them_again(
    other_etags: bool, restore: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    if other_etags:
        # Every object becomes a multipart upload.
        monkeypatch.setattr(restore_targets, "_PART_BYTES", 8)
    world = use(world_of_all_kinds(), monkeypatch)
    assert not world.sources()
    outputs = world.store.contents("lake", "compacted/")
    code, _, err = restore("--all", "-o", "s3://source/")
    assert (code, err) == (0, "")
    assert set(world.sources()) == world.records
    for _ in range(2):
        world.clock.advance(DAY / 2)
        receipt = world.run()
        assert (receipt.status, receipt.counts.objects_in) == ("done", 0)
        assert world.store.contents("lake", "compacted/") == outputs
    world.clock.advance(2 * DAY)
    world.clean_up()
    # They are nobody's candidates now: their records stay in both places.
    assert set(world.sources()) == world.records
    world.check()


def test_originals_go_back_to_a_bucket_that_holds_their_outputs_as_well(
    restore: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = use(World(), monkeypatch)
    world.settings = replace(world.settings, s3_source_uri="s3://lake/logs/")
    body = b'{"v": 1}\n'
    world.store.seed("lake", f"{PARTITION.prefix}a.json", body, last_modified=NOW - DAY)
    partition = replace(PARTITION, bucket="lake")
    run = PartitionRun(partition, world.settings, world.store, world.clock, NoDeadline(), "here")
    assert compact_partition(run, Counts()).counts.objects_in == 1
    world.store.remove("lake", f"{PARTITION.prefix}a.json")
    before = world.store.contents("lake", "")
    code, _, err = restore("--all", "-o", "s3://lake/logs/")
    assert (code, "(-o s3://lake/ puts it back under its own key)" in err) == (2, True)
    assert restore("--all", "-o", "s3://lake/")[0] == 0
    assert world.store.contents("lake", "") == {**before, f"{PARTITION.prefix}a.json": body}
    again = replace(run, run_id="again")
    assert compact_partition(again, Counts()).counts.objects_in == 0


def test_a_refusal_of_many_sources_says_the_way_back_once(
    restore: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = use(World(), monkeypatch)
    for n in range(30):
        world.add(f"{n:02}.json", '{{"id": "{}"}}')
    world.run()
    before = world.store.contents("source", "")
    code, _, err = restore("--all", "-o", "s3://source/logs/back/")
    assert code == 2
    assert "/00.json' and 29 more would be new sources in s3://source/logs/" in err
    assert err.count("-o s3://source/ puts each back under its own key") == 1
    assert world.store.contents("source", "") == before


def test_nothing_is_restored_among_outputs_from_above_either(
    restore: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = use(World(), monkeypatch)
    other = replace(world.settings, s3_source_uri="s3://source/compacted/")
    world.store.seed("source", "compacted/a.json", b'{"v": 1}\n', last_modified=NOW - DAY)
    partition = Partition("source", "compacted/", "")
    run = PartitionRun(partition, other, world.store, world.clock, NoDeadline(), "alike")
    assert compact_partition(run, Counts()).counts.objects_in == 1
    before = world.store.contents("lake", "")
    code, _, err = restore("--all", "-o", "s3://lake/")
    assert (code, "would be among outputs or state, in s3://lake/compacted/" in err) == (2, True)
    assert world.store.contents("lake", "") == before
