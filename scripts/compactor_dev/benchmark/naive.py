"""What people write themselves: three loops that join objects and check nothing.

They read in key order into temporary storage and upload that as one object. No commit, no
ETag, no checksum, no second reader: the least that could be called compaction.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import boto3
import smart_open
from botocore.config import Config

from compactor_dev.benchmark.task import Started, Task

_THREADS = 64


def one_at_a_time(client: Any, task: Task) -> None:
    """The loop of the pattern this project implements: GET, append, and at the end upload."""
    with _joined(task).open("ab") as joined:
        for key in _keys(client, task):
            joined.write(client.get_object(Bucket=task.source_bucket, Key=key)["Body"].read())
    client.upload_file(str(_joined(task)), task.bucket, task.output_key)


def threads(client: Any, task: Task) -> None:
    """The same with as many requests at once as one process of boto3 gains from."""

    def read(key: str) -> bytes:
        body: bytes = client.get_object(Bucket=task.source_bucket, Key=key)["Body"].read()
        return body

    with _joined(task).open("ab") as joined, ThreadPoolExecutor(_THREADS) as pool:
        keys = list(_keys(client, task))
        # Bounded, because map would read everything ahead of a slow writer.
        for start in range(0, len(keys), 1_000):
            joined.writelines(pool.map(read, keys[start : start + 1_000]))
    client.upload_file(str(_joined(task)), task.bucket, task.output_key)


def smart(client: Any, task: Task) -> None:
    """smart-open from source to source, one stream after the other."""
    transport = {"client": client}
    target = f"s3://{task.bucket}/{task.output_key}"
    with smart_open.open(target, "wb", compression="disable", transport_params=transport) as output:
        for key in _keys(client, task):
            source = f"s3://{task.source_bucket}/{key}"
            with smart_open.open(
                source, "rb", compression="disable", transport_params=transport
            ) as stream:
                shutil.copyfileobj(stream, output)


WAYS: Mapping[str, Callable[[Any, Task], None]] = {
    "seed": one_at_a_time,
    "boto3": threads,
    "smart-open": smart,
}


def _client(task: Task) -> Any:
    config = Config(max_pool_connections=_THREADS, retries={"mode": "standard", "max_attempts": 5})
    return boto3.client("s3", endpoint_url=task.endpoint_url, config=config)


def _keys(client: Any, task: Task) -> Iterator[str]:
    pages = client.get_paginator("list_objects_v2").paginate(
        Bucket=task.source_bucket, Prefix=task.source_prefix
    )
    for page in pages:
        for entry in page.get("Contents", ()):
            yield entry["Key"]


def _joined(task: Task) -> Path:
    return Path(task.scratch) / "joined"


if __name__ == "__main__":
    given = Task.from_json(sys.argv[2])
    made = _client(given)
    begun = Started.now()
    WAYS[sys.argv[1]](made, given)
    given.tell(begun)
