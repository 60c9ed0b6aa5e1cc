"""Compressed sources are inflated by a thread of their own, a few ahead of the one that is placed.

The thread that places them has the interpreter lock for most of its time; inflating needs none.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from compactor.encoding.codecs import detect_compression
from compactor.model import Compression
from compactor.outputs.plain_content import PlainContent, read
from compactor.ports import SourceBody
from compactor.process.processors import processors
from compactor.settings.settings import Settings

# Each holds up to ``whole_bytes`` of plain content.
_AHEAD = 4
# Of fewer stored bytes handing over to another thread takes as long as inflating.
_LEAST_BYTES = 8 << 10

#: The plain content of a source, once; raises what :func:`.plain_content.read` raises.
Plain = Callable[[], PlainContent]


def inflated(
    bodies: Iterable[SourceBody], settings: Settings
) -> Iterator[tuple[SourceBody, Plain]]:
    """The same bodies in the same order, each with what gives its plain content.

    What ends the bodies early is raised behind the last one that came.

    Args:
        bodies: as the store handed them over.
        settings: of the run.
    """
    if processors() < 2:
        yield from ((body, partial(read, body, settings)) for body in bodies)
        return
    pool = ThreadPoolExecutor(1, thread_name_prefix="inflate")
    waiting: deque[tuple[SourceBody, Plain]] = deque()
    try:
        for body in bodies:
            if _is_worth_it(body):
                waiting.append((body, pool.submit(read, body, settings).result))
            elif waiting:
                waiting.append((body, partial(read, body, settings)))
            else:
                yield body, partial(read, body, settings)
            if len(waiting) > _AHEAD:
                yield waiting.popleft()
        yield from waiting
    except Exception:
        yield from waiting
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _is_worth_it(body: SourceBody) -> bool:
    content = body.content
    if content is None or len(content) < _LEAST_BYTES:
        return False
    return detect_compression(content) is not Compression.NONE
