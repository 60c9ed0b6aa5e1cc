"""With every rule of the formats taken out, no record is lost: who reads again withholds it.

Detection and framing are replaced by those that joined what was not certain. A run must then
end with an error and commit nothing of it; and ``examine`` must find the fault in outputs that
were committed without a second reading.
"""

from __future__ import annotations

import pytest

from compactor.errors import IntegrityError
from compactor.log.log import CommitLog
from compactor.outputs.verify import check_commit
from compactor.past.deep import examine
from tests.support.examples import PARTITION
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
    with (
        without_rules(headed=MISREAD[name].headed),
        pytest.raises(IntegrityError, match="withheld"),
    ):
        world.run()
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
    with without_rules(), pytest.raises(IntegrityError) as caught:
        world.run()
    assert "4 records in, 1 out" in str(caught.value)
    assert "0.csv" in str(caught.value)
    assert list(world.store.contents("lake", "compacted/").values()) == [b'{"a":1}\n{"a":2}\n']


def test_a_withheld_group_is_told_in_the_receipt_and_again_by_the_next_run() -> None:
    world = world_of(MISREAD["JSON arrays"])
    for _ in range(2):
        with without_rules(), pytest.raises(IntegrityError):
            world.run()
    bodies = world.store.contents("lake", "_compactor/")
    receipts = [body for key, body in bodies.items() if "/receipts/" in key]
    assert len(receipts) == 2
    assert all(b'"failed"' in one and b"IntegrityError" in one for one in receipts)


def test_without_a_second_reading_nothing_would_notice() -> None:
    world = world_of(MISREAD["one row in each object"], second_reading="none")
    with without_rules():
        assert world.run().status == "done"
    assert list(world.store.contents("lake", "compacted/").values()) == [b"web-1,OK,healthy\n"]
