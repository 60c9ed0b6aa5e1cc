"""Which process works on a table, and whether it has ended.

Only a process of this very machine can be asked for. Process ids come again, and containers have
ids of their own, so that the kernel's boot, the namespace and the time of the start count as well.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path

import msgspec

#: JSON of the holder for the functions of a run on this machine; a deployed run has none.
HOLDER_VARIABLE = "COMPACTOR_HOLDER"
_PROC = Path("/proc")
# Fields of /proc/<pid>/stat after the name: state, and clock ticks from the boot to the start.
_STATE, _STARTED = 0, 19
_ENDED = frozenset("ZX")


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """A process.

    Attributes:
        host: name of its machine, for a person.
        process: its id.
        started: clock ticks from the machine's boot to its start.
        machine: boot of the kernel, and namespace of process ids.
    """

    host: str
    process: int
    started: int = 0
    machine: str = ""

    @property
    def line(self) -> str:
        """For a person."""
        return f"process {self.process} on {self.host}"


def this_process() -> Holder:
    """The process that asks."""
    process = os.getpid()
    started = _started(process)
    return Holder(
        host=socket.gethostname(), process=process, started=started or 0, machine=_machine()
    )


def given_holder() -> Holder | None:
    """The process of the run that these functions work for; None in a deployment."""
    given = os.environ.get(HOLDER_VARIABLE)
    return msgspec.json.decode(given, type=Holder) if given else None


def has_ended(holder: Holder) -> bool:
    """True when it is known that the process is gone; False of another machine's."""
    if not holder.machine or holder.machine != _machine():
        return False
    try:
        os.kill(holder.process, 0)
    except ProcessLookupError:
        return True
    except OSError:
        # Another user's, of which /proc may show nothing.
        return False
    return _started(holder.process) != holder.started


def _machine() -> str:
    """Empty where the system does not say (macOS)."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {(_PROC / 'self/ns/pid').readlink()}"
    except OSError:
        return ""


def _started(process: int) -> int | None:
    """When a process started; None where there is none."""
    try:
        stat = (_PROC / str(process) / "stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name, in parentheses, may hold spaces.
    fields = stat.rpartition(")")[2].split()
    return None if fields[_STATE] in _ENDED else int(fields[_STARTED])
