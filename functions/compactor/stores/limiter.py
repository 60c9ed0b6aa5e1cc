"""How many reads run at once: more while answers stay quick, half when S3 says slow down.

Additive increase, multiplicative decrease, as TCP does it (Chiu and Jain, 1989), with a fast
start: the limit doubles until the first sign of trouble, and grows by an eighth after it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

START = 32
LEAST = 4
# Beyond this much above the quickest round seen, more reads at once would only wait longer.
PATIENCE = 2.0
# Several answers of one round say the same thing; the limit is halved once for them.
CALM_SECONDS = 0.5


class Limiter:
    """Permits for work under way; thread safe.

    Args:
        most: the limit never exceeds this.
        clock: seconds, monotonic.
    """

    def __init__(self, most: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._clock = clock
        self._limit = min(START, most)
        self._free = threading.Condition()
        self._in_use = 0
        self._starting = True
        self._round_left = self._limit
        self._round_seconds = 0.0
        self._quickest = float("inf")
        self._calm_until = 0.0

    @property
    def limit(self) -> int:
        """How many permits there are now."""
        return self._limit

    @contextmanager
    def permit(self, requests: int = 1) -> Iterator[None]:
        """Hold one permit while so many requests are made one after the other."""
        with self._free:
            while self._in_use >= self._limit:
                self._free.wait()
            self._in_use += 1
        started = self._clock()
        good = False
        try:
            yield
            good = True
        finally:
            seconds = (self._clock() - started) / max(1, requests)
            with self._free:
                self._in_use -= 1
                if good:
                    self._learn(seconds)
                self._free.notify()

    def slow_down(self) -> None:
        """S3 asked for less: half the limit, once for all answers of the same moment."""
        with self._free:
            now = self._clock()
            if now < self._calm_until:
                return
            self._calm_until = now + CALM_SECONDS
            self._starting = False
            self._limit = max(min(LEAST, self._most), self._limit // 2)
            self._new_round()

    def _learn(self, seconds: float) -> None:
        self._round_seconds += seconds
        self._round_left -= 1
        if self._round_left > 0:
            return
        average = self._round_seconds / self._limit
        self._quickest = min(self._quickest, average)
        if average <= PATIENCE * self._quickest:
            grown = self._limit * 2 if self._starting else self._limit + max(1, self._limit // 8)
            self._limit = min(self._most, grown)
            self._free.notify_all()
        else:
            self._starting = False
        self._new_round()

    def _new_round(self) -> None:
        self._round_left = self._limit
        self._round_seconds = 0.0
