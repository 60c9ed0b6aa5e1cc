"""A worker process that works on partitions, one at a time.

Started by :mod:`compactor_cli.machine.partition_workers`. The first message on standard input
describes the run; orders follow. Answers are written to the original standard output; what is
printed goes to standard error, which is the log. When standard input closes, the parent is gone and
this process exits immediately, which the order of writes makes safe at any instant.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import msgspec

from compactor.clock import SystemClock
from compactor.log.process_cache import SeenState
from compactor.orchestration.messages import FAILED, Answer, Desk, Order
from compactor.orchestration.partition_retry import STOPPED
from compactor.probe.probe import traits_for
from compactor.process import memory
from compactor.s3.requests import RequestCounter
from compactor.s3.store import S3Store, make_client
from compactor.settings.settings import Settings
from compactor_cli.machine.child import peak_bytes
from compactor_cli.machine.partition_log import log_line
from compactor_cli.machine.wire import answer_stream, receive, send

#: Requests before which a stopped run ends. Writes continue, so a commit is also published.
_MAY_END = frozenset({"GET", "HEAD", "LIST"})


class RunStopped(Exception):
    """Ends the work on a partition before its next read request."""


class StoppableRequests(RequestCounter):
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


class CallDeadline:
    """The deadline of one call; it passes early when the run is stopped.

    Args:
        seconds: from now on.
        stopped: set when the run is stopped.
    """

    def __init__(self, seconds: float, stopped: threading.Event) -> None:
        self._ends_at = time.monotonic() + seconds
        self._stopped = stopped

    def remaining_seconds(self) -> float:
        """Seconds until this process is killed."""
        return 0.0 if self._stopped.is_set() else self._ends_at - time.monotonic()


class _Worker:
    """Carries out orders for one run.

    Args:
        task: settings, run id and endpoint.
        stopped: set when the run is stopped.
    """

    def __init__(self, task: Mapping[str, Any], stopped: threading.Event) -> None:
        self._settings = Settings.from_input(task["settings"])
        self._run_id: str = task["run_id"]
        self._stopped = stopped
        self._seen = SeenState()
        limits = self._settings.limits
        self._store = S3Store(
            make_client(task["endpoint_url"], connections=limits.reads),
            threads=limits.reads,
            budget_bytes=limits.read_ahead_bytes,
        )
        self._store.requests = StoppableRequests(stopped)

    @cached_property
    def _trusted(self) -> S3Store:
        """The store, with the traits that the probe of this run found."""
        now = SystemClock().now()
        return self._store.with_traits(traits_for(self._settings.state, self._store, now))

    def answer(self, message: Mapping[str, Any]) -> Answer:
        """Carry out one order; an error becomes its answer."""
        order = msgspec.convert(message["order"], Order)
        deadline = CallDeadline(message["timeout_seconds"], self._stopped)
        try:
            store = self._trusted.within(deadline)
            desk = Desk(self._settings, store, SystemClock(), self._run_id, self._seen)
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
        log_line(sys.stderr.buffer, level, self._run_id, order, message, **more)


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
        answer = worker.answer(orders.get())
        send(answers, {"payload": msgspec.to_builtins(answer), "peak_bytes": peak_bytes()})


if __name__ == "__main__":
    main()
