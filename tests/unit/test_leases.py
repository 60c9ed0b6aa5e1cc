"""One run a table at a time; a dead run blocks no other for ever."""

from __future__ import annotations

import contextlib
import json
import threading
from collections import Counter
from collections.abc import Callable

import pytest

from compactor.errors import TransientStoreError
from compactor.settings.tables import parse_table
from compactor.settings.uris import parse_location
from compactor_tables import document_keys as places
from compactor_tables.lease import LEASE_SECONDS, Lease, LeaseHeld, LeaseLost, Leases
from tests.support.document_tables import table_of
from tests.support.memory_store import ManualClock, MemoryStore

NOW = 1_700_000_000.0
STATE = parse_location("s3://lake/state/")
TABLE = parse_table("glue:bronze.events")
OTHER = parse_table("glue:bronze.users")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW)


@pytest.fixture
def store(clock: ManualClock) -> MemoryStore:
    store = MemoryStore(clock)
    store.seed("lake", "seed", b"x", last_modified=NOW)
    return store


@pytest.fixture
def leases(store: MemoryStore, clock: ManualClock) -> Leases:
    return Leases(store, STATE, clock)


def test_a_table_is_taken_once(leases: Leases) -> None:
    taken = leases.take(TABLE, "one", engine="spark")

    assert (taken.run_id, taken.until) == ("one", NOW + LEASE_SECONDS)
    with pytest.raises(LeaseHeld, match=r"run one works on glue:bronze\.events with spark"):
        leases.take(TABLE, "two", engine="athena")
    assert leases.take(OTHER, "two", engine="athena").run_id == "two"


def test_the_same_run_keeps_its_lease(leases: Leases, clock: ManualClock) -> None:
    leases.take(TABLE, "one", engine="spark")
    clock.advance(100)

    again = leases.take(TABLE, "one", engine="spark")

    assert (again.since, again.until) == (NOW, NOW + 100 + LEASE_SECONDS)


def test_a_dead_runs_lease_ends_by_itself(leases: Leases, clock: ManualClock) -> None:
    leases.take(TABLE, "dead", engine="spark", seconds=100)
    clock.advance(101)
    with pytest.raises(LeaseHeld):
        leases.take(TABLE, "two", engine="spark")
    clock.advance(60)

    assert leases.take(TABLE, "two", engine="spark").run_id == "two"
    with pytest.raises(LeaseLost, match="run two has it"):
        leases.require(TABLE, "dead")
    assert leases.release(TABLE, "dead") is False
    leases.require(TABLE, "two")


def test_a_lease_says_when_maintenance_last_ended(leases: Leases, clock: ManualClock) -> None:
    assert leases.take(TABLE, "one", engine="spark").maintained is None
    clock.advance(100)
    leases.release(TABLE, "one", is_maintained=True)
    clock.advance(100)

    leases.take(TABLE, "two", engine="spark")
    leases.release(TABLE, "two")

    lease = leases.look(TABLE)
    assert lease is not None
    assert (lease.run_id, lease.maintained) == ("", NOW + 100)


def test_what_was_given_back_is_free_immediately(leases: Leases) -> None:
    leases.take(TABLE, "one", engine="spark")

    assert leases.release(TABLE, "one") is True
    assert leases.release(TABLE, "one") is False
    with pytest.raises(LeaseLost, match="no run has it"):
        leases.require(TABLE, "one")
    assert leases.take(TABLE, "two", engine="athena").engine == "athena"


def test_a_table_that_was_not_taken_belongs_to_no_run(leases: Leases) -> None:
    assert leases.look(TABLE) is None
    assert leases.release(TABLE, "one") is False
    with pytest.raises(LeaseLost):
        leases.require(TABLE, "one")


def _between(store: MemoryStore, verb: str, act: Callable[[], object]) -> None:
    """Do something right before the first request of a kind."""
    original = getattr(store, verb)

    def first(*args: object, **more: object) -> object:
        setattr(store, verb, original)
        act()
        return original(*args, **more)

    setattr(store, verb, first)


