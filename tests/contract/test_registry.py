"""What the registry stands on, on each table: in memory, on moto, and on DynamoDB Local.

The in-memory one is what the simulation uses; so it must answer as DynamoDB does.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from compactor.errors import InvalidInput
from compactor.model import Partition
from compactor.registry.items import Item, ItemState, Mark, Removal, ordered_sequencer
from compactor.registry.registry_ports import Registry, StreamIdentity
from tests.support.dynamodb import registry_on
from tests.support.memory_registry import MemoryRegistry
from tests.support.moto_server import moto_server
from tests.support.real_servers import Unavailable, dynamodb_local

PARTITION = Partition("source", "logs/day=1/", "day=1/")
STREAM = "logs"
IDENTITY = StreamIdentity(
    STREAM, "s3://source/logs/", "s3://lake/logs/", "s3://lake/_c/", "|None|1"
)
pytestmark = pytest.mark.timeout(300, func_only=True)


@pytest.fixture(scope="module", params=["memory", "moto", "dynamodb-local"])
def place(request: pytest.FixtureRequest) -> Iterator[str]:
    """Where tables are made; empty for those in memory."""
    if request.param == "memory":
        yield ""
    elif request.param == "moto":
        with moto_server() as url:
            yield url
    else:
        try:
            with dynamodb_local() as url:
                yield url
        except Unavailable as reason:
            pytest.skip(str(reason))


@pytest.fixture
def registry(place: str, request: pytest.FixtureRequest) -> Registry:
    on_moto = "moto" in request.node.name
    return registry_on(place, inserts=not on_moto) if place else MemoryRegistry()


def item(name: str, sequencer: str = "", **given: Any) -> Item:
    whole: dict[str, Any] = {"etag": "e1", "size": 10, "time": 1_000.5, "registered": 1_001.25}
    whole |= given
    return Item(PARTITION, name, sequencer=ordered_sequencer(sequencer), **whole)


def removal(name: str, sequencer: str = "", **given: Any) -> Removal:
    whole: dict[str, Any] = {"time": 2_000.0, **given}
    return Removal(PARTITION, name, sequencer=ordered_sequencer(sequencer), **whole)


def pending(registry: Registry, after: str = "") -> list[str]:
    return [one.name for one in registry.pending(STREAM, PARTITION, after)]


def test_what_is_registered_is_pending_as_its_event_named_it(registry: Registry) -> None:
    told = item("a.json", "0055", version="v1", size=2**40)
    assert registry.register(STREAM, [told]).new == [told]
    assert list(registry.pending(STREAM, PARTITION)) == [told]
    assert list(registry.pending("other", PARTITION)) == []
    assert list(registry.pending(STREAM, replace(PARTITION, path="day=2/"))) == []


def test_an_event_that_comes_twice_is_one_item(registry: Registry) -> None:
    assert len(registry.register(STREAM, [item("a", "1")]).new) == 1
    again = registry.register(STREAM, [item("a", "1"), item("a", "1", registered=9_000.0)])
    assert (len(again.new), again.known) == (0, 2)
    assert pending(registry) == ["a"]
    assert next(registry.pending(STREAM, PARTITION)).registered == 1_001.25


def test_the_later_of_two_events_stands_in_whatever_order_they_come(registry: Registry) -> None:
    early, late = item("a", "0A", etag="e1"), item("a", "0B", etag="e2")
    registry.register(STREAM, [late])
    assert registry.register(STREAM, [early]).known == 1
    assert [one.etag for one in registry.pending(STREAM, PARTITION)] == ["e2"]
    # Padded on the right: 0B1 is later than 0B, and 0A9 is not.
    registry.register(STREAM, [item("a", "0A9", etag="e3")])
    registry.register(STREAM, [item("a", "0B1", etag="e4")])
    assert [one.etag for one in registry.pending(STREAM, PARTITION)] == ["e4"]


def test_a_deleted_object_is_withdrawn_unless_it_was_put_again(registry: Registry) -> None:
    registry.register(STREAM, [item("a", "1"), item("b", "5")])
    found = registry.withdraw(STREAM, [removal("a", "3"), removal("b", "4"), removal("c", "3")])
    assert found.done == 1
    assert pending(registry) == ["b"]
    # What was put before the delete comes late; what was put after it does not.
    registry.register(STREAM, [item("a", "2"), item("c", "2")])
    assert pending(registry) == ["b"]
    registry.register(STREAM, [item("a", "4"), item("c", "4")])
    assert pending(registry) == ["a", "b", "c"]


def test_a_version_that_was_deleted_takes_no_other_with_it(registry: Registry) -> None:
    registry.register(STREAM, [item("a", "2", version="v2"), item("b", "2", version="v1")])
    registry.withdraw(STREAM, [removal("a", "3", version="v1"), removal("b", "3", version="v1")])
    registry.withdraw(STREAM, [removal("never", "3", version="v1")])
    assert pending(registry) == ["a"]


def test_what_list_found_yields_to_events_and_brings_back_what_is_there(registry: Registry) -> None:
    registry.register(STREAM, [item("a", "5", etag="new", time=3_000.5), item("b", "5")])
    registry.withdraw(STREAM, [removal("b", "6")])
    found = [
        item("a", etag="old", time=2_000.0),
        item("b", etag="again", time=2_001.0),
        item("c", etag="e1"),
    ]
    assert [one.name for one in registry.register(STREAM, found).new] == ["b", "c"]
    assert [one.etag for one in registry.pending(STREAM, PARTITION)] == ["new", "again", "e1"]
    # Found a second time it is nothing new.
    assert registry.register(STREAM, found).known == 3
    # An event of before the delete is still a late one.
    registry.register(STREAM, [item("b", "55", etag="late")])
    assert [one.etag for one in registry.pending(STREAM, PARTITION)] == ["new", "again", "e1"]
    registry.register(STREAM, [item("b", "7", etag="put")])
    assert [one.etag for one in registry.pending(STREAM, PARTITION)] == ["new", "put", "e1"]


def test_what_is_pending_comes_in_the_order_of_its_keys(registry: Registry) -> None:
    names = [
        "ä",
        "a b",
        "a+b",
        "a/b",
        "z" * 899,
        "z" * 900,
        "m" * 901 + "2",
        "m" * 901 + "1",
        "\U0001f600",
        "\uffee",
    ]
    shuffled = names[:]
    random.Random(7).shuffle(shuffled)
    registry.register(STREAM, [item(one, "1") for one in shuffled])
    ordered = sorted(names, key=str.encode)
    assert pending(registry) == ordered
    for number, name in enumerate(ordered):
        assert pending(registry, name) == ordered[number + 1 :]


def test_a_mark_takes_an_item_out_of_what_is_pending(registry: Registry) -> None:
    registry.register(STREAM, [item(f"{n:03}", "1") for n in range(120)])
    items = list(registry.pending(STREAM, PARTITION))
    marks = [Mark(one, ItemState.COMPACTED) for one in items[:110]]
    assert registry.mark(STREAM, marks, 5_000.0) == 110
    assert pending(registry) == [f"{n:03}" for n in range(110, 120)]
    # The event that comes again finds it compacted.
    assert registry.register(STREAM, [item("000", "1")]).known == 1
    assert registry.mark(STREAM, marks, 5_000.0) == 0


def test_a_mark_leaves_alone_what_was_put_again_meanwhile(registry: Registry) -> None:
    registry.register(STREAM, [item("a", "1"), item("b", "1"), item("c", "1")])
    items = list(registry.pending(STREAM, PARTITION))
    registry.register(STREAM, [item("b", "2", etag="e2")])
    marks = [Mark(one, ItemState.COMPACTED) for one in items]
    assert registry.mark(STREAM, marks, 5_000.0) == 2
    assert pending(registry) == ["b"]


def test_what_was_left_is_pending_with_its_reason(registry: Registry) -> None:
    registry.register(STREAM, [item("a", "1")])
    (found,) = registry.pending(STREAM, PARTITION)
    assert registry.mark(STREAM, [Mark(found, ItemState.LEFT, reason="empty@1")], 5_000.0) == 1
    (left,) = registry.pending(STREAM, PARTITION)
    assert (left.state, left.reason) == (ItemState.LEFT, "empty@1")
    assert registry.mark(STREAM, [Mark(left, ItemState.PENDING)], 5_000.0) == 1
    assert next(registry.pending(STREAM, PARTITION)).state is ItemState.PENDING


def test_a_partition_rests_only_if_nothing_touched_it_since(registry: Registry) -> None:
    registry.touch(STREAM, "day=1/", 10.5)
    registry.touch(STREAM, "", 30.0)
    registry.touch(STREAM, "day=1/", 5.0)
    heads = {one.path: one for one in registry.heads(STREAM)}
    assert {path: (one.touched, one.newest) for path, one in heads.items()} == {
        "day=1/": (2, 10.5),
        "": (1, 30.0),
    }
    registry.touch(STREAM, "day=1/", 6.0)
    assert not registry.rest(STREAM, heads["day=1/"], 100.0)
    assert registry.rest(STREAM, heads[""], 100.0)
    assert [one.path for one in registry.heads(STREAM)] == ["day=1/"]
    # It still tells when its newest object was put.
    resting = registry.head(STREAM, "")
    assert resting is not None
    assert resting.newest == 30.0
    registry.touch(STREAM, "", 31.0)
    assert sorted(one.path for one in registry.heads(STREAM)) == ["", "day=1/"]


def test_a_batch_is_passed_once(registry: Registry) -> None:
    assert registry.batch(STREAM).number == 1
    assert registry.advance(STREAM, 1, 77.5, "arn:1")
    assert not registry.advance(STREAM, 1, 99.0, "arn:other")
    found = registry.batch(STREAM)
    assert (found.number, found.cut, found.execution) == (2, 77.5, "arn:1")
    assert registry.advance(STREAM, 2, 99.0, "arn:2")
    assert not registry.advance(STREAM, 2, 99.0, "arn:other")


def test_a_stream_is_whose_it_was_first(registry: Registry) -> None:
    born = registry.claim(IDENTITY, 1_000.0)
    assert registry.claim(IDENTITY, 2_000.0) == born
    with pytest.raises(InvalidInput, match="listing"):
        registry.claim(replace(IDENTITY, destination="s3://lake/other/"), 3_000.0)


def test_of_many_that_come_together_the_later_events_stand_too(registry: Registry) -> None:
    registry.register(STREAM, [item(f"{n:02}", "5", etag="old") for n in range(10)])
    many = [item(f"{n:02}", "6" if n % 2 else "4", etag="new") for n in range(60)]
    found = registry.register(STREAM, many)
    assert (len(found.new), found.known, len(found.failed)) == (55, 5, 0)
    etags = {one.name: one.etag for one in registry.pending(STREAM, PARTITION)}
    assert len(etags) == 60
    assert {name for name, etag in etags.items() if etag == "old"} == {
        f"{n:02}" for n in range(0, 10, 2)
    }
