"""The machine's clock; whatever reads the time is given one."""

from __future__ import annotations

import time
from math import inf


class SystemClock:
    """The machine's clock."""

    def now(self) -> float:
        """UNIX seconds."""
        return time.time()


class NoDeadline:
    """A deadline that never comes: nothing limits this process."""

    def remaining_seconds(self) -> float:
        """No deadline: infinite."""
        return inf
