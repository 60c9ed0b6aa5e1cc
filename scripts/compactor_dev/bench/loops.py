"""Loops that the worker is compared with: ``python -m compactor_dev.bench.loops NAME TASK``.

``naive`` is the straightforward solution, one object at a time. ``loop`` is the fastest plain
client, obstore in threads: no ETag, no checksum, no commit. ``proving`` adds the cost of
verification and encoding, without any of the worker's code: without TLS bodies are compared with
their ETags, gzip is decompressed, each record is parsed once, everything is counted and
checksummed, and gzip outputs are encoded at the worker's level. It has no order of writes, memory
limit, retries, commit or second read: the remaining difference to the worker is the cost of these.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any

import boto3
import msgspec
import obstore
from isal import isal_zlib
from obstore.store import S3Store
from zlib_ng import zlib_ng

from compactor_dev.bench.either import peak_bytes, since_the_start

_THREADS = 256
# Consecutive objects per task of a thread.
_RUN = 8
_RUNS_AHEAD = 512
_GZIP = 31  # zlib's wbits: a 32 KiB window with gzip header and trailer
_LEVEL = 6
# Maximum blocks waiting for the encoder.
_AHEAD = 4
_BLOCK_BYTES = 1 << 20
_Task = Mapping[str, Any]


class _Object(msgspec.Struct):
    """Any JSON object; parsed, but not kept."""


class _Trail(msgspec.Struct):
    Records: list[msgspec.Raw]


_objects = msgspec.json.Decoder(list[_Object])
_object = msgspec.json.Decoder(_Object)
_trail = msgspec.json.Decoder(_Trail)


def naive(task: _Task) -> None:
    """GET and append one object after the other, then upload the file."""
    client: Any = boto3.client("s3", endpoint_url=task["endpoint_url"])
    pages = client.get_paginator("list_objects_v2").paginate(
        Bucket=task["source_bucket"], Prefix=task["source_prefix"]
    )
    joined = Path(task["scratch"]) / "joined"
    with joined.open("wb") as sink:
        for page in pages:
            for one in page.get("Contents", ()):
                found = client.get_object(Bucket=task["source_bucket"], Key=one["Key"])
                sink.write(found["Body"].read())
    client.upload_file(str(joined), task["bucket"], _output_key(task))


def loop(task: _Task) -> None:
    """GET everything in key order into one local file, then upload it."""
    joined = Path(task["scratch"]) / "joined"
    with joined.open("wb") as sink:
        sink.writelines(_bodies(task, lambda key, answer: answer.bytes()))
    obstore.put(_store(task, task["bucket"]), _output_key(task), joined)


def proving(task: _Task) -> None:
    """As :func:`loop`, with verification and encoding."""
    read = _proved if task["endpoint_url"].startswith("http://") else _whole
    joined, proof = Path(task["scratch"]) / "joined", Proof()
    with joined.open("wb") as file:
        sink = Sink(file, encoded=task["extension"].endswith(".gz"))
        for stored in _bodies(task, read):
            packed = stored.startswith(b"\x1f\x8b")
            sink.write(proof.take(isal_zlib.decompress(stored, _GZIP) if packed else stored))
        sink.write(proof.closing)
        sink.close()
    obstore.put(_store(task, task["bucket"]), _output_key(task), joined)


def _output_key(task: _Task) -> str:
    return f"{task['prefix']}joined{task['extension']}"


def _whole(key: str, answer: Any) -> bytes:
    return bytes(answer.bytes())


def _proved(key: str, answer: Any) -> bytes:
    body = bytes(answer.bytes())
    named = str(answer.meta["e_tag"]).strip('"')
    if hashlib.md5(body, usedforsecurity=False).hexdigest() != named:
        raise ValueError(f"{key} does not match its ETag")
    return body


def _bodies(task: _Task, read: Callable[[str, Any], Any]) -> Iterator[Any]:
    """Yield the bodies of all sources in key order, read by many threads."""
    source = _store(task, task["source_bucket"])

    def read_run(keys: list[str]) -> list[Any]:
        return [read(key, obstore.get(source, key)) for key in keys]

    with ThreadPoolExecutor(_THREADS) as pool:
        waiting: deque[Future[list[Any]]] = deque()
        for page in obstore.list(source, task["source_prefix"], chunk_size=1_000):
            keys = [one["path"] for one in page]
            for start in range(0, len(keys), _RUN):
                waiting.append(pool.submit(read_run, keys[start : start + _RUN]))
                if len(waiting) > _RUNS_AHEAD:
                    yield from waiting.popleft().result()
        for reading in waiting:
            yield from reading.result()


def _store(task: _Task, bucket: str) -> S3Store:
    return S3Store(
        bucket,
        endpoint=task["endpoint_url"],
        region=os.environ["AWS_DEFAULT_REGION"],
        access_key_id=os.environ["AWS_ACCESS_KEY_ID"],
        secret_access_key=os.environ["AWS_SECRET_ACCESS_KEY"],
        virtual_hosted_style_request=False,
        client_options={"allow_http": True, "pool_max_idle_per_host": "512"},
    )


class Proof:
    """Counts and checksums records: lines unchanged, CloudTrail records as one document."""

    def __init__(self) -> None:
        self.records = self.crc32 = 0
        self.closing = b""

    def take(self, content: bytes) -> bytes:
        """Return what a source adds to the output.

        Raises:
            ValueError: a record is incomplete.
        """
        text = content.decode()
        added = self._of_trail(text) if content.startswith(b'{"Records"') else self._lines(content)
        self.crc32 = zlib.crc32(added, self.crc32)
        return added

    def _lines(self, content: bytes) -> bytes:
        found = _objects.decode(b"[%b]" % content.removesuffix(b"\n").replace(b"\n", b","))
        if len(found) != content.count(b"\n"):
            raise ValueError("a line is not a complete record")
        self.records += len(found)
        return content

    def _of_trail(self, text: str) -> bytes:
        records = _trail.decode(text).Records
        for one in records:
            _object.decode(one)
        begin = b"," if self.closing else b'{"Records":['
        self.records, self.closing = self.records + len(records), b"]}"
        return begin + b",".join(records)


class Sink:
    """A local file, encoded in a separate thread."""

    def __init__(self, file: IO[bytes], *, encoded: bool) -> None:
        self._file = file
        self._encoder = zlib_ng.compressobj(_LEVEL, zlib_ng.DEFLATED, _GZIP) if encoded else None
        self._pool = ThreadPoolExecutor(1)
        self._waiting: deque[Future[None]] = deque()
        self._block: list[bytes] = []
        self._bytes = 0

    def write(self, data: bytes) -> None:
        """Add bytes."""
        self._block.append(data)
        self._bytes += len(data)
        if self._bytes >= _BLOCK_BYTES:
            self._pass_on()

    def close(self) -> None:
        """Write the remaining bytes."""
        self._pass_on()
        while self._waiting:
            self._waiting.popleft().result()
        self._pool.shutdown()
        if self._encoder is not None:
            self._file.write(self._encoder.flush())

    def _pass_on(self) -> None:
        block, self._block, self._bytes = self._block, [], 0
        self._waiting.append(self._pool.submit(self._encode, block))
        while len(self._waiting) > _AHEAD:
            self._waiting.popleft().result()

    def _encode(self, block: list[bytes]) -> None:
        for data in block:
            self._file.write(data if self._encoder is None else self._encoder.compress(data))


LOOPS: Mapping[str, Callable[[_Task], None]] = {"naive": naive, "loop": loop, "proving": proving}


def main() -> None:
    """Carry out the task; the result has the time of the start."""
    begun = since_the_start()
    task = json.loads(sys.argv[2])
    LOOPS[sys.argv[1]](task)
    result = {**begun, "peak_bytes": peak_bytes()}
    Path(task["answer"]).write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main()
