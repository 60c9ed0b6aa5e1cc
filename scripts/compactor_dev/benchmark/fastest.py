"""The fastest plain client: obstore in threads, for what a copy without any checks can reach.

No ETag, no retry of ours, no checksum, no commit; keys as obstore lists them.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import obstore
from obstore.store import S3Store

from compactor_dev.benchmark.task import Started, Task

THREADS = 256
# Neighbours in one task of a thread, as our own worker reads them.
_RUN = 8
RUNS_AHEAD = 512


def join(task: Task) -> None:
    """GET everything in key order into one local object, then upload that."""
    source, target = store(task, task.source_bucket), store(task, task.bucket)
    joined = Path(task.scratch) / "joined"
    with joined.open("wb") as sink, ThreadPoolExecutor(THREADS) as pool:
        waiting: deque[Future[list[obstore.Bytes]]] = deque()
        for run in runs(source, task.source_prefix):
            waiting.append(pool.submit(_read, source, run))
            if len(waiting) > RUNS_AHEAD:
                sink.writelines(waiting.popleft().result())
        for reading in waiting:
            sink.writelines(reading.result())
    obstore.put(target, task.output_key, joined)


def _read(source: S3Store, keys: list[str]) -> list[obstore.Bytes]:
    return [obstore.get(source, key).bytes() for key in keys]


def runs(source: S3Store, prefix: str) -> Iterator[list[str]]:
    """Keys below a prefix as obstore lists them, a few neighbours at a time."""
    for page in obstore.list(source, prefix, chunk_size=1_000):
        keys = [one["path"] for one in page]
        for start in range(0, len(keys), _RUN):
            yield keys[start : start + _RUN]


def store(task: Task, bucket: str) -> S3Store:
    """Obstore's store of a bucket, by the lane of a task."""
    return S3Store(
        bucket,
        endpoint=task.endpoint_url,
        region=os.environ["AWS_DEFAULT_REGION"],
        access_key_id=os.environ["AWS_ACCESS_KEY_ID"],
        secret_access_key=os.environ["AWS_SECRET_ACCESS_KEY"],
        virtual_hosted_style_request=False,
        client_options={"allow_http": True, "pool_max_idle_per_host": "512"},
    )


if __name__ == "__main__":
    begun = Started.now()
    given = Task.from_json(sys.argv[1])
    join(given)
    given.tell(begun)
