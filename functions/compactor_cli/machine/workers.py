"""A pool of worker processes: one per slot, killed and replaced when it fails."""

from __future__ import annotations

import queue
import signal
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from compactor_cli.machine.child import Child

_START_SECONDS = 60.0
_LOOK_SECONDS = 0.02
#: Error of an invocation that was not started, because the pool is stopped.
RUN_STOPPED = "Run.Stopped"


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of an invocation: a payload, or a failure in Lambda's form.

    Attributes:
        ending: how the process ended, in words, if that is the failure.
    """

    payload: Any = None
    failure: Mapping[str, Any] | None = None
    ending: str = ""


class _Worker:
    """One process, started by ``start`` at the latest on first use."""

    def __init__(self, start: Callable[[], Child]) -> None:
        self._start = start
        self._child: Child | None = None
        self._ready = False
        self._sending = threading.Lock()
        self.peak_bytes = 0

    def start(self) -> Child:
        """Return the process, started if necessary."""
        if self._child is None:
            self._child = self._start()
        return self._child

    def ask(self, invocation: Mapping[str, Any], timeout_seconds: float) -> Mapping[str, Any]:
        """Return the answer to an invocation.

        Raises:
            TimeoutError: there was no answer in time; the process is still working.
            EOFError: the process has exited.
        """
        child = self.start()
        if not self._ready:
            # Loading the modules does not count as invocation time, as on Lambda.
            child.receive(_START_SECONDS)
            self._ready = True
        with self._sending:
            child.send(invocation)
        answer: dict[str, Any] = child.receive(timeout_seconds)
        self.peak_bytes = max(self.peak_bytes, answer.pop("peak_bytes"))
        return answer

    def stop(self) -> None:
        """Ask the process to stop."""
        if self._child is not None:
            with suppress(EOFError), self._sending:
                self._child.send({"stop": True})

    def end(self, grace_seconds: float = 0.0) -> int | None:
        """Kill the process; returns its exit code, None if it was never started.

        Args:
            grace_seconds: time for a crashed process to exit with its own status.
        """
        if self._child is None:
            return None
        self.peak_bytes = max(self.peak_bytes, self._child.peak_bytes())
        return self._child.end(grace_seconds)


class WorkerPool:
    """Runs invocations on a fixed number of processes.

    Args:
        slots: maximum number of concurrent invocations.
        start: starts one process.
        eager: start all processes now.
    """

    def __init__(self, slots: int, start: Callable[[], Child], *, eager: bool = True) -> None:
        self._start = start
        self._eager = eager
        self._free: queue.LifoQueue[_Worker] = queue.LifoQueue()
        self._lock = threading.Lock()
        self._slots = slots
        self._all = {self._new() for _ in range(slots)}
        for worker in self._all:
            self._free.put(worker)
        self._past_peak_bytes = 0
        self._stopped = False
        self.replaced = 0

    @property
    def peak_bytes(self) -> int:
        """Largest resident memory that any process reached, including replaced ones."""
        with self._lock:
            return max([self._past_peak_bytes, *(worker.peak_bytes for worker in self._all)])

    def invoke(self, invocation: Mapping[str, Any]) -> Answer:
        """Run one invocation on the next free process; waits for one."""
        request_id = str(uuid.uuid4())
        timeout_seconds: float = invocation["timeout_seconds"]
        worker = self._free.get()
        if self._stopped:
            self._free.put(worker)
            return _unhandled(request_id, RUN_STOPPED, "the run was stopped")
        try:
            answer = worker.ask({**invocation, "request_id": request_id}, timeout_seconds)
        except TimeoutError:
            self._replace(worker)
            message = f"Task timed out after {timeout_seconds:.2f} seconds"
            ending = f"was killed after a timeout of {timeout_seconds:g} s"
            return _unhandled(request_id, "Sandbox.Timedout", message, ending)
        except EOFError:
            code = self._replace(worker, grace_seconds=1.0) or 0
            how = f"signal: {-code}" if code < 0 else f"exit status {code}"
            message = f"Runtime exited with error: {how}"
            return _unhandled(request_id, "Runtime.ExitError", message, _in_words(code))
        self._free.put(worker)
        return Answer(payload=answer.get("payload"), failure=answer.get("failure"))

    def stop(self, grace_seconds: float) -> None:
        """Ask all processes to stop, wait, and kill them."""
        self._stopped = True
        for worker in list(self._all):
            worker.stop()
        until = time.monotonic() + grace_seconds
        while self._free.qsize() < self._slots and time.monotonic() < until:
            time.sleep(_LOOK_SECONDS)
        self.close()

    def close(self) -> None:
        """Kill every process."""
        for worker in list(self._all):
            worker.end()

    def _new(self) -> _Worker:
        worker = _Worker(self._start)
        if self._eager:
            worker.start()
        return worker

    def _replace(self, worker: _Worker, grace_seconds: float = 0.0) -> int | None:
        code = worker.end(grace_seconds)
        successor = self._new()
        with self._lock:
            self._past_peak_bytes = max(self._past_peak_bytes, worker.peak_bytes)
            self._all.discard(worker)
            self._all.add(successor)
            self.replaced += 1
        self._free.put(successor)
        return code


def _in_words(code: int) -> str:
    """Describe an exit code."""
    if code >= 0:
        return f"exited with status {code}"
    names = {one.value: f" ({one.name})" for one in signal.Signals}
    return f"was killed by signal {-code}{names.get(-code, '')}"


def _unhandled(request_id: str, error: str, message: str, ending: str = "") -> Answer:
    """Return a failure of the process in Lambda's form, as opposed to one of the handler."""
    text = f"RequestId: {request_id} Error: {message}"
    return Answer(failure={"errorType": error, "errorMessage": text}, ending=ending)
