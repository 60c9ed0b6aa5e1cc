"""Removes progress lines from a process's standard error."""

from __future__ import annotations

import re

# A command without a terminal prints its progress every ten seconds.
_PROGRESS = re.compile(r"^(?!compactor: ).* \(\d+ s\)\n", re.MULTILINE)


def without_progress(err: str) -> str:
    """Return standard error without the progress lines."""
    return _PROGRESS.sub("", err)
