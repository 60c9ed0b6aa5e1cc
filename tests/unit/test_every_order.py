"""What a worker asks concurrently may be answered in any order: each of them comes to the same."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from unittest.mock import patch

import pytest

from compactor.errors import CompactorError, IntegrityError, InvalidInput
from compactor.log.log import CommitLog
from tests.simulation.faults import DIES, Fault
from tests.simulation.processes import Process, without_threads
from tests.support.cleaning import LINE
from tests.support.examples import PARTITION, settings
from tests.support.memory_store import Call, Crashed
from tests.support.world import World

STATE = "_compactor/compacted/"
_READS = frozenset({"list_level", "list_objects", "read_source", "get", "head"})
_MOST_ORDERS = 2_000
# One in so many moments at which a worker may die is tried.
_NTH = 2
_OUTPUTS, _IDENTITY = "list_level compacted/", "(create|get) .*/identity.json"
_UPLOAD, _PART, _PUBLISHED = "create_upload", "upload_part", "complete_upload"
_COMMIT = r"create .*/\d+.json.gz"
_CHECKPOINT = "create .*checkpoint.json.gz"
#: Of each two, every request of the first kind takes effect before any of the second is made.
WRITE_ORDER = (
    (_OUTPUTS, _IDENTITY),
    (_IDENTITY, _UPLOAD),
    (_UPLOAD, _PART),
    (_PART, _COMMIT),
    (_COMMIT, _PUBLISHED),
    (_PUBLISHED, _CHECKPOINT),
    (_PUBLISHED, "put .*/receipts/"),
)


@dataclass
class Played:
    """One order.

    Attributes:
        calls: requests in the order in which they took effect.
        taken, of: which of how many requests went first, each time there were several.
        error: what the worker ended with.
    """

    world: World
    calls: list[Call] = field(default_factory=list)
    taken: list[int] = field(default_factory=list)
    of: list[int] = field(default_factory=list)
    error: BaseException | None = None

    @property
    def written(self) -> list[str]:
        """What changed anything, but for the account of the call."""
        made = (one for one in self.calls if one.name not in _READS)
        return [f"{one.name} {one.key}" for one in made if "/receipts/" not in one.key]

    def numbers(self, pattern: str) -> list[int]:
        """Which requests are such."""
        told = (f"{one.name} {one.key}" for one in self.calls)
        return [number for number, one in enumerate(told) if re.match(pattern, one)]


def play(make: Callable[[], World], first: list[int], dies_at: int = -1) -> Played:
    """Run a worker, with the first choices as given and the dullest ones behind them.

    Args:
        make: the world.
        first: the choices.
        dies_at: requests after which it is killed.
    """
    numbers = count(1)
    with without_threads(), patch("uuid.uuid4", lambda: uuid.UUID(int=next(numbers))):
        played = Played(make())

        def choose(among: int) -> int:
            at = len(played.taken)
            played.taken.append(first[at] if at < len(first) else 0)
            played.of.append(among)
            return played.taken[-1]

        def ask(call: Call) -> None:
            if process.ask(call) in DIES:
                raise Crashed(str(call))
            played.calls.append(call)

        process = Process("worker", played.world.run, choose)
        played.world.store.hooks.before.append(ask)
        while not process.ended:
            is_due = len(played.calls) == dies_at
            process.turn(Fault.CRASH_BEFORE if is_due else Fault.NONE)
        played.world.store.hooks.clear()
    played.error = process.error
    return played


def every_order(make: Callable[[], World]) -> Iterator[Played]:
    """All orders, the dullest first."""
    first: list[int] = []
    for _ in range(_MOST_ORDERS):
        played = play(make, first)
        yield played
        at = len(played.taken) - 1
        while at >= 0 and played.taken[at] + 1 == played.of[at]:
            at -= 1
        if at < 0:
            return
        first = [*played.taken[:at], played.taken[at] + 1]
    raise AssertionError(f"more than {_MOST_ORDERS} orders")


def first_run() -> World:
    world = World()
    world.add("a.json", LINE)
    return world


def later_run() -> World:
    world = first_run()
    world.run()
    world.add("b.json", LINE)
    return world


@pytest.mark.parametrize("make", [first_run, later_run])
def test_every_order_leaves_the_same_objects_and_keeps_the_order_of_writes(
    make: Callable[[], World],
) -> None:
    expected: Mapping[str, object] = {}
    orders = set()
    for played in every_order(make):
        assert played.error is None
        orders.add(tuple(played.calls))
        left = objects_of(played.world)
        expected = expected or left
        assert left == expected, played.calls
        assert played.world.store.unfinished_uploads("lake") == {}
        must_be_in_order(played)
    assert len(orders) > 10, "little goes on at once, or only one order of it is played"


def objects_of(world: World) -> Mapping[str, object]:
    """What is there; a receipt counts its requests in the order in which they came."""
    found = world.store.contents("lake")
    return {key: json.loads(body) if "/receipts/" in key else body for key, body in found.items()}


def must_be_in_order(played: Played) -> None:
    for first, second in WRITE_ORDER:
        before, behind = played.numbers(first), played.numbers(second)
        # A log with entries needs no LIST of outputs.
        assert behind, second
        assert before or first == _OUTPUTS, first
        assert not before or max(before) < min(behind), (first, second, played.calls)


@pytest.mark.parametrize("make", [first_run, later_run])
def test_whatever_order_a_worker_dies_in_the_next_one_makes_it_good(
    make: Callable[[], World],
) -> None:
    deaths = 0
    for number, played in enumerate(every_order(make)):
        # Over all orders every moment has its turn, in many of them.
        for dies_at in range(number % _NTH, len(played.calls), _NTH):
            one = play(make, played.taken, dies_at)
            assert isinstance(one.error, Crashed), one.error
            one.world.check()
            one.world.run()
            one.world.must_be_finished()
            deaths += 1
    assert deaths > 60


def another_destination() -> World:
    world = first_run()
    other = settings(s3_state_uri=world.settings.s3_state_uri, s3_destination_uri="s3://lake/b/")
    log = CommitLog(world.store, other, PARTITION)
    log.claim(log.load())
    return world


def another_log() -> World:
    world = later_run()
    key = f"{STATE}identity.json"
    marker = world.store.contents("lake")[key]
    world.store.seed("lake", key, re.sub(rb"0+1\b", b"2", marker))
    return world


def no_marker() -> World:
    world = later_run()
    world.store.remove("lake", f"{STATE}identity.json")
    return world


def no_state() -> World:
    world = later_run()
    for key in world.store.contents("lake", STATE):
        world.store.remove("lake", key)
    return world


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (another_destination, InvalidInput),
        (another_log, IntegrityError),
        (no_marker, IntegrityError),
        (no_state, IntegrityError),
    ],
)
def test_in_no_order_is_anything_written_for_a_log_that_is_not_this_partitions(
    make: Callable[[], World], error: type[CompactorError]
) -> None:
    orders = 0
    for played in every_order(make):
        orders += 1
        assert isinstance(played.error, error), (played.error, played.calls)
        assert played.written == []
    assert orders > 1


def other_partitions() -> World:
    world = first_run()
    log = CommitLog(world.store, settings(s3_source_uri="s3://source/logs/2026/"), PARTITION)
    log.claim(log.load())
    return world


def test_in_no_order_is_anything_stored_where_the_source_was_divided_otherwise() -> None:
    orders = 0
    for played in every_order(other_partitions):
        orders += 1
        assert isinstance(played.error, InvalidInput), (played.error, played.calls)
        assert played.written == []
    assert orders > 1
