"""The loop that the worker is compared with: ``python -m compactor_dev.bench.loop EVENT``.

The fastest plain client, obstore in threads, reads everything in key order into one local file and
uploads it: no ETag, no checksum, no commit. The remaining difference to the worker is the cost of
these, of proving each record, and of encoding outputs.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import Any

import obstore
from obstore.store import S3Store

from compactor_dev.bench.handler import peak_bytes

_THREADS = 256
# Consecutive objects per task of a thread.
_RUN = 8
_PAGES_AHEAD = 4


def main() -> None:
    """Join the sources of the event in the first argument."""
    event = json.loads(sys.argv[1])
    ready = time.monotonic()
    bucket, _, prefix = event["settings"]["s3_destination_uri"][5:].partition("/")
    with tempfile.NamedTemporaryFile() as joined:
        joined.writelines(_bodies(event["partition"]))
        joined.seek(0)
        obstore.put(_store(bucket), f"{prefix}joined", joined)
    print(json.dumps({"ready": ready, "peak_bytes": peak_bytes()}))


def _bodies(partition: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the bodies of all sources in key order, read by many threads."""
    source = _store(partition["bucket"])

    def read_run(keys: list[str]) -> list[Any]:
        return [obstore.get(source, key).bytes() for key in keys]

    with ThreadPoolExecutor(_THREADS) as pool:
        pages: deque[Iterator[list[Any]]] = deque()
        for page in obstore.list(source, partition["prefix"], chunk_size=1_000):
            keys = [entry["path"] for entry in page]
            runs = [keys[start : start + _RUN] for start in range(0, len(keys), _RUN)]
            pages.append(pool.map(read_run, runs))
            if len(pages) > _PAGES_AHEAD:
                yield from chain.from_iterable(pages.popleft())
        for bodies in pages:
            yield from chain.from_iterable(bodies)


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
