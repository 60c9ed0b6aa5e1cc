"""A child process of ours that speaks :mod:`compactor_machine.wire` on its standard streams."""

from __future__ import annotations

import contextlib
import io
import os
import resource
import select
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, cast

from compactor_machine import wire


class Child:
    """Runs ``python -m module`` for as long as it is wanted.

    The module ends when its standard input closes, so it cannot outlive this process.

    Args:
        module: what to run.
        arguments: its arguments.
        environment: the whole environment; None for this process's own.
        log: where its standard error goes; None for this process's own.
        detached: a terminal's interrupt does not reach it.
    """

    def __init__(
        self,
        module: str,
        arguments: Sequence[str] = (),
        *,
        environment: Mapping[str, str] | None = None,
        log: IO[bytes] | int | None = None,
        detached: bool = False,
    ) -> None:
        self._process = subprocess.Popen(
            # -P: what lies in the working directory is not for Python to import.
            [sys.executable, "-P", "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env=environment,
            start_new_session=detached,
        )
        self._orders = cast("IO[bytes]", self._process.stdin)
        # Without a buffer: a message that waits in one does not make the pipe readable.
        answers = cast("io.BufferedReader", self._process.stdout)
        self._answers = cast("IO[bytes]", answers.detach())

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def send(self, message: Any, body: bytes = b"") -> None:
        """Give it a message, and bytes that follow it.

        Raises:
            EOFError: it has ended.
        """
        try:
            wire.send(self._orders, message)
            self._orders.write(body)
            self._orders.flush()
        except OSError as error:
            raise EOFError from error

    def receive(self, timeout_seconds: float | None = None) -> Any:
        """The child's next message.

        Raises:
            TimeoutError: none in time.
            EOFError: it has ended.
        """
        ready, _, _ = select.select([self._answers], [], [], timeout_seconds)
        if not ready:
            raise TimeoutError
        message = wire.receive(self._answers)
        if message is None:
            raise EOFError
        return message

    def peak_bytes(self) -> int:
        """Largest resident memory so far; 0 where the system does not say."""
        with contextlib.suppress(OSError):
            return read_peak_bytes(f"/proc/{self.pid}/status")
        return 0

    def end(self, grace_seconds: float = 0.0) -> int:
        """Close its standard input and, after the grace, kill it; returns its exit code."""
        with contextlib.suppress(OSError):
            self._orders.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=grace_seconds)
        self._process.kill()
        code = self._process.wait()
        self._answers.close()
        return code


def read_peak_bytes(status: str) -> int:
    """Largest resident memory by a ``/proc/…/status``; 0 for a process that ended.

    Raises:
        OSError: there is no such file.
    """
    for line in Path(status).read_text(encoding="ascii", errors="replace").splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
    return 0


def peak_bytes() -> int:
    """Largest resident memory of this process.

    Not ``ru_maxrss`` where it can be helped: Linux lets that start at the peak of the process
    that forked this one.
    """
    try:
        return read_peak_bytes("/proc/self/status")
    except OSError:
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def python_environment(base: Mapping[str, str], *paths: str) -> dict[str, str]:
    """An environment whose ``PYTHONPATH`` starts with these paths; empty variables go."""
    environment = {name: value for name, value in base.items() if value}
    known = [path for path in (*paths, base.get("PYTHONPATH", "")) if path]
    return {**environment, "PYTHONPATH": os.pathsep.join(known)}
