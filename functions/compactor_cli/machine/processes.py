"""Child processes, their messages, and a pool of them.

Messages are JSON, preceded by its length in 4 bytes. A child exits when its standard input closes,
so it cannot outlive this process.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import queue
import resource
import select
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, cast

_LENGTH = struct.Struct(">I")
_START_SECONDS = 60.0
# For a crashed process to exit with its own status.
_CRASH_SECONDS = 1.0
_POLL_SECONDS = 0.02


def answer_stream() -> IO[bytes]:
    """Return standard output for messages; further prints go to standard error."""
    stream = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return stream


def send(stream: IO[bytes], message: Any) -> None:
    """Write one message and flush it.

    Raises:
        TypeError: the message has a value that JSON does not support.
        OSError: the other process is gone.
    """
    body = json.dumps(message, separators=(",", ":")).encode("utf-8")
    stream.write(_LENGTH.pack(len(body)) + body)
    stream.flush()


def receive(stream: IO[bytes]) -> Any | None:
    """Read one message; returns None if the other process is gone."""
    head = _read_exactly(stream, _LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    body = _read_exactly(stream, length)
    return json.loads(body) if len(body) == length else None


def _read_exactly(stream: IO[bytes], length: int) -> bytes:
    """Read exactly ``length`` bytes, or fewer at the end; a pipe returns them in pieces."""
    data = bytearray()
    while len(data) < length and (piece := stream.read(length - len(data))):
        data += piece
    return bytes(data)


class Child:
    """Runs ``python -m module`` as a child process.

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
        self._sending = threading.Lock()
        self._orders = cast("IO[bytes]", self._process.stdin)
        # Unbuffered: select() does not see a message that is in a buffer.
        answers = cast("io.BufferedReader", self._process.stdout)
        self._answers = cast("IO[bytes]", answers.detach())

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def send(self, message: Any, body: bytes = b"") -> None:
        """Send a message, followed by bytes; from any thread.

        Raises:
            EOFError: the process has exited.
        """
        try:
            with self._sending:
                send(self._orders, message)
                self._orders.write(body)
                self._orders.flush()
        except (OSError, ValueError) as error:
            # ValueError: another thread has ended it.
            raise EOFError from error

    def receive(self, timeout_seconds: float | None = None) -> Any:
        """Return its next message.

        Raises:
            TimeoutError: there was none in time.
            EOFError: the process has exited.
        """
        try:
            ready, _, _ = select.select([self._answers], [], [], timeout_seconds)
            if not ready:
                raise TimeoutError
            message = receive(self._answers)
        except ValueError as error:
            raise EOFError from error
        if message is None:
            raise EOFError
        return message

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


class WorkerLost(Exception):
    """A process of a pool exited or was killed during a call; the message says how.

    Args:
        code: its exit code, negative for a signal; None if it was killed at its time limit.
        message: how it ended.
    """

    def __init__(self, code: int | None, message: str) -> None:
        super().__init__(message)
        self.code = code


class PoolStopped(Exception):
    """The pool was stopped before the call began."""


class WorkerPool:
    """Carries out calls on at most ``slots`` processes, which are replaced when they fail.

    A process is started when a call finds none idle. It sends one message when its modules are
    loaded, and then answers each message by a mapping with its ``peak_bytes``.

    Args:
        slots: maximum number of concurrent calls.
        start: starts one process.
    """

    def __init__(self, slots: int, start: Callable[[], Child]) -> None:
        self._start = start
        self._children: list[Child | None] = [None] * slots
        # The slot that was used last, whose process runs, is used first.
        self._idle: queue.LifoQueue[int] = queue.LifoQueue()
        for slot in range(slots):
            self._idle.put(slot)
        self._lock = threading.Lock()
        self._is_stopped = False
        self.peak_bytes = 0
        self.replaced = 0

    def call(self, message: Mapping[str, Any], timeout_seconds: float) -> dict[str, Any]:
        """Return the answer of the next idle process; waits for one.

        Raises:
            WorkerLost: the process exited, or was killed at the timeout.
            PoolStopped: the pool was stopped.
        """
        slot = self._idle.get()
        try:
            child = self._started(slot)
            child.send(message)
            answer: dict[str, Any] = child.receive(timeout_seconds)
        except TimeoutError:
            self._discard(slot)
            raise WorkerLost(None, f"was killed after a timeout of {timeout_seconds:g} s") from None
        except EOFError:
            code = self._discard(slot, _CRASH_SECONDS)
            raise WorkerLost(code, _ending(code)) from None
        finally:
            self._idle.put(slot)
        with self._lock:
            self.peak_bytes = max(self.peak_bytes, answer.pop("peak_bytes"))
        return answer

    def stop(self, grace_seconds: float) -> None:
        """Send ``{"stop": True}`` to all processes, wait for their calls, and kill them."""
        with self._lock:
            self._is_stopped = True
        for child in self._children:
            if child is not None:
                with contextlib.suppress(EOFError):
                    child.send({"stop": True})
        ends_at = time.monotonic() + grace_seconds
        while self._idle.qsize() < len(self._children) and time.monotonic() < ends_at:
            time.sleep(_POLL_SECONDS)
        self.close()

    def close(self) -> None:
        """Kill every process; no call begins after it."""
        with self._lock:
            self._is_stopped = True
        for child in self._children:
            if child is not None:
                child.end()

    def _started(self, slot: int) -> Child:
        with self._lock:
            if self._is_stopped:
                raise PoolStopped
            if (child := self._children[slot]) is not None:
                return child
            child = self._children[slot] = self._start()
        # Loading the modules does not count as time of the call, as on Lambda.
        child.receive(_START_SECONDS)
        return child

    def _discard(self, slot: int, grace_seconds: float = 0.0) -> int:
        with self._lock:
            child, self._children[slot] = self._children[slot], None
            self.replaced += 1
        return child.end(grace_seconds) if child is not None else 0


def _ending(code: int) -> str:
    """Describe an exit code."""
    if code >= 0:
        return f"exited with status {code}"
    names = {number.value: f" ({number.name})" for number in signal.Signals}
    return f"was killed by signal {-code}{names.get(-code, '')}"


def peak_bytes() -> int:
    """Return the largest resident memory of this process.

    Not from ``ru_maxrss`` if possible: on Linux it starts at the peak of the process that forked
    this one.
    """
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def python_environment(base: Mapping[str, str], *paths: str) -> dict[str, str]:
    """Return an environment with these paths first in ``PYTHONPATH``, without empty variables."""
    environment = {name: value for name, value in base.items() if value}
    entries = [path for path in (*paths, base.get("PYTHONPATH", "")) if path]
    return {**environment, "PYTHONPATH": os.pathsep.join(entries)}
