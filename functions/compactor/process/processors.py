"""The number of processors available to this process."""

from __future__ import annotations

import os


def processors() -> int:
    """Return the number of processors that this process may use; on macOS and Windows, all."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1
