"""The loop that the worker is compared with: ``python -m compactor_dev.bench.loop TASK``.

The fastest plain client, obstore in threads, reads everything in key order into one local file and
uploads it: no ETag, no checksum, no commit. The remaining difference to the worker is the cost of
these, of proving each record, and of encoding outputs.
"""

from __future__ import annotations

import json
import os
import sys
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import obstore
from obstore.store import S3Store

from compactor_dev.bench.handler import peak_bytes, since_the_start

_THREADS = 256
# Consecutive objects per task of a thread.
_RUN = 8
_RUNS_AHEAD = 512


def main() -> None:
    """Carry out the task; the result has the time of the start."""
    begun = since_the_start()
    task = json.loads(sys.argv[1])
    joined = Path(task["scratch"]) / "joined"
    with joined.open("wb") as sink:
        sink.writelines(_bodies(task))
    obstore.put(_store(task["bucket"]), f"{task['prefix']}joined{task['extension']}", joined)
    result = {**begun, "peak_bytes": peak_bytes()}
    Path(task["answer"]).write_text(json.dumps(result), encoding="utf-8")


def _bodies(task: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the bodies of all sources in key order, read by many threads."""
    source = _store(task["source_bucket"])

    def read_run(keys: list[str]) -> list[Any]:
        return [obstore.get(source, key).bytes() for key in keys]

    with ThreadPoolExecutor(_THREADS) as pool:
        waiting: deque[Future[list[Any]]] = deque()
        for page in obstore.list(source, task["source_prefix"], chunk_size=1_000):
            keys = [entry["path"] for entry in page]
            for start in range(0, len(keys), _RUN):
                waiting.append(pool.submit(read_run, keys[start : start + _RUN]))
                if len(waiting) > _RUNS_AHEAD:
                    yield from waiting.popleft().result()
        for reading in waiting:
            yield from reading.result()


def _store(bucket: str) -> S3Store:
    return S3Store(
        bucket,
        endpoint=os.environ["AWS_ENDPOINT_URL_S3"],
        region=os.environ["AWS_DEFAULT_REGION"],
        access_key_id=os.environ["AWS_ACCESS_KEY_ID"],
        secret_access_key=os.environ["AWS_SECRET_ACCESS_KEY"],
        virtual_hosted_style_request=False,
        client_options={"allow_http": True, "pool_max_idle_per_host": "512"},
    )


if __name__ == "__main__":
    main()
