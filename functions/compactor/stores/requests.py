"""How many requests a store made: the figures behind costs, and behind 'reads nothing'."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping


class RequestCounter:
    """Requests by operation name and bytes by direction; thread safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()

    def add(self, name: str, amount: int = 1) -> None:
        """Count one request, or ``amount`` bytes under ``bytes_read``/``bytes_written``."""
        with self._lock:
            self._counts[name] += amount

    def snapshot(self) -> Mapping[str, int]:
        """A copy of the counts so far."""
        with self._lock:
            return dict(self._counts)
