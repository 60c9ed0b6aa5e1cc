"""Tags of sources whose answers say that there are some, asked for ahead of their consumer."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from compactor.ports import SourceBody
from compactor.sizes import MIB

_CONCURRENT = 64
# So many bodies wait for the tags of the first at most, and so many bytes of them.
_MOST_WAITING = 256
_MOST_WAITING_BYTES = 16 * MIB

_Waiting = SourceBody | Future[SourceBody]


def with_tags(
    bodies: Iterable[SourceBody], tagged: Callable[[SourceBody], SourceBody]
) -> Iterator[SourceBody]:
    """The bodies in their order, each with its tags; those without any pass as they are.

    Args:
        bodies: whose attributes say whether there are tags.
        tagged: asks for those of one; runs in several threads.
    """
    waiting: deque[tuple[_Waiting, int]] = deque()
    waiting_bytes = 0
    pool: ThreadPoolExecutor | None = None
    try:
        for body in bodies:
            attributes = body.attributes
            has_tags = attributes is not None and attributes.tags is None
            if not has_tags and not waiting:
                yield body
                continue
            if has_tags and pool is None:
                pool = ThreadPoolExecutor(_CONCURRENT, thread_name_prefix="tags")
            size = len(body.content or b"")
            one = pool.submit(tagged, body) if has_tags and pool is not None else body
            waiting.append((one, size))
            waiting_bytes += size
            while len(waiting) > _MOST_WAITING or waiting_bytes > _MOST_WAITING_BYTES:
                one, size = waiting.popleft()
                waiting_bytes -= size
                yield _now(one)
        while waiting:
            yield _now(waiting.popleft()[0])
    finally:
        if pool is not None:
            pool.shutdown(cancel_futures=True)


def _now(one: _Waiting) -> SourceBody:
    return one.result() if isinstance(one, Future) else one
