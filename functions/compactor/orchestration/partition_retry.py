"""Which failures of a partition are retried, and when; the same policy as the state machine's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from compactor.report.run_records import LOST

__all__ = ["LOST", "RETRIES", "STOPPED", "Retry", "Tries"]

#: The error of a call that was stopped because the whole run is being stopped.
STOPPED = "RunStopped"


@dataclass(frozen=True, slots=True)
class Retry:
    """Exponential backoff with full jitter for one kind of error.

    The wait after the nth failure is up to ``interval_seconds * 2 ** (n - 1)`` seconds, and never
    more than ``longest_seconds``.

    Attributes:
        attempts: retries after the first try.
    """

    attempts: int
    interval_seconds: float
    longest_seconds: float


#: Retries by the name of the error; other errors are not retried.
RETRIES: Mapping[str, Retry] = {
    "SourceChanged": Retry(5, 1.0, 30.0),
    "TransientStoreError": Retry(8, 2.0, 60.0),
    LOST: Retry(4, 2.0, 60.0),
}


class Tries:
    """The failures of one partition so far."""

    def __init__(self, retries: Mapping[str, Retry]) -> None:
        self._retries = retries
        self._failures: Counter[str] = Counter()

    def longest_wait(self, error: str) -> float | None:
        """Count a failure; return the longest wait before a retry in seconds, None for no retry."""
        retry = self._retries.get(error)
        if retry is None or self._failures[error] >= retry.attempts:
            return None
        self._failures[error] += 1
        doubled = retry.interval_seconds * 2.0 ** (self._failures[error] - 1)
        return min(doubled, retry.longest_seconds)
