"""The machine's clock. Code that needs the time is passed a clock."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from math import inf


class SystemClock:
    """The machine's clock."""

    def now(self) -> float:
        """Return UNIX seconds."""
        return time.time()


class NoDeadline:
    """The deadline of a process without a time limit."""

    def remaining_seconds(self) -> float:
        """Return infinity."""
        return inf


def instant(seconds: float) -> str:
    """Format UNIX seconds as ``2026-01-31T12:00:00Z``."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
