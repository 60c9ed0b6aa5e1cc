"""Limits concurrent source reads: raised while answers stay quick, halved on Slow Down.

Additive increase, multiplicative decrease, as in TCP (Chiu and Jain, 1989), with a slow start:
the limit doubles until the first sign of overload, and then grows by an eighth. A few 503s among
thousands of answers are normal for S3 and do not count as overload.

Other requests are few, and the work depends on them, so they do not wait for a permit. Each
reduces the permits for reads by one while in flight, and its answers count like those of reads.
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
# A round with a larger share of SlowDown answers than this counts as overload.
WEATHER = 0.05
# The limit is not raised if a round takes more than this many times the quickest: more reads
# would only wait longer.
PATIENCE = 2.0


class Limiter:
    """Permits for reads in flight; thread safe.

    Args:
        most: upper bound of the limit.
        clock: monotonic clock, in seconds.
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
        """The current number of permits."""
        return self._limit

    @contextmanager
    def permit(self, requests: int = 1, until: float = math.inf) -> Iterator[None]:
        """Hold one permit while ``requests`` requests are made sequentially.

        Args:
            requests: number of requests.
            until: time by the clock to give up waiting.

        Raises:
            TransientStoreError: no permit was free by then.
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
        """Take a permit without waiting; return it with :meth:`end`.

        Returns:
            The time by the clock; None if no permit is free.
        """
        with self._free:
            if not self._is_free():
                return None
            self._in_use += 1
        return self._clock()

    def end(self, began: float, requests: int, *, good: bool) -> None:
        """Return a permit.

        Args:
            began: time by the clock when it was taken.
            requests: number of sequential requests made with it.
            good: all were answered, so that their duration can be used to adjust the limit.
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
        """Make one request without a permit; meanwhile, there is one permit fewer for reads."""
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
        """Count a Slow Down answer, judged at the end of the round or when all are refused."""
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
