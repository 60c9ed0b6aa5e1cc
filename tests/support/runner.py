"""Runs pytest and ends all its processes, however it ends: ``python -m tests.support.runner …``.

On Linux this process adopts the orphans of its descendants: servers, Java and workers in their own
sessions, which an interrupt from the terminal does not reach.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

_SET_CHILD_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of prctl(2)
# Time for fixtures to end what they started.
_GRACE_SECONDS = 15.0
_INTERRUPTED = 130


def main() -> int:
    """Run pytest; return its exit code."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, signal.default_int_handler)
    # In its own process group, so that only this process gets an interrupt, and passes it on once.
    pytest = subprocess.Popen([sys.executable, "-m", "pytest", *sys.argv[1:]], process_group=0)
    try:
        return _exit_code(pytest.pid)
    except KeyboardInterrupt:
        _interrupt(pytest.pid)
        return _INTERRUPTED
    finally:
        _kill_descendants()


def _exit_code(pid: int) -> int:
    """Wait for a process, and reap adopted ones: tests check that processes are gone."""
    while True:
        ended, status = os.wait()
        if ended == pid:
            return os.waitstatus_to_exitcode(status)


def _interrupt(group: int) -> None:
    """Interrupt all processes of the group, and wait; another interrupt ends the wait."""
    until = time.monotonic() + _GRACE_SECONDS
    with contextlib.suppress(KeyboardInterrupt, ProcessLookupError, ChildProcessError):
        os.killpg(group, signal.SIGINT)
        while time.monotonic() < until and os.waitpid(-1, os.WNOHANG)[0] != group:
            time.sleep(0.05)


def _kill_descendants() -> None:
    """Kill children until none is left: orphans of a killed one become children of this process."""
    while children := _children(os.getpid()):
        for pid in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.02)


def _children(pid: int) -> list[int]:
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    except OSError:
        return []
    return [int(one) for one in text.split()]


if __name__ == "__main__":
    sys.exit(main())
