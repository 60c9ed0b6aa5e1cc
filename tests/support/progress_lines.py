"""What a process says on standard error besides how far it is."""

from __future__ import annotations

import re

# A command that takes longer than ten seconds says so where there is no terminal.
_PROGRESS = re.compile(r"^(?!compactor: ).* \(\d+ s\)\n", re.MULTILINE)


def without_progress(err: str) -> str:
    """Standard error without the lines that come every ten seconds."""
    return _PROGRESS.sub("", err)
