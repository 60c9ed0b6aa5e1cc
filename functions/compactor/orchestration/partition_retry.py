"""Which failures of a partition are worth another try, and when: as the state machine has it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from compactor.report.run_records import LOST

__all__ = ["LOST", "RETRIES", "STOPPED", "Retry", "Tries"]

#: The error of a call that was ended because the whole run is.
STOPPED = "RunStopped"


@dataclass(frozen=True, slots=True)
class Retry:
    """After the nth failure a wait of up to ``interval * 2 ** (n - 1)`` seconds, with full jitter.

    Attributes:
        attempts: tries after the first one.
    """

    attempts: int
    interval_seconds: float
    longest_seconds: float


#: By the name of the error; whatever is not here is not tried again.
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
        """Count a failure; seconds to wait at most before the next try, None for no more tries."""
        retry = self._retries.get(error)
        if retry is None or self._failures[error] >= retry.attempts:
            return None
        self._failures[error] += 1
        doubled = retry.interval_seconds * 2.0 ** (self._failures[error] - 1)
        return min(doubled, retry.longest_seconds)
