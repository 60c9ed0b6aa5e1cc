"""Producers, runs, refreshes, clean-ups and readers in any order; each may die or sleep.

A reader plans from the catalog, and reads the objects of its plan later, within the grace period.
It only sees what the catalog and S3 show, never the log or the product's own records.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random

import pytest

from compactor.errors import CompactorError, ObjectMissing
from compactor.readers import clean_up_gate as gate
from compactor.readers import expired_lists as old_lists
from compactor.readers import partition_view as look
from compactor.readers import refresh, states
from compactor.readers.expired_lists import drop_old_lists
from compactor.readers.manifests import MANIFEST_NAME
from tests.simulation.wrong_orders import deleting_before_the_switch, switching_before_the_commit
from tests.support.examples import PARTITION
from tests.support.memory_readers import SYMLINK, MemoryReaders, planned, read
from tests.support.memory_store import Crashed
from tests.support.readers_world import Lake

NOON = 1_767_355_200.0  # of the partition's own day
GRACE = 3_600.0
STEPS = 30


class Misread(BaseException):
    """A query does not read each record once; no ``except Exception`` catches it."""


@dataclass
class Plan:
    """A query under way.

    Attributes:
        objects: the objects that it reads.
        lists: the lists that name some of them; each task of the query reads them again.
        until: when it has read everything, UNIX seconds.
        known: the records that it must find.
    """

    objects: list[tuple[str, str]]
    lists: list[str]
    until: float
    known: set[int]


@dataclass
class Actors:
    """One schedule, drawn from one random generator."""

    random: Random
    lake: Lake = field(default_factory=lambda: Lake(delete_after="0.2d"))
    plans: list[Plan] = field(default_factory=list)
    known: set[int] = field(default_factory=set)
    number: int = 0
    shown: set[str] = field(default_factory=set)
    queries: int = 0
    dropped: int = 0
    disturbed: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        # Half of the schedules start before the partition's day is over.
        start = NOON + self.random.choice([0.0, 86_400.0])
        self.lake.clock.advance(start - self.lake.clock.now())

    def produce(self) -> None:
        self.number += 1
        record = self.number
        key = f"{PARTITION.prefix}{record:04}.json"
        body = f'{{"id": "record-{record}"}}\n'.encode()
        self.lake.store.seed("source", key, body, last_modified=self.lake.clock.now())
        self.lake.world.records.add(record)

    def run(self) -> None:
        self.lake.run()

    def refresh(self) -> None:
        before = set(self.lake.world.records)
        outcome = self.lake.refresh()
        if not outcome.fault:
            # All readers must see what the refresh has seen from now on.
            self.known |= before

    def clean_up(self) -> None:
        self.lake.clean_up()

    def expire(self) -> None:
        lake = self.lake
        settings = lake.world.settings
        found = drop_old_lists(PARTITION, settings, lake.catalog, lake.store, lake.clock)
        self.dropped += found.lists

    def sleep(self) -> None:
        self.end_plans(self.lake.clock.now())
        self.lake.clock.advance(self.random.choice([60.0, 4_000.0, 20_000.0]))
        self.end_plans(self.lake.clock.now())

    def plan(self) -> None:
        # A refresh may happen during planning.
        now, known = self.lake.clock.now(), set(self.known)
        self.plans.append(self.planned(now + GRACE - 400, known))

    def planned(self, until: float, known: set[int]) -> Plan:
        try:
            objects = planned(self.lake.catalog, self.lake.store)
        except ObjectMissing as error:
            raise Misread(f"a query cannot be planned: {error}") from error
        return Plan(objects, lists_of(self.lake.catalog), until, known)

    def end_plans(self, now: float) -> None:
        """Remove the queries that have finished by now."""
        self.plans = [one for one in self.plans if one.until > now]

    def look(self) -> None:
        """Check what running queries and a new one read now."""
        now = self.lake.clock.now()
        fresh = self.planned(now, set(self.known))
        for one in [*self.plans, fresh]:
            self.queries += 1
            try:
                for name in one.lists:
                    self.lake.store.get("lake", name)
                found = read(one.objects, self.lake.store)
            except ObjectMissing as error:
                raise Misread(f"a query ends with {error}") from error
            doubled = {number for number, times in found.items() if times > 1}
            lost = one.known - set(found)
            if doubled or lost:
                raise Misread(f"{doubled} are read twice, {lost} by nobody")

    def step(self) -> None:
        """Run one actor, which may be interrupted by another or die."""
        acts: list[Callable[[], None]] = [
            self.produce, self.run, self.run, self.refresh, self.clean_up, self.clean_up,
            self.sleep, self.plan, self.expire, self.expire, self.refresh,
        ]  # fmt: skip
        act, other = self.random.choice(acts), self.random.choice(acts)
        fate = self.random.choice(["alone", "alone", "between", "dies"])
        if fate == "alone" or act == self.sleep:
            self.act(act)
        else:
            self.interrupted(act, other if fate == "between" else None)
        self.look()
        for entry in self.lake.catalog.partitions.values():
            self.shown.add(entry.parameters["compactor.shows"])

    def interrupted(self, act: Callable[[], None], other: Callable[[], None] | None) -> None:
        """Interrupt an actor at one request by another one; without another, it dies there.

        Requests are those to the store, and those that change the catalog. No actor sleeps within
        the latter: no guard covers a request that takes longer than the grace period.
        """
        at, hooks, catalog = self.random.randint(1, 25), self.lake.store.hooks, self.lake.catalog
        seen = 0

        def come_between() -> None:
            nonlocal seen
            seen += 1
            if seen == at and other is not None:
                self.disturbed["somebody else meanwhile"] += 1
                held, hooks.before[:] = list(hooks.before), []
                changing, catalog.before_change = catalog.before_change, nobody
                self.act(other)
                self.look()
                hooks.before[:], catalog.before_change = held, changing
            elif seen >= at and other is None:
                self.disturbed["died"] += 1
                raise Crashed

        hooks.before.append(lambda _: come_between())
        if other != self.sleep:
            catalog.before_change = come_between
        self.act(act)
        hooks.clear()
        catalog.before_change = nobody

    def act(self, act: Callable[[], None]) -> None:
        # The next actor continues with what is there.
        with suppress(Crashed, CompactorError):
            act()

    def play(self) -> None:
        self.produce()
        for _ in range(STEPS):
            self.step()
        self.lake.run()
        self.refresh()
        self.look()
        if self.known != self.lake.world.records:
            raise Misread("what a refresh has seen is not all there is")


def without_waiting(patch: pytest.MonkeyPatch) -> None:
    """Make clean-up ignore the catalog."""
    patch.setattr(gate.ReaderGate, "holds", lambda *_: False)


def without_grace(patch: pytest.MonkeyPatch) -> None:
    """Delete a source as soon as the catalog no longer names it."""
    asked = gate.Asked.may_be_read
    patch.setattr(gate.Asked, "may_be_read", lambda self, sources, _: asked(self, sources, 0.0))


def without_the_list(patch: pytest.MonkeyPatch) -> None:
    """Make clean-up assume that lists name only outputs."""
    patch.setattr(gate, "names_in", lambda *_: ())


def with_a_doubled_list(patch: pytest.MonkeyPatch) -> None:
    """Put sources into lists that outputs already contain."""
    patch.setattr(
        look,
        "_seen",
        lambda sources, held, partition, now: look._Sources(
            [one for one in sources if states.has_rows(one, partition.prefix)]
        ),
    )


def back_to_raw(patch: pytest.MonkeyPatch) -> None:
    """Let a partition go back to showing all its sources."""
    decided, held = states.decide, states.Held
    patch.setattr(refresh, "decide", lambda seen, current, **given: decided(seen, None, **given))
    patch.setattr(refresh, "is_fresh", lambda *_: True)
    patch.setattr(look, "Held", lambda **given: held(**{**given, "standing": True}))


def without_outputs_looked_at(patch: pytest.MonkeyPatch) -> None:
    """Treat every committed output as readable."""
    patch.setattr(
        look, "_found", lambda log, state, there: look._Log(state.committed, tuple(there))
    )


def without_grace_for_lists(patch: pytest.MonkeyPatch) -> None:
    """Delete a list as soon as another is shown."""
    patch.setattr(old_lists, "_grace", lambda *_: 0.0)


READER_MUTATIONS: Mapping[str, Callable[[pytest.MonkeyPatch], None]] = {
    one.__name__.replace("_", " "): one
    for one in (
        without_waiting,
        without_grace,
        without_the_list,
        with_a_doubled_list,
        back_to_raw,
        without_outputs_looked_at,
        without_grace_for_lists,
        deleting_before_the_switch,
        switching_before_the_commit,
    )
}


#: Seeds of schedules that noticed; an outdated one only costs time.
READER_NOTICED: Mapping[str, int] = {
    "without waiting": 1,
    "without grace": 55,
    "without the list": 41,
    "with a doubled list": 0,
    "back to raw": 38,
    "without outputs looked at": 33,
    "without grace for lists": 80,
    "deleting before the switch": 2,
    "switching before the commit": 350,
}


def lists_of(catalog: MemoryReaders) -> list[str]:
    """Return the keys of the lists that partitions show."""
    return [
        f"{one.location.removeprefix('s3://lake/')}{MANIFEST_NAME}"
        for one in catalog.partitions.values()
        if SYMLINK in one.input_format
    ]


def nobody() -> None:
    """Do nothing: no actor interrupts."""


def misread(seeds: Iterable[int]) -> int:
    """Return how many schedules it takes until a query reads wrongly; 0 if none does."""
    for number, seed in enumerate(seeds, 1):
        try:
            Actors(Random(seed)).play()
        except Misread:
            return number
    return 0
