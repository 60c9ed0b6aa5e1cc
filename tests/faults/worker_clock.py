"""A clock for worker processes that can be made to jump while they run.

libfaketime answers for the C library, so Python, botocore and libcurl all see
the same wrong time; what measures durations goes on as before.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from random import Random

from tests.support.faults import Request

# Inside of what S3 takes for right (15 minutes) and outside of it, both ways.
_JUMPS = ("+0s", "-14m", "+14m", "-1h", "+2d", "+0s", "-400d", "+0s")
_ASK = "import time; print(time.time())"


class WorkerClock:
    """The offset of a clock from the true time, in a file that is read once a second.

    Attributes:
        environment: for the processes that are to have this clock.
    """

    def __init__(self, directory: Path) -> None:
        self._file = directory / "offset"
        self.set("+0s")
        self.environment: Mapping[str, str] = {
            "LD_PRELOAD": str(_library()),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            # Seconds; looking into the file each time would take half of a worker's time.
            "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "NO_FAKE_STAT": "1",
        }

    def set(self, offset: str) -> None:
        """From now on the clock is off by this much, such as ``+2d``."""
        written = self._file.with_suffix(".new")
        written.write_text(f"{offset}\n", "ascii")
        # A reader sees the old offset or the new one, never half of it.
        written.replace(self._file)

    def jump(self, request: Request, dice: Random) -> bool:
        """Set it to another time."""
        self.set(dice.choice(_JUMPS))
        return True

    def seconds(self) -> float:
        """The time that a process with this clock sees."""
        command = [sys.executable, "-S", "-c", _ASK]
        answer = subprocess.run(command, env=self.environment, capture_output=True, check=True)
        return float(answer.stdout)


def _library() -> Path:
    found = importlib.util.find_spec("libfaketime")
    home = Path((found.origin if found else None) or "missing").parent
    return home / "vendor" / "libfaketime" / "src" / "libfaketime.so.1"
