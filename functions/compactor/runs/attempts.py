"""How much longer a call goes on: its time, and how often its plans came to nothing."""

from __future__ import annotations

from compactor.errors import TransientStoreError
from compactor.runs.partition_run import PartitionRun

# A source may change while it is read, or another run may be first; then plan again.
MAX_REPLANS = 20


class Attempts:
    """The time and the tries that a call has left.

    Args:
        run: whose deadline counts.
    """

    def __init__(self, run: PartitionRun) -> None:
        self._run = run
        self._longest_seconds = 0.0
        self._is_cut_short = False
        self._setbacks = 0

    @property
    def out_of_time(self) -> bool:
        """True when no further group should be started."""
        if self._is_cut_short:
            return True
        needed = self._run.reserve_seconds + 1.5 * self._longest_seconds
        return self._run.deadline.remaining_seconds() < needed

    def cut_short(self) -> None:
        """Start no further group: the last one did not fit the time."""
        self._is_cut_short = True

    def took(self, seconds: float) -> None:
        """Note how long a group took from its first GET to its publication."""
        self._longest_seconds = max(self._longest_seconds, seconds)

    def published(self) -> None:
        """A group was published: earlier setbacks no longer count."""
        self._setbacks = 0

    def set_back(self, error: Exception) -> None:
        """Count a plan that came to nothing.

        Raises:
            TransientStoreError: too many did since the last group was published.
        """
        self._setbacks += 1
        if self._setbacks > MAX_REPLANS:
            raise TransientStoreError(f"planned {MAX_REPLANS} times, last: {error}") from error
