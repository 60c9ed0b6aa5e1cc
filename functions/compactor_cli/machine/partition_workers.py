"""Worker processes for the partitions of a run, one partition at a time each.

The first message on a process's standard input describes the run; orders follow. What it prints
goes to the log: one JSON document per line. When its standard input closes, the run is gone and the
process exits immediately, which the order of writes makes safe at any instant.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import IO, Any

import msgspec

from compactor.cleaning.due import CleanUpFacts
from compactor.clock import SystemClock
from compactor.log.identity import StateIdentity
from compactor.orchestration.messages import FAILED, Answer, Desk, Order
from compactor.orchestration.partition_retry import LOST, STOPPED
from compactor.ports import Deadline
from compactor.probe.probe import traits_for
from compactor.process import memory
from compactor.s3.requests import RequestCounter
from compactor.s3.store import S3Store, make_client
from compactor.settings.settings import Settings
from compactor_cli.machine.processes import (
    Child,
    PoolStopped,
    WorkerLost,
    WorkerPool,
    answer_stream,
    peak_bytes,
    receive,
    send,
)

# The timeout of the deployed function.
CALL_SECONDS = 900.0
# For the current request, aborting an upload, and writing a receipt.
_STOP_SECONDS = 10.0
_MODULE = "compactor_cli.machine.partition_workers"
#: Requests before which a stopped run ends. Writes continue, so a commit is also published.
_MAY_END = frozenset({"GET", "HEAD", "LIST"})


@dataclass(frozen=True, slots=True)
class WorkerTask:
    """The run of the processes, and their options.

    Attributes:
        endpoint_url: of the S3; None for AWS.
        environment: the whole environment.
        log: receives what they print.
        call_seconds: a process that takes longer for a call is killed and replaced.
        deadline: of the whole run; None for no deadline.
    """

    settings: Settings
    run_id: str
    endpoint_url: str | None
    environment: Mapping[str, str]
    log: IO[bytes] | int
    call_seconds: float = CALL_SECONDS
    deadline: Deadline | None = None

    @property
    def seconds(self) -> float:
        """The timeout of a call that starts now."""
        if self.deadline is None:
            return self.call_seconds
        return min(self.call_seconds, max(self.deadline.remaining_seconds(), 1.0))


class PartitionWorkers:
    """Implements :class:`compactor.orchestration.workers.Workers` with worker processes.

    Args:
        slots: maximum number of concurrent orders.
        task: the run of the processes.
    """

    own_time = True

    def __init__(self, slots: int, task: WorkerTask) -> None:
        self.slots = slots
        self._task = task
        self.pool = WorkerPool(slots, self._start)

    def carry_out(self, order: Order) -> Answer:
        """Carry out one order on the next idle process."""
        seconds = self._task.seconds
        message = {"order": msgspec.to_builtins(order), "timeout_seconds": seconds}
        try:
            return msgspec.convert(self.pool.call(message, seconds)["answer"], Answer)
        except PoolStopped:
            return Answer(FAILED, STOPPED, "the run was stopped")
        except WorkerLost as error:
            cause = f"its worker process {error}"
            if not isinstance(self._task.log, int):
                _log(self._task.log, "ERROR", self._task.run_id, order, f"{LOST}: {cause}")
            return Answer(FAILED, LOST, cause)

    def stop(self) -> None:
        """Ask all processes to stop between two requests; kill those that take too long."""
        self.pool.stop(_STOP_SECONDS)

    def close(self) -> None:
        """Kill every process."""
        self.pool.close()

    def _start(self) -> Child:
        task = self._task
        # Detached: a terminal's interrupt reaches only the parent process, which stops them.
        child = Child(_MODULE, environment=task.environment, log=task.log, detached=True)
        child.send(
            {
                "settings": task.settings.to_dict(),
                "run_id": task.run_id,
                "endpoint_url": task.endpoint_url,
            }
        )
        return child


def _log(log: IO[bytes], level: str, run_id: str, order: Order, message: str, **more: str) -> None:
    line = {
        "level": level,
        "message": message,
        "timestamp": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "run_id": run_id,
        "path": order.path,
        **more,
    }
    # A full disk must not end a run: the receipts have the results. Written unbuffered, because
    # closing the log would write a buffer again.
    with suppress(OSError):
        os.write(log.fileno(), json.dumps(line).encode() + b"\n")


class RunStopped(Exception):
    """Ends the work on a partition before its next read request."""


class _StoppableRequests(RequestCounter):
    """Counts requests, and stops the main thread at its next read once the run is stopped.

    It raises only once, so that the upload is still aborted and the receipt written. Other threads
    read and store parts for the main thread, which ends them.
    """

    def __init__(self, stopped: threading.Event) -> None:
        super().__init__()
        self._stopped = stopped
        self._raised = False

    def add(self, name: str, amount: int = 1) -> None:
        """Count a request before it is sent, or bytes after they were sent.

        Raises:
            RunStopped: the run was stopped.
        """
        main = threading.current_thread() is threading.main_thread()
        if self._stopped.is_set() and main and not self._raised and name in _MAY_END:
            self._raised = True
            raise RunStopped("the run was interrupted")
        super().add(name, amount)


class _CallDeadline:
    """The deadline of one call; it passes early when the run is stopped."""

    def __init__(self, seconds: float, stopped: threading.Event) -> None:
        self._ends_at = time.monotonic() + seconds
        self._stopped = stopped

    def remaining_seconds(self) -> float:
        """Seconds until this process is killed."""
        return 0.0 if self._stopped.is_set() else self._ends_at - time.monotonic()


class _Worker:
    """Carries out orders for one run, in a process of the pool."""

    def __init__(self, task: Mapping[str, Any], stopped: threading.Event) -> None:
        self._settings = Settings.from_input(task["settings"])
        self._run_id: str = task["run_id"]
        self._stopped = stopped
        self._facts = CleanUpFacts()
        self._clock = SystemClock()
        limits = self._settings.limits
        self._store = S3Store(
            make_client(task["endpoint_url"], connections=limits.reads),
            threads=limits.reads,
            budget_bytes=limits.read_ahead_bytes,
        )
        self._store.requests = _StoppableRequests(stopped)
        self._identity = StateIdentity(self._settings, self._store)
        self._is_probed = False

    def answer(self, order: Order, seconds: float) -> Answer:
        """Carry out one order; an error becomes its answer."""
        deadline = _CallDeadline(seconds, self._stopped)
        try:
            if not self._is_probed:
                traits = traits_for(self._settings.state, self._store, self._clock.now())
                self._store, self._is_probed = self._store.with_traits(traits), True
            store = self._store.within(deadline)
            desk = Desk(
                self._settings, store, self._clock, self._run_id, self._identity, self._facts
            )
            answer = desk.carry_out(order, deadline)
        except RunStopped as error:
            answer = Answer(FAILED, STOPPED, str(error))
        except Exception as error:
            answer = Answer.of(error)
            self._log("ERROR", order, "failed", exception=traceback.format_exc())
        if self._stopped.is_set():
            return msgspec.structs.replace(answer, error=STOPPED)
        if not answer.error:
            self._log("INFO", order, f"{order.task}: {answer.status}")
        return answer

    def _log(self, level: str, order: Order, message: str, **more: str) -> None:
        _log(sys.stderr.buffer, level, self._run_id, order, message, **more)


def _read(orders: queue.SimpleQueue[Any], stopped: threading.Event) -> None:
    while (message := receive(sys.stdin.buffer)) is not None:
        if "stop" in message:
            stopped.set()
        else:
            orders.put(message)
    os._exit(0)


def main() -> None:
    """Answer orders until the parent process is gone."""
    answers = answer_stream()
    task = receive(sys.stdin.buffer)
    if task is None:
        return
    orders: queue.SimpleQueue[Any] = queue.SimpleQueue()
    stopped = threading.Event()
    threading.Thread(target=_read, args=(orders, stopped), daemon=True).start()
    memory.tune()
    worker = _Worker(task, stopped)
    send(answers, {"ready": True})
    while True:
        message = orders.get()
        order = msgspec.convert(message["order"], Order)
        answer = worker.answer(order, message["timeout_seconds"])
        send(answers, {"answer": msgspec.to_builtins(answer), "peak_bytes": peak_bytes()})


if __name__ == "__main__":
    main()
