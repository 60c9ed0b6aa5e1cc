"""The decisions of a schedule: drawn from a seed, recorded, and replayed.

A schedule is just the list of its decisions. 0 always means the dullest one (continue with the same
process, no fault, no event), so a list is simplified by replacing entries with 0 and by truncating
it: missing decisions at the end count as 0.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

_T = TypeVar("_T")


class Choices:
    """A sequence of decisions.

    Args:
        seed: seed that they are drawn from.
        replay: decisions to take instead, followed by zeros.
    """

    def __init__(self, seed: int, replay: Sequence[int] | None = None) -> None:
        self.recorded: list[int] = []
        self._random = random.Random(seed)
        self._replay = replay

    def chance(self, probability: float) -> bool:
        """Return True with this probability; False is the dull choice."""
        return bool(self._take(1, lambda: int(self._random.random() < probability)))

    def below(self, count: int) -> int:
        """Return a number from 0 to count - 1."""
        return self._take(count - 1, lambda: self._random.randrange(count))

    def one_of(self, options: Sequence[_T]) -> _T:
        """Return one of the options; the first is the dull choice."""
        return options[self.below(len(options))]

    def _take(self, most: int, draw: Callable[[], int]) -> int:
        if self._replay is None:
            value = draw()
        else:
            at = len(self.recorded)
            # In a simplified list a number may have been meant for another decision.
            value = min(self._replay[at], most) if at < len(self._replay) else 0
        self.recorded.append(value)
        return value


def simplest(recorded: Sequence[int], fails: Callable[[Sequence[int]], bool]) -> list[int]:
    """Return a shorter and duller list of decisions that still fails.

    Truncates the list, then removes and zeroes smaller and smaller blocks until nothing helps.

    Args:
        recorded: decisions that fail.
        fails: runs a list, and returns whether it fails in the same way.
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
