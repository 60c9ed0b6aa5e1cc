"""How soon a thread that waits for the interpreter lock gets it from one that computes.

One thread that serves hundreds of connections wants the lock twice a request, and waits up to
Python's 5 ms each time while another one joins what was read. Where hundreds of threads want it,
switching more often costs more than it gains: so only as long as such a thread is at work.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

QUICK_SECONDS = 0.001

_lock = threading.Lock()
_users = 0
_before = 0.0


@contextmanager
def quick_switches() -> Iterator[None]:
    """The lock changes hands sooner within; afterwards as before, once nobody else wants that."""
    global _users, _before  # noqa: PLW0603 - as global as what it changes
    with _lock:
        if not _users:
            _before = sys.getswitchinterval()
            sys.setswitchinterval(min(QUICK_SECONDS, _before))
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if not _users:
                sys.setswitchinterval(_before)
