"""Counts a store's requests, for cost figures and for tests that nothing is read."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager


class RequestCounter:
    """Requests by operation name and bytes by direction; thread safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._thread = threading.local()

    def add(self, name: str, amount: int = 1) -> None:
        """Count one request, or ``amount`` bytes under ``bytes_read``/``bytes_written``."""
        held: Counter[str] | None = getattr(self._thread, "held", None)
        if held is not None:
            held[name] += amount
            return
        with self._lock:
            self._counts[name] += amount

    @contextmanager
    def together(self) -> Iterator[None]:
        """Collect what this thread counts, and add it at the end, taking the lock only once."""
        held: Counter[str] = Counter()
        self._thread.held = held
        try:
            yield
        finally:
            self._thread.held = None
            with self._lock:
                self._counts.update(held)

    def snapshot(self) -> Mapping[str, int]:
        """Return a copy of the counts so far."""
        with self._lock:
            return dict(self._counts)
