"""Processes: the one that serves a connection, and the command line as a person uses it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from random import Random

from compactor_cli.machine.processes import python_environment
from tests.conftest import REPO_ROOT
from tests.support.faults import Request

_WORKER = b"compactor_local.functions"
_ESTABLISHED = "01"
CONNECTIONS = Path("/proc/net/tcp")


def kill_worker(request: Request, dice: Random) -> bool:
    """End with SIGKILL the handler process that a request comes from.

    False for any other process, the engine itself among them, and for one that is gone.
    """
    inode = _inode(request.port)
    for process in Path("/proc").glob("[0-9]*") if inode else ():
        with suppress(OSError):
            if _WORKER in (process / "cmdline").read_bytes() and _holds(process, inode):
                os.kill(int(process.name), signal.SIGKILL)
                return True
    return False


def _inode(port: int) -> str:
    """The inode of the connected socket that is bound to a loopback port; empty for none."""
    if not CONNECTIONS.exists():
        return ""
    for line in CONNECTIONS.read_text("ascii").splitlines()[1:]:
        fields = line.split()
        if fields[3] == _ESTABLISHED and fields[1] == f"0100007F:{port:04X}":
            return fields[9]
    return ""


def _holds(process: Path, inode: str) -> bool:
    wanted = Path(f"socket:[{inode}]")
    return any(entry.readlink() == wanted for entry in (process / "fd").iterdir())


def compactor(
    *arguments: str, environment: Mapping[str, str], before: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own, to its end.

    Args:
        environment: on top of this process's own; an empty value removes the variable.
        before: shell commands that go first, such as limits.
    """
    paths = (str(REPO_ROOT), str(REPO_ROOT / "functions"))
    command = [sys.executable, "-m", "compactor_cli", *arguments]
    if before:
        command = ["/bin/sh", "-c", f'{before}; exec "$@"', "sh", *command]
    return subprocess.run(
        command,
        env=python_environment({**os.environ, **environment}, *paths),
        cwd=REPO_ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
