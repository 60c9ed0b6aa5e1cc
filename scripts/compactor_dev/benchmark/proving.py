"""The bare loop with the work that nobody is spared who proves what is joined.

What no TLS protects is compared with its ETag, gzip is inflated, each record is parsed once, all is
counted and summed, and gzip outputs are encoded at the worker's level. Nothing of that is the
worker's code. There is no order of writes, no limit of memory, no retry, no commit and no second
reading: what lies between this loop and the worker is theirs.
"""

from __future__ import annotations

import hashlib
import sys
import zlib
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import IO

import msgspec
import obstore
from isal import isal_zlib
from obstore.store import S3Store
from zlib_ng import zlib_ng

from compactor_dev.benchmark.fastest import RUNS_AHEAD, THREADS, runs, store
from compactor_dev.benchmark.task import Started, Task

_GZIP = 31  # zlib's wbits: a 32 KiB window with gzip header and trailer
_LEVEL = 6
# Blocks that wait for the encoder.
_AHEAD = 4
_BLOCK_BYTES = 1 << 20


class _Object(msgspec.Struct):
    """Any JSON object, parsed and not kept."""


class _Trail(msgspec.Struct):
    Records: list[msgspec.Raw]


_objects = msgspec.json.Decoder(list[_Object])
_object = msgspec.json.Decoder(_Object)
_trail = msgspec.json.Decoder(_Trail)


class Proved:
    """Records, counted and summed: lines as they are, those of CloudTrail as one document."""

    def __init__(self) -> None:
        self.records = self.crc32 = 0
        self.closing = b""

    def take(self, content: bytes) -> bytes:
        """What a source adds to the output.

        Raises:
            ValueError: a record is not whole.
        """
        text = content.decode()
        added = self._of_trail(text) if content.startswith(b'{"Records"') else self._lines(content)
        self.crc32 = zlib.crc32(added, self.crc32)
        return added

    def _lines(self, content: bytes) -> bytes:
        found = _objects.decode(b"[%b]" % content.removesuffix(b"\n").replace(b"\n", b","))
        if len(found) != content.count(b"\n"):
            raise ValueError("a line is no whole record")
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
    """A local file, encoded by a thread of its own."""

    def __init__(self, file: IO[bytes], *, encoded: bool) -> None:
        self._file = file
        self._encoder = zlib_ng.compressobj(_LEVEL, zlib_ng.DEFLATED, _GZIP) if encoded else None
        self._pool = ThreadPoolExecutor(1)
        self._waiting: deque[Future[None]] = deque()
        self._block: list[bytes] = []
        self._bytes = 0

    def write(self, data: bytes) -> None:
        """Take some bytes."""
        self._block.append(data)
        self._bytes += len(data)
        if self._bytes >= _BLOCK_BYTES:
            self._pass_on()

    def close(self) -> None:
        """Write what is left."""
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


def join(task: Task) -> None:
    """GET everything in key order into one local object, proved, then upload that."""
    source, target = store(task, task.source_bucket), store(task, task.bucket)
    joined, proved = Path(task.scratch) / "joined", Proved()

    with joined.open("wb") as file:
        sink = Sink(file, encoded=task.extension.endswith(".gz"))
        for stored in _bodies(source, task):
            packed = stored.startswith(b"\x1f\x8b")
            content = isal_zlib.decompress(stored, _GZIP) if packed else stored
            sink.write(proved.take(content))
        sink.write(proved.closing)
        sink.close()
    obstore.put(target, task.output_key, joined)


def _bodies(source: S3Store, task: Task) -> Iterator[bytes]:
    is_summed = task.endpoint_url.startswith("http://")
    with ThreadPoolExecutor(THREADS) as pool:
        waiting: deque[Future[list[bytes]]] = deque()
        for run in runs(source, task.source_prefix):
            waiting.append(pool.submit(_read, source, run, is_summed))
            if len(waiting) > RUNS_AHEAD:
                yield from waiting.popleft().result()
        for reading in waiting:
            yield from reading.result()


def _read(source: S3Store, keys: list[str], is_summed: bool) -> list[bytes]:
    return [_get(source, key, is_summed) for key in keys]


def _get(source: S3Store, key: str, is_summed: bool) -> bytes:
    answer = obstore.get(source, key)
    body = bytes(answer.bytes())
    named = str(answer.meta["e_tag"]).strip('"')
    if is_summed and hashlib.md5(body, usedforsecurity=False).hexdigest() != named:
        raise ValueError(f"{key} is not what its ETag says")
    return body


if __name__ == "__main__":
    begun = Started.now()
    given = Task.from_json(sys.argv[1])
    join(given)
    given.tell(begun)
