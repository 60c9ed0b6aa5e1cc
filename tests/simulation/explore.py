"""Many schedules, on all processors, until a number or a time is reached."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count
from math import inf

from tests.simulation.choices import simplest
from tests.simulation.mutations import MUTATIONS, Mutation, unchanged
from tests.simulation.schedule import Outcome, play

BATCH = 200
# Of broken promises only a few are told; the rest are counted.
SHOWN = 3


@dataclass
class Explored:
    """What many schedules came to.

    Attributes:
        faults: faults and events by kind.
        violations: seed and promise of each schedule in which one was broken.
    """

    schedules: int = 0
    turns: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    violations: list[tuple[int, str]] = field(default_factory=list)

    def add(self, other: Explored) -> None:
        self.schedules += other.schedules
        self.turns += other.turns
        self.faults += other.faults
        self.violations += other.violations

    @property
    def line(self) -> str:
        """The figures in one line."""
        return (
            f"{self.schedules:,} schedules, {self.turns:,} requests,"
            f" {self.faults.total():,} faults of {len(self.faults)} kinds,"
            f" {len(self.violations):,} violations"
        )


def explore_batch(first: int, count: int, mutation: str = "") -> Explored:
    """Play schedules one after the other, until the first broken promise of a mutation."""
    found = Explored()
    chosen = MUTATIONS[mutation] if mutation else unchanged
    with chosen.applied():
        for seed in range(first, first + count):
            outcome = play(seed, without=chosen.without)
            found.schedules += 1
            found.turns += outcome.turns
            found.faults += outcome.faults
            if outcome.violation:
                found.violations.append((seed, outcome.violation))
                if mutation:
                    break
    return found


def explore(
    *, schedules: float = inf, seconds: float = inf, first: int = 0, processes: int | None = None
) -> Explored:
    """Play schedules of successive seeds until there are so many, or time is up.

    Args:
        schedules: how many.
        seconds: for how long; batches under way are finished.
        first: seed of the first one.
        processes: how many at once; by default one a processor.
    """
    end = time.monotonic() + seconds
    workers = processes or os.cpu_count() or 1
    found = Explored()
    with ExitStack() as stack:
        # Spawned: a fork would copy whatever threads and servers the parent has.
        context = multiprocessing.get_context("spawn")
        pool = stack.enter_context(ProcessPoolExecutor(workers, context))
        waiting = set()
        for start, count in _batches(first, schedules):
            waiting.add(pool.submit(explore_batch, start, count))
            if len(waiting) > workers:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for one in done:
                    found.add(one.result())
            if time.monotonic() > end or len(found.violations) >= SHOWN:
                break
        for one in waiting:
            found.add(one.result())
    return found


def _batches(first: int, schedules: float) -> Iterator[tuple[int, int]]:
    at, left = first, schedules
    while left > 0:
        count = int(min(BATCH, left))
        yield at, count
        at += count
        left -= count


def shortest_story(seed: int, mutation: Mutation = unchanged, *, plays: float = inf) -> Outcome:
    """The schedule of a seed that breaks a promise, with all taken out that does not matter.

    Args:
        seed: of the schedule.
        mutation: what it was played with.
        plays: after so many, what is left must do.
    """
    played = count(1)
    with mutation.applied():
        outcome = play(seed, without=mutation.without)
        kind = _kind(outcome.violation)

        def fails(recorded: Sequence[int]) -> bool:
            if next(played) > plays:
                return False
            again = play(seed, replay=recorded, without=mutation.without)
            return _kind(again.violation) == kind

        recorded = simplest(outcome.recorded, fails)
        return play(seed, replay=recorded, without=mutation.without, tell=True)


def _kind(violation: str) -> str:
    """The promise without the numbers and keys of one schedule."""
    return " ".join(word for word in violation.split() if word.isalpha())
