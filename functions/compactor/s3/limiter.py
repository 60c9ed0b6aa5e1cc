"""How many sources are read concurrently: more while answers stay quick, half on Slow Down.

Additive increase, multiplicative decrease, as TCP does it (Chiu and Jain, 1989), with a fast
start: the limit doubles until the first sign of trouble, and grows by an eighth after it. A lone
503 among thousands of answers is S3's ordinary weather and no such sign.

Requests of other kinds are few, and the work waits for them: they do not wait here, but reads
leave room for them, and what S3 says to them counts like what it says to a read.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from compactor.errors import TransientStoreError

START = 128
LEAST = 4
# Share of SlowDown among the requests of one round that counts as being asked to slow down.
WEATHER = 0.05
# Beyond this much above the quickest round seen, more concurrent reads would only wait longer.
PATIENCE = 2.0


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
        self._beside = 0
        self._starting = True
        self._round_left = self._limit
        self._round_seconds = 0.0
        self._round_requests = 0
        self._round_refusals = 0
        self._quickest = float("inf")

    @property
    def limit(self) -> int:
        """How many permits there are now."""
        return self._limit

    @contextmanager
    def permit(self, requests: int = 1, until: float = math.inf) -> Iterator[None]:
        """Hold one permit while so many requests are made one after the other.

        Args:
            requests: how many.
            until: by the clock, when to give up waiting.

        Raises:
            TransientStoreError: there was no permit until then.
        """
        with self._free:
            while not self._is_free():
                self._wait(until)
            self._in_use += 1
        began = self._clock()
        good = False
        try:
            yield
            good = True
        finally:
            self.end(began, requests, good=good)

    def begin(self) -> float | None:
        """Take a permit if there is one now; to be given back by :meth:`end`.

        Returns:
            When that was, by the clock; None where there is none.
        """
        with self._free:
            if not self._is_free():
                return None
            self._in_use += 1
        return self._clock()

    def end(self, began: float, requests: int, *, good: bool) -> None:
        """Give back a permit.

        Args:
            began: when it was taken, by the clock.
            requests: how many were made with it, one after the other.
            good: all of them were answered, so that their time means something.
        """
        seconds = (self._clock() - began) / max(1, requests)
        with self._free:
            self._in_use -= 1
            self._round_requests += requests
            if good:
                self._learn(seconds)
            self._free.notify()

    @contextmanager
    def beside(self) -> Iterator[None]:
        """Make one request of another kind, without waiting: there is one permit less meanwhile."""
        with self._free:
            self._beside += 1
        try:
            yield
        finally:
            with self._free:
                self._beside -= 1
                self._round_requests += 1
                self._free.notify()

    def slow_down(self) -> None:
        """S3 asked for less. Judged at the end of the round, or when all are refused."""
        with self._free:
            self._round_refusals += 1
            if self._round_refusals >= self._limit and self._asked_to_slow_down():
                self._halve()

    def _is_free(self) -> bool:
        return self._in_use < max(1, self._limit - self._beside)

    def _wait(self, until: float) -> None:
        seconds = until - self._clock()
        if seconds <= 0:
            raise TransientStoreError(f"no read may begin: {self._limit} are in flight")
        self._free.wait(None if seconds == math.inf else seconds)

    def _asked_to_slow_down(self) -> bool:
        return self._round_refusals > WEATHER * self._round_requests

    def _learn(self, seconds: float) -> None:
        self._round_seconds += seconds
        self._round_left -= 1
        if self._round_left > 0:
            return
        average = self._round_seconds / self._limit
        self._quickest = min(self._quickest, average)
        if self._asked_to_slow_down():
            self._halve()
            return
        if average <= PATIENCE * self._quickest:
            grown = self._limit * 2 if self._starting else self._limit + max(1, self._limit // 8)
            self._limit = min(self._most, grown)
            self._free.notify_all()
        else:
            self._starting = False
        self._new_round()

    def _halve(self) -> None:
        self._starting = False
        self._limit = max(min(LEAST, self._most), self._limit // 2)
        self._new_round()

    def _new_round(self) -> None:
        self._round_left = self._limit
        self._round_seconds = 0.0
        self._round_requests = 0
        self._round_refusals = 0
