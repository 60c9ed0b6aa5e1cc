"""Every decision of a schedule, drawn from a seed, recorded, and played again.

A schedule is no more than the list of its decisions. 0 always means the dullest one (go on with
the same process, no fault, no event), so a list can be made simpler by writing zeros into it and
by cutting it short: what is missing at the end is played as 0.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

_T = TypeVar("_T")


class Choices:
    """Decisions one after the other.

    Args:
        seed: where they come from.
        replay: decisions to take instead; 0 for all that follow.
    """

    def __init__(self, seed: int, replay: Sequence[int] | None = None) -> None:
        self.recorded: list[int] = []
        self._random = random.Random(seed)
        self._replay = replay

    def chance(self, probability: float) -> bool:
        """True with this probability; False is the dull choice."""
        return bool(self._take(1, lambda: int(self._random.random() < probability)))

    def below(self, count: int) -> int:
        """A number from 0 to count - 1."""
        return self._take(count - 1, lambda: self._random.randrange(count))

    def one_of(self, options: Sequence[_T]) -> _T:
        """One of them; the first is the dull choice."""
        return options[self.below(len(options))]

    def _take(self, most: int, draw: Callable[[], int]) -> int:
        if self._replay is None:
            value = draw()
        else:
            at = len(self.recorded)
            # A list that was made simpler may give a number meant for another decision.
            value = min(self._replay[at], most) if at < len(self._replay) else 0
        self.recorded.append(value)
        return value


def simplest(recorded: Sequence[int], fails: Callable[[Sequence[int]], bool]) -> list[int]:
    """A shorter and duller list of decisions that still fails.

    Cuts the end, then takes out and zeroes ever smaller blocks, until nothing helps any more.

    Args:
        recorded: decisions that fail.
        fails: plays a list, and tells whether it fails in the same way.
    """
    best = list(recorded)
    improved = True
    while improved:
        improved = False
        size = max(1, len(best) // 2)
        while size:
            at = 0
            while at < len(best):
                candidate = _better(best, at, size, fails)
                improved |= candidate is not None
                at += size if candidate is None else 0
                best = best if candidate is None else candidate
            size //= 2
    return best


def _better(
    best: list[int], at: int, size: int, fails: Callable[[Sequence[int]], bool]
) -> list[int] | None:
    block = best[at : at + size]
    shorter = best[:at] + best[at + size :]
    if fails(shorter):
        return shorter
    duller = best[:at] + [0] * len(block) + best[at + size :]
    return duller if any(block) and fails(duller) else None
