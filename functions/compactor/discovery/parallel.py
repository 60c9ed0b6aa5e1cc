"""Threads that work ahead of their consumer."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

# Enough submitted tasks to keep every thread busy, few enough to keep a long window small.
_AHEAD_PER_WORKER = 4

_In = TypeVar("_In")
_Out = TypeVar("_Out")


class Parallel:
    """Threads that work ahead of the caller by a bounded number of tasks."""

    def __init__(self, workers: int) -> None:
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="discover")
        self.workers = workers
        self._ahead = workers * _AHEAD_PER_WORKER

    def __enter__(self) -> Parallel:
        return self

    def __exit__(self, *error: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def in_order(self, work: Callable[[_In], _Out], inputs: Iterable[_In]) -> Iterator[_Out]:
        """Yield the results in the order of the inputs."""
        running: deque[Future[_Out]] = deque()
        for one in inputs:
            if len(running) >= self._ahead:
                yield running.popleft().result()
            running.append(self._pool.submit(work, one))
        while running:
            yield running.popleft().result()
