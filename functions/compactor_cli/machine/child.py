"""A child process that exchanges :mod:`compactor_cli.machine.wire` messages over its pipes."""

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

from compactor_cli.machine import wire


class Child:
    """Runs ``python -m module`` as a child process.

    The module exits when its standard input closes, so it cannot outlive this process.

    Args:
        module: module to run.
        arguments: its arguments.
        environment: the whole environment; None for this process's own.
        log: receives its standard error; None for this process's own.
        detached: in a session of its own, so that a terminal's interrupt does not reach it.
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
            # -P: modules in the working directory must not be imported.
            [sys.executable, "-P", "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env=environment,
            start_new_session=detached,
        )
        self._orders = cast("IO[bytes]", self._process.stdin)
        # Unbuffered: select() does not see a message that is in a buffer.
        answers = cast("io.BufferedReader", self._process.stdout)
        self._answers = cast("IO[bytes]", answers.detach())

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def send(self, message: Any, body: bytes = b"") -> None:
        """Send a message, followed by bytes.

        Raises:
            EOFError: the process has exited.
        """
        try:
            wire.send(self._orders, message)
            self._orders.write(body)
            self._orders.flush()
        except OSError as error:
            raise EOFError from error

    def receive(self, timeout_seconds: float | None = None) -> Any:
        """Return its next message.

        Raises:
            TimeoutError: there was none in time.
            EOFError: the process has exited.
        """
        ready, _, _ = select.select([self._answers], [], [], timeout_seconds)
        if not ready:
            raise TimeoutError
        message = wire.receive(self._answers)
        if message is None:
            raise EOFError
        return message

    def peak_bytes(self) -> int:
        """Return the largest resident memory so far; 0 if the system does not report it."""
        with contextlib.suppress(OSError):
            return read_peak_bytes(f"/proc/{self.pid}/status")
        return 0

    def end(self, grace_seconds: float = 0.0) -> int:
        """Close its standard input, and kill it after the grace period; returns its exit code."""
        with contextlib.suppress(OSError):
            self._orders.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=grace_seconds)
        self._process.kill()
        code = self._process.wait()
        self._answers.close()
        return code


def read_peak_bytes(status: str) -> int:
    """Return the largest resident memory in a ``/proc/…/status``; 0 for an exited process.

    Raises:
        OSError: there is no such file.
    """
    for line in Path(status).read_text(encoding="ascii", errors="replace").splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
    return 0


def peak_bytes() -> int:
    """Return the largest resident memory of this process.

    Not from ``ru_maxrss`` if possible: on Linux it starts at the peak of the process that forked
    this one.
    """
    try:
        return read_peak_bytes("/proc/self/status")
    except OSError:
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def python_environment(base: Mapping[str, str], *paths: str) -> dict[str, str]:
    """Return an environment with these paths first in ``PYTHONPATH``, without empty variables."""
    environment = {name: value for name, value in base.items() if value}
    known = [path for path in (*paths, base.get("PYTHONPATH", "")) if path]
    return {**environment, "PYTHONPATH": os.pathsep.join(known)}
