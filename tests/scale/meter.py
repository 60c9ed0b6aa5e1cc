"""The virtual time of one invocation, and what it asked for.

Waiting is added up from the latencies of requests; computing is the processor time that the real
code takes here, without what the made-up S3 takes. A sample stands for more than itself: what lies
between its first and its last request of one kind counts as often as it fits into the whole.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tests.scale.services import Function, Services


@dataclass(frozen=True, slots=True)
class Asked:
    """One request.

    Attributes:
        kind: what it is paid as: LIST, GET, HEAD, PUT, DELETE.
        about: source, level, state or lake.
    """

    kind: str
    about: str
    key: str


@dataclass(slots=True)
class Used:
    """What a stretch of an invocation took; seconds.

    Attributes:
        alone: waits of the thread that carries the invocation.
        beside: waits of its other threads.
        bodies: reading, framing and storing of sources, by formula.
    """

    computed: float = 0.0
    alone: float = 0.0
    beside: float = 0.0
    bodies: float = 0.0
    requests: Counter[str] = field(default_factory=Counter)

    def copy(self) -> Used:
        """As it is now."""
        return replace(self, requests=Counter(self.requests))

    def plus(self, other: Used, weight: float = 1.0) -> Used:
        """Both, the other as often as its weight says."""
        requests = Counter(self.requests)
        for kind, number in other.requests.items():
            requests[kind] += round(number * weight)
        return Used(
            self.computed + weight * other.computed,
            self.alone + weight * other.alone,
            self.beside + weight * other.beside,
            self.bodies + weight * other.bodies,
            requests,
        )

    def seconds(self, function: Function) -> float:
        """How long it takes: whatever is longer of computing and of waiting beside it."""
        computed = self.computed / function.processors
        return self.alone + self.bodies + max(computed, self.beside / function.lanes)


class Meter:
    """Measures one invocation; its threads tell it of every request.

    Args:
        function: which is invoked.
        services: how long S3 takes.
        weight: how often the sampled stretch counts.
        sampled: tells the requests that begin and end it.
    """

    def __init__(
        self,
        function: Function,
        services: Services,
        weight: float = 1.0,
        sampled: Callable[[Asked], bool] = lambda asked: False,
    ) -> None:
        self.function = function
        self._s3 = services.s3
        self._weight = weight
        self._sampled = sampled
        self._lock = threading.Lock()
        self._thread = threading.get_ident()
        self._used = Used()
        self._first: Used | None = None
        self._last: Used | None = None
        self._counted = 0.0
        self._not_ours = 0.0
        self._began = time.process_time()

    def asked(self, asked: Asked, spent: float) -> None:
        """A request was answered; the answer took so many seconds of a processor to make up."""
        began = time.thread_time()
        wait = self._s3.list_seconds if asked.kind == "LIST" else self._s3.seconds
        with self._lock:
            self._not_ours += spent
            is_sampled = self._sampled(asked)
            if is_sampled and self._first is None:
                self._first = self._now()
            if is_sampled and asked.kind == "PUT":
                # Of which there is one, however large the sample is.
                self._last, is_sampled = self._now(), False
            if threading.get_ident() == self._thread:
                self._used.alone += wait
            else:
                self._used.beside += wait
            self._used.requests[f"{asked.kind} {asked.about}"] += 1
            if is_sampled:
                self._last = self._now()
            self._not_ours += time.thread_time() - began

    def skipped(self, gets: int, seconds: float, spent: float) -> None:
        """Bodies of so many sources were not read, which takes so long."""
        with self._lock:
            self._used.requests["GET source"] += gets
            self._used.bodies += seconds
            self._not_ours += spent
            if self._first is not None:
                # The last group of a sample is behind its last listing.
                self._last = self._now()

    def counted(self, used: Used) -> None:
        """So much would be taken, beside the main thread, by what is not really done."""
        began = time.thread_time()
        with self._lock:
            self._counted += used.computed
            self._used.beside += used.beside
            self._used.requests.update(used.requests)
            self._not_ours += time.thread_time() - began

    def sample(self) -> Used:
        """What the sampled stretch took, once."""
        with self._lock:
            if self._first is None or self._last is None:
                return Used()
            return self._last.plus(self._first, -1.0)

    def total(self) -> Used:
        """What the whole of it takes, whose sample this was."""
        with self._lock:
            now = self._now()
            if self._first is None or self._last is None:
                return now
            sample = self._last.plus(self._first, -1.0)
            return now.plus(sample, self._weight - 1.0)

    @property
    def seconds(self) -> float:
        """Of the whole so far; what it takes to tell them is not counted."""
        began = time.thread_time()
        seconds = self.total().seconds(self.function)
        with self._lock:
            self._not_ours += time.thread_time() - began
        return seconds

    def _now(self) -> Used:
        used = self._used.copy()
        computed = max(0.0, time.process_time() - self._began - self._not_ours)
        used.computed = self._counted + computed
        return used
