"""How many processors there are for this process."""

from __future__ import annotations

import os


def processors() -> int:
    """Those that it may run on; where the system does not say (macOS, Windows), all."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1
