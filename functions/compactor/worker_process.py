"""How a process that compacts keeps its memory: tuned once, when it starts."""

from __future__ import annotations

import contextlib
import ctypes
import gc

_M_TRIM_THRESHOLD = -1  # from glibc's malloc.h
_TRIM_BYTES = 4 * 1024 * 1024


def tune() -> None:
    """Fit Python's collector and glibc's allocator to millions of short-lived objects.

    Looking for cycles among objects that hold none took 6 % of a worker's CPU time. And glibc,
    once a part of 16 MiB was freed, would serve later ones from heaps that small objects then
    keep from shrinking: with 100,000 objects that made the peak 285 MB instead of 231.
    """
    gc.freeze()
    gc.set_threshold(100_000, 50, 50)
    # Other C libraries have no mallopt, and other platforms no CDLL(None).
    with contextlib.suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).mallopt(_M_TRIM_THRESHOLD, _TRIM_BYTES)
