"""Identifies the process that works on a table, and finds out whether it has ended.

Only processes of this machine can be checked. Process ids are reused, and each container has its
own, so a process is identified by the kernel's boot, the id's namespace and its start time as well.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path

import msgspec

#: Environment variable with the holder as JSON, for a run on this machine; not set when deployed.
HOLDER_VARIABLE = "COMPACTOR_HOLDER"
_PROC = Path("/proc")
# Fields of /proc/<pid>/stat after the name: state, and clock ticks from the boot to the start.
_STATE, _STARTED = 0, 19
_ENDED = frozenset("ZX")


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """A process.

    Attributes:
        host: human-readable name of its machine.
        process: its id.
        started: clock ticks from the machine's boot to the start of the process.
        machine: id of the kernel's boot, and namespace of process ids.
    """

    host: str
    process: int
    started: int = 0
    machine: str = ""

    @property
    def line(self) -> str:
        """Human-readable name of the process and its machine."""
        return f"process {self.process} on {self.host}"


def this_process() -> Holder:
    """Return the calling process."""
    process = os.getpid()
    started = _started(process)
    return Holder(
        host=socket.gethostname(), process=process, started=started or 0, machine=_machine()
    )


def given_holder() -> Holder | None:
    """Return the process of the run that the calling function belongs to; None when deployed."""
    given = os.environ.get(HOLDER_VARIABLE)
    return msgspec.json.decode(given, type=Holder) if given else None


def has_ended(holder: Holder) -> bool:
    """Return whether the process is known to have ended; False for one of another machine."""
    if not holder.machine or holder.machine != _machine():
        return False
    try:
        os.kill(holder.process, 0)
    except ProcessLookupError:
        return True
    except OSError:
        # A process of another user, which /proc may not show.
        return False
    return _started(holder.process) != holder.started


def _machine() -> str:
    """Return the boot id and the pid namespace; empty if the system has neither (macOS)."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {(_PROC / 'self/ns/pid').readlink()}"
    except OSError:
        return ""


def _started(process: int) -> int | None:
    """Return a process's start in clock ticks since boot; None if there is no such process."""
    try:
        stat = (_PROC / str(process) / "stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name, in parentheses, may contain spaces.
    fields = stat.rpartition(")")[2].split()
    return None if fields[_STATE] in _ENDED else int(fields[_STARTED])
