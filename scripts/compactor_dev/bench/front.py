"""An S3 with latency: ``bench.front UPSTREAM LATENCY_MS LOG CERTIFICATE BUCKET …``.

The objects of the named buckets, which must not change, are read into memory once and served from
there, so that the clients are measured and not the embedded S3 upstream. All other requests are
passed upstream. Each response is delayed by the latency. With the certificate in the directory, TLS
is served too. Prints its ports and serves until standard input closes; each GET, HEAD and LIST of
these buckets is a line in the log (see :func:`requests_of`).
"""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import boto3
import urllib3

from compactor_dev.bench import certificate

_END = b"\r\n\r\n"
_LAST_CHUNK = b"\r\n0\r\n\r\n"
_THREADS = 16
# Response headers that are kept, besides the length.
_KEPT = ("etag", "last-modified", "content-type", "accept-ranges")


class Requests(NamedTuple):
    """Counts of requests, bytes of responses to GETs, and the maximum of GETs in flight."""

    gets: int = 0
    heads: int = 0
    lists: int = 0
    bytes: int = 0
    most_gets: int = 0


def requests_of(lines: list[str]) -> Requests:
    """Count the lines of the log: ``kind, begun, ended, bytes``, separated by tabs."""
    counts = {"GET": 0, "HEAD": 0, "LIST": 0}
    size = in_flight = most = 0
    moments: list[tuple[float, int]] = []
    for line in lines:
        kind, begun, ended, sent = line.split("\t")
        counts[kind] += 1
        size += int(sent)
        if kind == "GET":
            moments += [(float(begun), 1), (float(ended), -1)]
    for _, step in sorted(moments):
        in_flight += step
        most = max(most, in_flight)
    return Requests(counts["GET"], counts["HEAD"], counts["LIST"], size, most)


class Kept(NamedTuple):
    """An object in memory: the headers of its response, and its body."""

    head: bytes
    body: bytes


class _Front:
    """State shared by all connections."""

    def __init__(self, upstream: str, latency_ms: float, log: Path) -> None:
        self.host, _, port = upstream.partition("://")[2].partition(":")
        self.port = int(port)
        self.upstream = upstream
        self.latency = latency_ms / 1000
        self.objects: dict[str, Kept] = {}
        self.buckets: tuple[str, ...] = ()
        self._log = log.open("w", encoding="utf-8", buffering=1)

    def load(self, buckets: list[str]) -> None:
        """Read all objects of these buckets."""
        self.buckets = tuple(buckets)
        client: Any = boto3.client("s3", endpoint_url=self.upstream)
        pages = client.get_paginator("list_objects_v2")
        with (
            urllib3.PoolManager(maxsize=_THREADS) as http,
            ThreadPoolExecutor(_THREADS) as pool,
        ):

            def read(bucket: str, key: str) -> None:
                answer = http.request("GET", f"{self.upstream}/{bucket}/{key}")
                headers, body = answer.headers, answer.data
                if answer.status != 200:
                    # Only objects with a checksum need signed requests; boto3 is slow.
                    found = client.get_object(Bucket=bucket, Key=key)
                    headers = found["ResponseMetadata"]["HTTPHeaders"]
                    body = found["Body"].read()
                kept = [(name, headers[name]) for name in _KEPT if name in headers]
                self.objects[f"/{bucket}/{key}"] = _kept(kept, body)

            for bucket in buckets:
                for page in pages.paginate(Bucket=bucket):
                    keys = [one["Key"] for one in page.get("Contents", ())]
                    list(pool.map(read, [bucket] * len(keys), keys))

    def answer(self, method: str, target: str, headers: bytes) -> tuple[str, bytes] | None:
        """Return kind and bytes of a response from memory; None to pass the request upstream."""
        path, _, query = target.partition("?")
        path = unquote(path)
        kept = self.objects.get(path)
        if kept is None or (query and query != "x-id=GetObject"):
            return None
        if method == "HEAD":
            return "HEAD", b"HTTP/1.1 200 OK\r\n" + kept.head
        place = headers.lower().find(b"\r\nrange: bytes=")
        if place < 0:
            return "GET", b"HTTP/1.1 200 OK\r\n" + kept.head + kept.body
        return "GET", _ranged(kept, headers[place + 15 :].partition(b"\r\n")[0].decode())

    def note(self, kind: str, begun: float, sent: int) -> None:
        """Log a response that was just sent."""
        self._log.write(f"{kind}\t{begun:.6f}\t{time.monotonic():.6f}\t{sent}\n")


def _kept(headers: list[tuple[str, str]], body: bytes) -> Kept:
    lines = [*headers, ("Content-Length", str(len(body)))]
    head = "".join(f"{name}: {value}\r\n" for name, value in lines) + "\r\n"
    return Kept(head.encode("latin-1"), body)


