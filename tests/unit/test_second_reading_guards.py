"""With every rule of the formats taken out, no record is lost: who reads again withholds it.

Detection and framing are replaced by those that joined what was not certain. A run must then
leave its sources alone and publish nothing of it; and ``examine`` must find the fault in outputs
that were committed without a second reading.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from compactor.errors import TransientStoreError
from compactor.log.log import CommitLog
from compactor.outputs.verify import check_commit
from compactor.verification.deep import examine
from tests.support.examples import PARTITION
from tests.support.memory_store import Call
from tests.support.misread import MISREAD, Misread
from tests.support.naive_formats import without_rules
from tests.support.world import World

# A newline behind binary content is a fault, and so are two values on one line.
NOT_EVEN_ALONE = {"MessagePack", "UTF-16", "EBCDIC", "long JSON without newlines"}
HEALTHY = (("x.jsonl", b'{"a":1}\n'), ("y.jsonl", b'{"a":2}'))


def world_of(case: Misread, *, packed: bool = False, **given: str) -> World:
    world = World(**given)
    for name, content in case.sources:
        world.put(name + ".gz" * packed, content, packed=packed)
    return world


@pytest.mark.parametrize("how", ["sample", "all"])
@pytest.mark.parametrize("name", MISREAD)
def test_what_is_joined_wrongly_is_withheld_before_the_commit(name: str, how: str) -> None:
    world = world_of(MISREAD[name], second_reading=how)
    with without_rules(headed=MISREAD[name].headed):
        receipt = world.run()
    assert (receipt.status, set(receipt.left_alone)) == ("done", {"records_differ"})
    assert "withheld" in receipt.left_alone["records_differ"].detail
    assert world.store.contents("lake", "compacted/") == {}
    assert not list(world.store.list_uploads("lake", ""))


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", MISREAD)
def test_what_was_joined_wrongly_is_found_in_the_outputs(name: str, packed: bool) -> None:
    world = world_of(MISREAD[name], packed=packed, second_reading="none")
    with without_rules(headed=MISREAD[name].headed):
        assert world.run().status == "done"
    (commit,) = CommitLog(world.store, world.settings, PARTITION).every_commit()
    check_commit(commit, world.store)
    findings = examine(commit, world.store, world.settings)
    assert {one.kind for one in findings} == {MISREAD[name].kind}
    assert {one.output_key for one in findings} == set(world.store.contents("lake", "compacted/"))
    keys = {row.source.key for row in commit.rows}
    assert all(one.sources and keys.issuperset(one.sources) for one in findings)


@pytest.mark.parametrize("name", sorted(MISREAD.keys() - NOT_EVEN_ALONE))
def test_one_object_alone_is_no_fault(name: str) -> None:
    _, content = MISREAD[name].sources[0]
    world = World()
    world.put("one.csv", content)
    with without_rules(headed=MISREAD[name].headed):
        assert world.run().status == "done"
    (commit,) = CommitLog(world.store, world.settings, PARTITION).every_commit()
    assert not examine(commit, world.store, world.settings)


def test_the_other_groups_of_a_partition_go_on() -> None:
    world = world_of(MISREAD["one row in each object"])
    for name, content in HEALTHY:
        world.put(name, content)
    with without_rules():
        left = world.run().left_alone["records_differ"]
    assert left.objects == len(MISREAD["one row in each object"].sources)
    assert "4 records in, 1 out" in left.detail
    assert "0.csv" in left.detail
    assert list(world.store.contents("lake", "compacted/").values()) == [b'{"a":1}\n{"a":2}\n']


def test_a_withheld_group_stays_set_aside_until_its_sources_or_settings_change() -> None:
    case = MISREAD["JSON arrays"]
    world = world_of(case)
    with without_rules():
        assert world.run().left_alone["records_differ"].objects == len(case.sources)
        reads = world.store.count("read_source")
        again = world.run()
        assert (again.status, again.left_alone) == ("done", {})
        assert again.skipped["quarantined"].objects == len(case.sources)
        assert world.store.count("read_source") == reads
    world.settings = replace(world.settings, csv_header="absent")
    assert world.run().status == "done"
    assert world.store.count("read_source") > reads
    assert world.store.contents("lake", "compacted/")


def test_a_source_of_a_withheld_group_that_changes_is_read_again() -> None:
    world = world_of(MISREAD["JSON arrays"])
    with without_rules():
        world.run()
    name, _ = MISREAD["JSON arrays"].sources[0]
    world.put(name, HEALTHY[0][1])
    receipt = world.run()
    assert (receipt.status, receipt.counts.objects_in) == ("done", 1)


def test_a_lost_output_that_is_withheld_when_it_is_built_again_is_left_alone_too() -> None:
    case = MISREAD["JSON arrays"]
    world = world_of(case, second_reading="none")

    def die(call: Call) -> None:
        if call.name == "complete_upload":
            raise TransientStoreError("no answer")

    world.store.hooks.before.append(die)
    with without_rules(), pytest.raises(TransientStoreError):
        world.run()
    world.store.hooks.clear()
    for upload in list(world.store.list_uploads("lake", "")):
        world.store.abort_upload("lake", upload.key, upload.upload_id)
    world.settings = replace(world.settings, second_reading="sample")
    with without_rules():
        receipt = world.run()
    assert receipt.left_alone["records_differ"].objects == len(case.sources)
    assert world.store.contents("lake", "compacted/") == {}
    assert len(CommitLog(world.store, world.settings, PARTITION).load().committed) == 0


def test_what_a_withheld_group_passed_over_is_compacted_by_the_same_run() -> None:
    world = world_of(MISREAD["one row in each object"])
    # It sorts between the sources of the group, and belongs into another one.
    world.put("1-misfit", HEALTHY[0][1])
    with without_rules():
        receipt = world.run()
    assert set(receipt.left_alone) == {"records_differ"}
    assert list(world.store.contents("lake", "compacted/").values()) == [HEALTHY[0][1]]


def test_without_a_second_reading_nothing_would_notice() -> None:
    world = world_of(MISREAD["one row in each object"], second_reading="none")
    with without_rules():
        assert world.run().status == "done"
    assert list(world.store.contents("lake", "compacted/").values()) == [b"web-1,OK,healthy\n"]
