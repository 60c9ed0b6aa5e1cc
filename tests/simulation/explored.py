"""Runs schedules of any kind on all processors, and adds up their results."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import count
from math import inf
from typing import Protocol

from tests.simulation.choices import simplest
from tests.simulation.turns import Outcome

# Only this many broken promises are shown; the rest are counted.
SHOWN = 3


@dataclass
class Explored:
    """The results of many schedules.

    Attributes:
        faults: faults and events by kind.
        violations: the seed and the broken promise of each schedule that broke one.
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

    @property
    def figures(self) -> dict[str, object]:
        """Return the figures for ``make proof``, as JSON."""
        return {
            "schedules": self.schedules,
            "requests": self.turns,
            "faults": {str(kind): count for kind, count in self.faults.most_common()},
            "violations": len(self.violations),
        }


def explored(
    play: Callable[[int], Outcome], first: int, schedules: int, *, all_of_them: bool
) -> Explored:
    """Run schedules sequentially.

    Args:
        play: runs the schedule of a seed.
        first: the first seed.
        schedules: the number of schedules.
        all_of_them: run all, instead of stopping at the first broken promise.
    """
    found = Explored()
    for seed in range(first, first + schedules):
        outcome = play(seed)
        found.schedules += 1
        found.turns += outcome.turns
        found.faults += outcome.faults
        if outcome.violation:
            found.violations.append((seed, outcome.violation))
            if not all_of_them:
                break
    return found


class Player(Protocol):
    """Runs the schedule of a seed, or replays its decisions."""

    def __call__(
        self, seed: int, *, replay: Sequence[int] | None = None, tell: bool = False
    ) -> Outcome: ...


def shortest(play: Player, seed: int, *, plays: float = inf) -> Outcome:
    """Return a schedule that breaks a promise, reduced to what is needed for that.

    Args:
        play: runs a schedule.
        seed: the seed of the schedule.
        plays: the number of attempts at reducing it.
    """
    played = count(1)
    whole = play(seed)
    best = whole.recorded

    def fails(recorded: Sequence[int]) -> bool:
        nonlocal best
        if next(played) > plays:
            return False
        outcome = play(seed, replay=recorded)
        if _kind(outcome.violation) != _kind(whole.violation):
            return False
        # A truncated list is completed with dull decisions, so its schedule may be long.
        if len(outcome.recorded) <= len(best):
            best = outcome.recorded
        return True

    simplest(whole.recorded, fails)
    return play(seed, replay=best, tell=True)


def _kind(violation: str) -> str:
    """Return a violation's text without the numbers and keys of its schedule."""
    return " ".join(word for word in violation.split() if word.isalpha())


def explore_in_batches(
    work: Callable[[int, int], Explored],
    first: int,
    schedules: float,
    *,
    batch: int,
    seconds: float = inf,
    processes: int | None = None,
) -> Explored:
    """Run schedules of successive seeds in several processes, until time is up or some broke.

    Args:
        work: runs a number of schedules from a seed.
        first: the first seed.
        schedules: the number of schedules.
        batch: the number of schedules that a process runs at a time.
        seconds: the time limit; batches in progress are finished.
        processes: the number of processes; by default one per processor.
    """
    end = time.monotonic() + seconds
    workers = processes or os.cpu_count() or 1
    found = Explored()
    # Spawn, because a fork would copy the parent's threads and servers.
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        waiting = set()
        for start, size in _batches(first, schedules, batch):
            waiting.add(pool.submit(work, start, size))
            if len(waiting) > workers:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for one in done:
                    found.add(one.result())
            if time.monotonic() > end or len(found.violations) >= SHOWN:
                break
        for one in waiting:
            found.add(one.result())
    return found


def _batches(first: int, schedules: float, batch: int) -> Iterator[tuple[int, int]]:
    at, left = first, schedules
    while left > 0:
        size = int(min(batch, left))
        yield at, size
        at += size
        left -= size
