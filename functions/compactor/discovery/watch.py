"""When the counting of an invocation is to stop, and how many are to go on with what is left."""

from __future__ import annotations

import math
import threading

from compactor.discovery.counting import Tally
from compactor.ports import Deadline

# Kept of an invocation for the requests under way and the piece; of a short one, a quarter.
RESERVE_SECONDS = 60.0
# After so long it is known how fast the counting is, and when it would take longer than this, it
# is shared among invocations that should take so long each.
LOOK_SECONDS, SHARE_SECONDS, STRETCH_SECONDS = 30.0, 300.0, 240.0
# Each asks for 16 pages at once, of the 5,500 requests a second that S3 serves below one prefix.
MOST_AT_ONCE = 20
# One partition is listed by some four requests at once: fewer than a quarter as many partitions as
# there are threads leave threads without work.
_THREADS_OF_ONE = 4


class Watch:
    """Tells when counting is to stop, by the deadline alone; thread safe.

    Args:
        deadline: of the invocation.
        shares: what is left can be divided among several invocations.
        leaves: partitions that keep others waiting can be left, to be divided.
        workers: threads that count.

    Attributes:
        wanted: partitions to be counted, or ranges of them.
    """

    def __init__(
        self, deadline: Deadline, *, shares: bool = False, leaves: bool = False, workers: int = 1
    ) -> None:
        self._deadline = deadline
        self._whole = deadline.remaining_seconds()
        self._reserve = min(RESERVE_SECONDS, self._whole / 4)
        self._shares = shares
        self._leaves = leaves and not math.isinf(self._whole)
        self._few = max(1, workers // _THREADS_OF_ONE)
        self._done = 0
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._at_begin = self._whole
        self._few_since: float | None = None
        self.wanted = 0

    def begin(self, wanted: int) -> None:
        """So many are known now: what went before tells nothing of the pace."""
        self.wanted, self._at_begin = wanted, self._deadline.remaining_seconds()
        self._done, self._few_since = 0, None

    def __call__(self) -> bool:
        """Counting is to stop."""
        if self._over.is_set():
            return True
        left = self._deadline.remaining_seconds()
        if left < self._reserve or (self._shares and self._is_worth_sharing()):
            self._over.set()
        return self._over.is_set()

    @property
    def waiting(self) -> int:
        """How many of those wanted are not at their end."""
        return self.wanted - self._done

    def leaves(self) -> bool:
        """A count that is under way is to be left: for some time there were few beside it."""
        if not self._leaves or self.waiting > self._few:
            return False
        now = self._deadline.remaining_seconds()
        with self._lock:
            if self._few_since is None:
                self._few_since = now
            return self._few_since - now >= LOOK_SECONDS

    def ended(self, tally: Tally) -> None:
        """A count has come so far."""
        if tally.ended:
            with self._lock:
                self._done += 1

    def ways(self, at_once: int | None) -> int:
        """Into how many stretches the rest is best divided; 1 for one after the other."""
        if not self._shares or math.isinf(self._whole):
            return 1
        return max(1, min(ways_for(self._seconds_left(), at_once), self.waiting))

    def _is_worth_sharing(self) -> bool:
        if math.isinf(self._whole) or self.waiting < 2:
            return False
        spent = self._spent()
        return spent >= LOOK_SECONDS and self._seconds_left() > SHARE_SECONDS

    def _seconds_left(self) -> float:
        """What the rest would take here, at the pace so far."""
        return self._spent() / max(self._done, 1) * self.waiting

    def _spent(self) -> float:
        """By counting."""
        return self._at_begin - self._deadline.remaining_seconds()


def ways_for(seconds: float, at_once: int | None) -> int:
    """How many invocations are to share what would take one so long.

    Args:
        seconds: of one.
        at_once: functions that the account lets run at the same time; None where nobody knows.
    """
    most = MOST_AT_ONCE if at_once is None else max(1, min(MOST_AT_ONCE, at_once))
    return math.ceil(min(seconds / STRETCH_SECONDS, most))
