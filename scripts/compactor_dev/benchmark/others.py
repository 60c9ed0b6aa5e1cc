"""What other processes used of the machine while something was measured.

All that the machine's processors did, less what this process did and everything it started:
clients, servers, load generators. What is left is somebody else's: neighbours on this system, and
on the hypervisor below it.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

#: Above this share of the processors a measurement was not quiet.
QUIET_SHARE = 0.05
_PROC = Path("/proc")
_PROCESSOR = re.compile(r"^cpu\d+ ", re.MULTILINE)
# Of the first line of /proc/stat: user, nice, system, and what the hypervisor gave to others.
# Interrupts are left out, most of them our own network's: some kernels count them as time of the
# processes they interrupt, others as nobody's. So a few percent of others' work may be hidden,
# but none is told that was not.
_USED = (0, 1, 2, 7)
# Of /proc/PID/stat, after the program's name: time in user space and in the kernel, its own and
# that of children which it waited for.
_PARENT, _TIMES = 1, slice(11, 15)


@dataclass(frozen=True, slots=True)
class Look:
    """One look at the machine's clocks.

    Attributes:
        at: seconds of the monotonic clock.
        used: CPU seconds that all processors have worked since the start.
        own: of these, by this process and all that it started.
        processors: how many there are.
    """

    at: float
    used: float
    own: float
    processors: int

    @classmethod
    def now(cls, proc: Path = _PROC, pid: int | None = None) -> Look:
        """Look at them now.

        Args:
            proc: where the kernel tells.
            pid: who counts as we, with all descendants; None for this process.
        """
        ticks = os.sysconf("SC_CLK_TCK")
        told = (proc / "stat").read_text(encoding="ascii")
        used = [int(told.split("\n", 1)[0].split()[1:][place]) for place in _USED]
        own = sum(_own(proc, os.getpid() if pid is None else pid))
        processors = len(_PROCESSOR.findall(told))
        return cls(time.monotonic(), sum(used) / ticks, own / ticks, processors)

    def others_until(self, later: Look) -> float:
        """What others used between two looks, as a share of all processors' time."""
        used = (later.used - self.used) - (later.own - self.own)
        # Clocks that tick a hundred times a second may differ by a few ticks.
        return max(0.0, used) / ((later.at - self.at) * later.processors)


def _own(proc: Path, root: int) -> Iterator[int]:
    """Clock ticks of a process and of all that descend from it."""
    times: dict[int, int] = {}
    children: Mapping[int, list[int]] = defaultdict(list)
    for path in proc.glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # It may end at any moment.
            told = path.read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
            pid = int(path.parent.name)
            times[pid] = sum(map(int, told[_TIMES]))
            children[int(told[_PARENT])].append(pid)
    family = [root]
    while family:
        pid = family.pop()
        family += children[pid]
        yield times.get(pid, 0)