@pytest.mark.parametrize(("held", "verb"), [(False, "create"), (True, "replace")])
def test_of_two_runs_that_take_it_concurrently_one_has_it(
    store: MemoryStore, clock: ManualClock, leases: Leases, held: bool, verb: str
) -> None:
    if held:
        leases.take(TABLE, "dead", engine="spark", seconds=1)
        clock.advance(1_000)
    _between(store, verb, lambda: Leases(store, STATE, clock).take(TABLE, "two", engine="athena"))

    with pytest.raises(LeaseHeld, match="run two"):
        leases.take(TABLE, "one", engine="spark")
    leases.require(TABLE, "two")


def test_a_lease_that_was_taken_between_is_not_given_back(
    store: MemoryStore, clock: ManualClock, leases: Leases
) -> None:
    leases.take(TABLE, "dead", engine="spark", seconds=1)
    clock.advance(1_000)
    _between(store, "replace", lambda: Leases(store, STATE, clock).take(TABLE, "two", engine="x"))

    assert leases.release(TABLE, "dead") is False
    leases.require(TABLE, "two")


def test_of_many_concurrent_takers_one_has_it(store: MemoryStore, clock: ManualClock) -> None:
    taken: list[Lease] = []

    def take(run_id: str) -> None:
        with contextlib.suppress(LeaseHeld):
            taken.append(Leases(store, STATE, clock).take(TABLE, run_id, engine="spark"))

    threads = [threading.Thread(target=take, args=(f"run-{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(taken) == 1
    look = Leases(store, STATE, clock).look(TABLE)
    assert look == taken[0]


def test_a_taken_lease_whose_answer_was_lost_is_found_again(
    store: MemoryStore, leases: Leases
) -> None:
    original = store.create

    def lost(*args: object, **more: object) -> None:
        store.create = original  # type: ignore[method-assign]  # a failing answer
        original(*args, **more)  # type: ignore[arg-type]  # passed on
        raise TransientStoreError("no answer")

    store.create = lost  # type: ignore[method-assign]  # a failing answer
    with pytest.raises(TransientStoreError):
        leases.take(TABLE, "one", engine="spark")

    assert leases.take(TABLE, "one", engine="spark").run_id == "one"


def test_a_lease_lies_beside_the_tables_other_documents(store: MemoryStore, leases: Leases) -> None:
    leases.take(TABLE, "one", engine="spark")

    ((key, body),) = store.contents("lake", "state/").items()
    assert key == places.lease_key(STATE, TABLE)[1]
    assert {*json.loads(body)} == {*table_of("Lease")}


def test_what_is_started_by_hand_needs_no_lease(leases: Leases, clock: ManualClock) -> None:
    leases.require_no_other(TABLE, "by-hand")
    leases.take(TABLE, "one", engine="spark", seconds=100)
    with pytest.raises(LeaseLost, match="run one has it"):
        leases.require_no_other(TABLE, "by-hand")
    leases.require_no_other(TABLE, "one")
    leases.release(TABLE, "one")
    leases.require_no_other(TABLE, "by-hand")
    leases.take(TABLE, "dead", engine="spark", seconds=100)
    clock.advance(200)
    leases.require_no_other(TABLE, "by-hand")


@pytest.mark.parametrize("run_id", ["one", "by-hand"])
def test_that_no_other_run_has_a_table_is_reported_by_one_look(
    leases: Leases, store: MemoryStore, run_id: str
) -> None:
    leases.take(TABLE, "one", engine="spark")
    before = store.requests.snapshot()

    with contextlib.suppress(LeaseLost):
        leases.require_no_other(TABLE, run_id)

    made = Counter(store.requests.snapshot()) - Counter(before)
    assert (made["HEAD"], made["GET"]) == (1, 1)


def test_a_job_whose_lease_has_ended_begins_nothing_more(
    leases: Leases, clock: ManualClock
) -> None:
    leases.take(TABLE, "one", engine="spark", seconds=100)
    clock.advance(101)
    with pytest.raises(LeaseLost, match="its lease has ended"):
        leases.require_no_other(TABLE, "one")
