"""What does not depend on each other runs concurrently: a log is read while sources are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Event
from typing import Any
from unittest.mock import patch

import pytest

from compactor.errors import IntegrityError, InvalidInput, TransientStoreError
from compactor.model import QuarantineReason
from compactor.process.background import Background
from tests.support.cleaning import LINE
from tests.support.examples import NOW
from tests.support.memory_store import Call
from tests.support.world import World

STATE = "_compactor/compacted/"
_SECONDS = 60


def calls_of(world: World) -> list[Call]:
    """Where the requests of a world's store are written down from now on."""
    calls: list[Call] = []
    world.store.hooks.before.append(calls.append)
    return calls


def first(calls: list[Call], name: str, part: str = "") -> int:
    return next(n for n, one in enumerate(calls) if one.name == name and part in one.key)


def test_the_first_page_of_sources_is_listed_while_the_log_is_loaded() -> None:
    world = World()
    world.add("a.json", LINE)
    was_listed = Event()

    def wait_for_the_listing(call: Call) -> None:
        if call.bucket == "source" and call.name == "list_objects":
            was_listed.set()
        elif call.name == "list_objects" and call.key.endswith("/commits/"):
            assert was_listed.wait(_SECONDS), "sources are not listed meanwhile"

    world.store.hooks.before.append(wait_for_the_listing)
    assert world.run().counts.objects_in == 1


def test_sources_are_listed_once_where_that_began_before() -> None:
    world = World()
    world.add("a.json", LINE)
    calls = calls_of(world)
    world.run()
    assert sum(one.name == "list_objects" and one.bucket == "source" for one in calls) == 1


def test_a_listing_that_fails_while_the_log_is_loaded_is_asked_for_again() -> None:
    world = World()
    world.add("a.json", LINE)
    failed: list[Call] = []

    def fail_once(call: Call) -> None:
        if call.bucket == "source" and call.name == "list_objects" and not failed:
            failed.append(call)
            raise TransientStoreError("no answer")

    world.store.hooks.before.append(fail_once)
    assert world.run().counts.objects_in == 1
    assert failed


def test_a_log_that_cannot_be_loaded_ends_the_listing_that_was_begun() -> None:
    world = World()
    world.add("a.json", LINE)
    closed = Event()
    listed = world.store.list_objects

    def pages(bucket: str, prefix: str, **place: Any) -> Iterator[Any]:
        try:
            yield from listed(bucket, prefix, **place)
        finally:
            if bucket == "source":
                closed.set()

    def lose_the_log(call: Call) -> None:
        if call.name == "list_objects" and call.key.endswith("/commits/"):
            raise TransientStoreError("no answer")

    world.store.hooks.before.append(lose_the_log)
    with (
        patch.object(world.store, "list_objects", pages),
        pytest.raises(TransientStoreError),
    ):
        world.run()
    assert closed.is_set()


def test_sources_are_read_while_the_log_is_asked() -> None:
    world = World()
    world.add("a.json", LINE)
    was_read = Event()

    def wait_for_the_reader(call: Call) -> None:
        if call.name == "read_source":
            was_read.set()
        elif call.name == "get" and call.key.endswith("identity.json"):
            assert was_read.wait(_SECONDS), "no source was read meanwhile"

    world.store.hooks.before.append(wait_for_the_reader)
    assert world.run().counts.objects_in == 1


def test_no_upload_is_created_before_it_is_known_whose_log_will_name_it() -> None:
    world = World()
    world.add("a.json", LINE)
    calls = calls_of(world)
    world.run()
    assert first(calls, "create", "identity.json") < first(calls, "create_upload")


def test_no_marker_is_made_for_an_empty_log_beside_an_output() -> None:
    world = World()
    world.add("a.json", LINE)
    world.run()
    world.add("b.json", LINE)
    for key in world.store.contents("lake", STATE):
        world.store.remove("lake", key)
    with pytest.raises(IntegrityError, match="is empty, and s3://lake/"):
        world.run()
    assert f"{STATE}identity.json" not in world.store.contents("lake")
    assert world.store.unfinished_uploads("lake") == {}


def denied(world: World) -> None:
    for key in world.store.contents("source"):
        world.store.unreadable["source", key] = QuarantineReason.ACCESS_DENIED


def changed(world: World) -> None:
    def overwrite(call: Call) -> None:
        if call.name == "read_source":
            world.store.seed("source", call.key, b"{}\n", last_modified=NOW - 86_400)

    world.store.hooks.before.append(overwrite)


@pytest.mark.parametrize("disturb", [denied, changed])
def test_what_is_wrong_with_a_log_is_reported_whatever_becomes_of_the_sources(
    disturb: Callable[[World], None],
) -> None:
    world = World()
    world.add("a.json", LINE)
    world.run()
    for number in range(30):
        world.add(f"b{number:02}.json", LINE)
    for key in world.store.contents("lake", STATE):
        world.store.remove("lake", key)
    disturb(world)
    with pytest.raises(IntegrityError, match="is empty, and s3://lake/"):
        world.run()
    assert world.store.count("create_upload") == 1


def test_the_log_is_summed_up_while_the_receipt_is_written() -> None:
    world = World()
    world.add("a.json", LINE)
    summed_up = Event()

    def wait_for_the_sum(call: Call) -> None:
        if call.key.endswith("checkpoint.json.gz"):
            summed_up.set()
        elif "/receipts/" in call.key and call.name == "put":
            assert summed_up.wait(_SECONDS), "the log is not summed up meanwhile"

    world.store.hooks.before.append(wait_for_the_sum)
    assert world.run().status == "done"


def test_a_call_that_failed_leaves_its_receipt_and_no_sum_of_its_log() -> None:
    world = World()
    world.add("a.json", LINE)
    world.store.hooks.before.append(_refuse_publishing)
    with pytest.raises(TransientStoreError, match="nobody answers"):
        world.run()
    assert any("/receipts/" in key for key in world.store.contents("lake"))
    assert not any("checkpoint" in key for key in world.store.contents("lake"))


def _refuse_publishing(call: Call) -> None:
    if call.name == "complete_upload":
        raise TransientStoreError("nobody answers")


def test_an_error_of_what_goes_on_beside_is_raised_at_the_end_of_the_block() -> None:
    def refuse() -> None:
        raise InvalidInput("depth", 1, "3")

    done: list[str | None] = []
    with pytest.raises(InvalidInput), Background(refuse):
        done.append("the block")
    with pytest.raises(InvalidInput), Background(lambda: None, refuse) as beside:
        done.append(beside.result())
    assert done == ["the block", None]


@pytest.mark.parametrize("error", [IntegrityError("of the block"), KeyboardInterrupt()])
def test_the_error_of_the_block_goes_first_and_nothing_goes_on_after_it(
    error: BaseException,
) -> None:
    begun, ended = Event(), Event()

    def work() -> None:
        begun.set()
        assert not ended.wait(0.05)
        ended.set()

    def fail() -> None:
        begun.wait(_SECONDS)
        raise error

    with pytest.raises(type(error)), Background(work):
        fail()
    assert ended.is_set()


def test_nothing_is_done_after_work_that_failed() -> None:
    done = []

    def refuse() -> None:
        raise IntegrityError("no")

    with pytest.raises(IntegrityError), Background(refuse, lambda: done.append("behind")):
        pass
    assert not done
