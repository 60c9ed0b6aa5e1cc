"""The machine's clock; whatever reads the time is given one."""

from __future__ import annotations

import time


class SystemClock:
    """The machine's clock."""

    def now(self) -> float:
        """UNIX seconds."""
        return time.time()
