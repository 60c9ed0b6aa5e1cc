"""Reads sources concurrently ahead of their consumer, in order, within a budget of bytes."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import partial
from typing import Protocol

from compactor.model import SourceObject
from compactor.ports import SourceBody
from compactor.s3.limiter import START, Limiter

# A task fetches several neighbours: for 4 KB objects, handing a result from thread to thread
# costs as much as the request.
RUN_OBJECTS = 8
RUN_BYTES = 1024 * 1024
# Number of the first run of RUN_OBJECTS; see _most_objects.
_FULL_FROM = START * (RUN_OBJECTS.bit_length() - 1)

Fetch = Callable[[SourceObject], SourceBody]
#: Starts to read a run.
Submit = Callable[[Sequence[SourceObject]], Future[list[SourceBody]]]


class Permits(Protocol):
    """Permits for runs of requests."""

    def permit(self, requests: int) -> AbstractContextManager[None]:
        """Return a context that holds a permit while ``requests`` requests are made in sequence."""
        ...


class RunReader(Protocol):
    """Reads runs of sources itself, or leaves them to the threads of :func:`read_ahead`."""

    def submit(self, sources: Sequence[SourceObject], /) -> Future[list[SourceBody]]:
        """Start to read a run."""
        ...

    def close(self) -> None:
        """Abandon the runs in flight."""
        ...


def read_ahead(
    sources: Iterable[SourceObject],
    fetch: Fetch,
    *,
    threads: int,
    budget_bytes: int,
    permits: Permits | None = None,
    stopped: threading.Event | None = None,
    run_bytes: int = RUN_BYTES,
    quick: Callable[[Submit], RunReader | None] | None = None,
) -> Iterator[SourceBody]:
    """Yield bodies in the order of ``sources``.

    At most ``budget_bytes`` of listed size, but at least one run, are in flight or waiting, so
    memory is bounded however slow a request or the consumer is. A run has at most ``run_bytes``,
    or one source. ``stopped`` is set once no more is wanted; reads in flight need not finish then.
    ``quick`` makes a reader that needs no thread per run, and leaves the rest to the threads here.
    """
    runs = _runs(sources, run_bytes)
    permits = permits or Limiter(threads)
    stopped = stopped or threading.Event()
    fetch_run = partial(_fetch_run, fetch, permits, stopped)
    pool = ThreadPoolExecutor(threads, thread_name_prefix="read")
    submit: Submit = partial(pool.submit, fetch_run)
    reader = quick(submit) if quick is not None else None
    if reader is not None:
        submit = reader.submit
    waiting: deque[tuple[int, Future[list[SourceBody]]]] = deque()
    held = 0
    try:
        following = next(runs, None)
        while following is not None or waiting:
            while following is not None and (not waiting or held < budget_bytes):
                size, sources_of_run = following
                waiting.append((size, submit(sources_of_run)))
                held += size
                following = next(runs, None)
            size, future = waiting.popleft()
            yield from future.result()
            held -= size
    finally:
        stopped.set()
        if reader is not None:
            reader.close()
        pool.shutdown(wait=True, cancel_futures=True)


def _fetch_run(
    fetch: Fetch, permits: Permits, stopped: threading.Event, sources: Sequence[SourceObject]
) -> list[SourceBody]:
    with permits.permit(len(sources)):
        return [fetch(source) for source in sources if not stopped.is_set()]


def pieces_ahead(
    pieces: Iterable[Callable[[], bytes]], ahead: int, stopped: threading.Event
) -> Iterator[bytes]:
    """Yield results in order, requesting ``ahead`` of them before they are needed.

    ``stopped`` is set once no more is wanted.
    """
    pool = ThreadPoolExecutor(ahead, thread_name_prefix="range")
    waiting: deque[Future[bytes]] = deque()
    try:
        for piece in pieces:
            waiting.append(pool.submit(piece))
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        stopped.set()
        pool.shutdown(wait=True, cancel_futures=True)


def _runs(
    sources: Iterable[SourceObject], run_bytes: int
) -> Iterator[tuple[int, list[SourceObject]]]:
    """Yield runs of neighbours, to be fetched sequentially, each with its size in bytes."""
    run: list[SourceObject] = []
    size, number, most = 0, 0, _most_objects(0)
    for source in sources:
        if run and (len(run) >= most or size + source.size > run_bytes):
            yield size, run
            run, size, number = [], 0, number + 1
            most = _most_objects(number)
        run.append(source)
        size += source.size
    if run:
        yield size, run


def _most_objects(number: int) -> int:
    """Return the maximum number of sources in a run.

    The first runs have one source, because the consumer waits for a complete run; then follow runs
    of two and four. There are as many runs of each length as are read concurrently at the start.
    """
    return 1 << number // START if number < _FULL_FROM else RUN_OBJECTS
