"""What many schedules came to, of any kind, played on all processors."""

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

    @property
    def figures(self) -> dict[str, object]:
        """For a machine."""
        return {
            "schedules": self.schedules,
            "requests": self.turns,
            "faults": {str(kind): count for kind, count in self.faults.most_common()},
            "violations": len(self.violations),
        }


def explored(
    play: Callable[[int], Outcome], first: int, schedules: int, *, all_of_them: bool
) -> Explored:
    """Play schedules one after the other.

    Args:
        play: the schedule of a seed.
        first: seed of the first one.
        schedules: how many.
        all_of_them: or only until the first broken promise.
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
    """Plays the schedule of a seed, or the same decisions again."""

    def __call__(
        self, seed: int, *, replay: Sequence[int] | None = None, tell: bool = False
    ) -> Outcome: ...


def shortest(play: Player, seed: int, *, plays: float = inf) -> Outcome:
    """The schedule of a seed that breaks a promise, with all taken out that does not matter.

    Args:
        play: plays it.
        seed: of the schedule.
        plays: after so many, what is left must do.
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
        # A list that is cut short is played to its end with dull decisions, and may be long.
        if len(outcome.recorded) <= len(best):
            best = outcome.recorded
        return True

    simplest(whole.recorded, fails)
    return play(seed, replay=best, tell=True)


def _kind(violation: str) -> str:
    """The promise without the numbers and keys of one schedule."""
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
    """Play schedules of successive seeds in several processes, until time is up or some broke.

    Args:
        work: plays so many from a seed on.
        first: seed of the first one.
        schedules: how many.
        batch: how many a process plays at a time.
        seconds: for how long; batches under way are finished.
        processes: how many at once; by default one a processor.
    """
    end = time.monotonic() + seconds
    workers = processes or os.cpu_count() or 1
    found = Explored()
    # Spawned: a fork would copy whatever threads and servers the parent has.
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
