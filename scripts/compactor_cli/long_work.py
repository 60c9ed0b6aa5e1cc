"""Progress of what may take hours: a bar, and a line now and then where nobody sees a bar."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from compactor_cli.console import Bar, print_error, progress

_SECONDS_BETWEEN_LINES = 10.0


class _Lines(Bar):
    """A line on standard error every ten seconds, for logs."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self._what = what
        self._next = time.monotonic() + _SECONDS_BETWEEN_LINES

    def show(self, done: int, total: int | None = None, text: str = "") -> None:
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _SECONDS_BETWEEN_LINES
        of = f"{done:,} of {total:,}, " if total else ""
        print_error(f"{self._what}: {of}{text}")


@contextmanager
def long_progress(what: str, total: int | None = None) -> Iterator[Bar]:
    """As :func:`compactor_cli.console.progress`; where that shows nothing, lines."""
    with progress(what, total) as bar:
        unseen = type(bar) is Bar and not sys.stderr.isatty()
        yield _Lines(what) if unseen else bar
