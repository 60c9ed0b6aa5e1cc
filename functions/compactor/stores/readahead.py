"""Read sources concurrently ahead of their consumer, in order, within a budget of bytes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from compactor.model import SourceObject
from compactor.ports import SourceBody

# One task fetches a few neighbours: with 4 KB objects the hand-over between threads costs
# as much as the request itself.
RUN_OBJECTS = 8
RUN_BYTES = 1024 * 1024

Fetch = Callable[[SourceObject], SourceBody]


def read_ahead(
    sources: Iterable[SourceObject], fetch: Fetch, *, threads: int, budget_bytes: int
) -> Iterator[SourceBody]:
    """Bodies in the order of ``sources``.

    At most ``budget_bytes`` of listed size (but always one run) are fetched or waiting, so
    memory stays bounded however slow one request or the consumer is.
    """
    runs = _runs(sources)
    pool = ThreadPoolExecutor(threads, thread_name_prefix="read")
    waiting: deque[tuple[int, Future[list[SourceBody]]]] = deque()
    held = 0
    try:
        following = next(runs, None)
        while following is not None or waiting:
            while following is not None and (not waiting or held < budget_bytes):
                size = sum(source.size for source in following)
                waiting.append((size, pool.submit(_fetch_run, fetch, following)))
                held += size
                following = next(runs, None)
            size, future = waiting.popleft()
            yield from future.result()
            held -= size
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _fetch_run(fetch: Fetch, sources: Sequence[SourceObject]) -> list[SourceBody]:
    return [fetch(source) for source in sources]


def _runs(sources: Iterable[SourceObject]) -> Iterator[list[SourceObject]]:
    run: list[SourceObject] = []
    size = 0
    for source in sources:
        if run and (len(run) >= RUN_OBJECTS or size + source.size > RUN_BYTES):
            yield run
            run, size = [], 0
        run.append(source)
        size += source.size
    if run:
        yield run
