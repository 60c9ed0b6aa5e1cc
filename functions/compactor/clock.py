"""The machine's clock, which is passed to code that needs the time; instants and run ids."""

from __future__ import annotations

import secrets
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


def new_run_id() -> str:
    """Return a unique run id; ids sort by creation time (UTC, milliseconds)."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    return f"{now[:-6].replace('-', '').replace(':', '')}Z-{secrets.token_hex(3)}"
