"""How many processors there are for this process."""

from __future__ import annotations

import os


def processors() -> int:
    """Processors that this process may use; all where the system does not say (macOS, Windows)."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1