def _ranged(kept: Kept, wanted: str) -> bytes:
    first, _, last = wanted.partition("-")
    size = len(kept.body)
    begin = int(first) if first else max(0, size - int(last))
    end = min(size, int(last) + 1) if first and last else size
    part = kept.body[begin:end]
    head = kept.head.rpartition(b"Content-Length:")[0]
    range_lines = (
        f"Content-Range: bytes {begin}-{end - 1}/{size}\r\nContent-Length: {len(part)}\r\n\r\n"
    )
    return b"HTTP/1.1 206 Partial Content\r\n" + head + range_lines.encode() + part


class _Connection(asyncio.Protocol):
    """A client's connection: answers from memory, or passes requests to its own upstream one."""

    def __init__(self, front: _Front) -> None:
        self._front = front
        self._loop = asyncio.get_running_loop()
        self._buffer = b""
        # Remaining bytes of a request that is passed upstream; -1 for a chunked one.
        self._missing = 0
        self._upstream: asyncio.Transport | None = None
        self._opening: asyncio.Task[None] | None = None
        self._unsent: list[bytes] = []
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport of a new client."""
        self._transport = transport

    def connection_lost(self, _: Exception | None) -> None:
        """Close the upstream connection when the client disconnects."""
        if self._upstream is not None:
            self._upstream.close()

    def data_received(self, data: bytes) -> None:
        """Handle requests, or the rest of one."""
        if self._missing:
            self._pass(data)
            return
        self._buffer += data
        while (end := self._buffer.find(_END)) >= 0 and not self._missing:
            head, rest = self._buffer[: end + 2], self._buffer[end + 4 :]
            method, target, _ = head[: head.find(b"\r\n")].decode("latin-1").split(" ")
            answer = self._front.answer(method, target, head)
            if answer is None:
                self._buffer = b""
                self._begin_passing(method, target, head + b"\r\n", rest)
                return
            self._buffer = rest
            self._later(self._sent, answer[0], time.monotonic(), answer[1])

    def _sent(self, kind: str, begun: float, answer: bytes) -> None:
        self._transport.write(answer)
        self._front.note(kind, begun, len(answer) if kind == "GET" else 0)

    def _later(self, call: Callable[..., object], *given: Any) -> None:
        if self._front.latency:
            self._loop.call_later(self._front.latency, call, *given)
        else:
            call(*given)

    def _begin_passing(self, method: str, target: str, head: bytes, body: bytes) -> None:
        lower = head.lower()
        place = lower.find(b"\r\ncontent-length:")
        if b"\r\ntransfer-encoding: chunked" in lower:
            self._missing = -1
        elif place >= 0:
            self._missing = int(lower[place + 17 :].partition(b"\r\n")[0])
        path = unquote(target.partition("?")[0]).strip("/")
        if method == "GET" and path in self._front.buckets:
            self._front.note("LIST", time.monotonic(), 0)
        self._send_upstream(head)
        if body:
            self._pass(body)

    def _pass(self, data: bytes) -> None:
        if self._missing > 0:
            self._missing -= len(data)
        elif data.endswith(_LAST_CHUNK) or data == _LAST_CHUNK[2:]:
            self._missing = 0
        self._send_upstream(data)

    def _send_upstream(self, data: bytes) -> None:
        if self._upstream is not None and not self._upstream.is_closing():
            self._upstream.write(data)
            return
        self._unsent.append(data)
        if self._opening is None:
            self._opening = self._loop.create_task(self._open())

    async def _open(self) -> None:
        front = self._front
        self._upstream, _ = await self._loop.create_connection(
            lambda: _Upstream(self), front.host, front.port
        )
        self._upstream.write(b"".join(self._unsent))
        self._unsent, self._opening = [], None

    def answered(self, data: bytes) -> None:
        """Forward bytes of a response from upstream."""
        self._later(self._transport.write, data)

    def ended(self) -> None:
        """Close the client's connection after upstream closed, which may end its response."""
        self._later(self._transport.close)


class _Upstream(asyncio.Protocol):
    def __init__(self, client: _Connection) -> None:
        self._client = client

    def data_received(self, data: bytes) -> None:
        self._client.answered(data)

    def connection_lost(self, _: Exception | None) -> None:
        self._client.ended()


async def _serve(front: _Front, trusted: str) -> None:
    loop = asyncio.get_running_loop()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    files = certificate.files(Path(trusted))
    context.load_cert_chain(files.chain, files.key)
    ports = []
    for one in (None, context):
        server = await loop.create_server(
            lambda: _Connection(front), "127.0.0.1", 0, ssl=one, backlog=4_096
        )
        ports.append(server.sockets[0].getsockname()[1])
    print(json.dumps(ports), flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


def main() -> None:
    """Serve until standard input closes."""
    upstream, latency_ms, log, trusted, *buckets = sys.argv[1:]
    front = _Front(upstream, float(latency_ms), Path(log))
    front.load(buckets)
    asyncio.run(_serve(front, trusted))


if __name__ == "__main__":
    main()
