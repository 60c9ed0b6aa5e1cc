"""An S3 with latency, which runs within this process for the length of a ``with`` block.

Objects that were put here are served from memory, so that the clients are measured and not a
server. Everything else is passed to moto's server. Each response is delayed by the latency.
"""

from __future__ import annotations

import asyncio
import base64
import bisect
import functools
import hashlib
import http.client
import logging
import os
import threading
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from email.utils import formatdate
from typing import Any, NamedTuple, Self
from urllib.parse import parse_qsl, unquote

import boto3
from moto.server import ThreadedMotoServer

REGION = "us-east-1"
_HEAD_END = b"\r\n\r\n"
_PAGE = 1_000
_THREADS = 16
_DROPPED_HEADERS = frozenset({"connection", "expect", "keep-alive", "transfer-encoding"})
_LAST = "\U0010ffff"


class _Stored(NamedTuple):
    """An object in memory, with its response headers and its entry of a listing."""

    body: bytes
    head: bytes
    entry: str


class Front:
    """A running S3.

    Args:
        latency_ms: delay before each response.

    Attributes:
        url: its endpoint.
        requests: GET, HEAD and LIST of objects in memory so far, and bytes of the GETs.
    """

    def __init__(self, latency_ms: float) -> None:
        self.latency = latency_ms / 1_000
        self.requests: Counter[str] = Counter()
        self.url = ""
        self.pool = ThreadPoolExecutor(_THREADS)
        self._objects: dict[str, _Stored] = {}
        self._keys: dict[str, list[str]] = {}
        self._moto = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        self._loop = asyncio.new_event_loop()

    def __enter__(self) -> Self:
        # One line per request otherwise.
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self._moto.start()
        started = threading.Event()
        threading.Thread(target=self._serve, args=(started,), daemon=True).start()
        started.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._moto.stop()
        self.pool.shutdown()

    @property
    def environment(self) -> Mapping[str, str]:
        """Variables by which AWS clients find it."""
        return {
            "AWS_ENDPOINT_URL_S3": self.url,
            "AWS_ACCESS_KEY_ID": "bench",
            "AWS_SECRET_ACCESS_KEY": "bench",
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "NO_PROXY": "127.0.0.1",
            "no_proxy": "127.0.0.1",
        }

    def client(self) -> Any:
        """Return a client of it."""
        return boto3.client(
            "s3",
            endpoint_url=self.url,
            region_name=REGION,
            aws_access_key_id="bench",
            aws_secret_access_key="bench",  # noqa: S106 - any will do
        )

    def put(self, bucket: str, key: str, body: bytes, modified: float) -> None:
        """Keep an object in memory; a bucket in memory is only read, its keys need no escaping."""
        etag = f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"'
        head = (
            f"ETag: {etag}\r\nLast-Modified: {formatdate(modified, usegmt=True)}\r\n"
            "Content-Type: binary/octet-stream\r\nAccept-Ranges: bytes\r\n"
        )
        listed_time = datetime.fromtimestamp(modified, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        entry = (
            f"<Contents><Key>{key}</Key><LastModified>{listed_time}</LastModified>"
            f"<ETag>{etag}</ETag><Size>{len(body)}</Size>"
            "<StorageClass>STANDARD</StorageClass></Contents>"
        )
        self._objects[f"/{bucket}/{key}"] = _Stored(body, head.encode(), entry)
        bisect.insort(self._keys.setdefault(bucket, []), key)

    def answer(self, method: str, target: str, head: bytes) -> bytes | None:
        """Return the response from memory; None for a request that moto answers."""
        path, _, query = target.partition("?")
        path = unquote(path)
        bucket, _, key = path[1:].partition("/")
        if method == "GET" and bucket in self._keys and not key:
            self.requests["LIST"] += 1
            return self._listing(bucket, dict(parse_qsl(query)))
        stored = self._objects.get(path)
        if stored is None or method not in ("GET", "HEAD"):
            return None
        if query == "tagging":
            return _document("<Tagging><TagSet></TagSet></Tagging>")
        self.requests[method] += 1
        place = head.lower().find(b"\r\nrange: bytes=")
        if place < 0 or method == "HEAD":
            length = b"Content-Length: %d\r\n\r\n" % len(stored.body)
            body = b"" if method == "HEAD" else stored.body
            self.requests["bytes"] += len(body)
            return b"HTTP/1.1 200 OK\r\n" + stored.head + length + body
        answer = _range_answer(stored, head[place + 15 :].partition(b"\r\n")[0].decode())
        self.requests["bytes"] += len(answer)
        return answer

    def forward(self, method: str, target: str, head: bytes, body: bytes) -> bytes:
        """Return moto's response to a request."""
        host, port = self._moto.get_host_and_port()
        connection = http.client.HTTPConnection(host, port)
        connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
        for line in head.decode("latin-1").split("\r\n")[1:-1]:
            name, _, value = line.partition(": ")
            if name.lower() not in _DROPPED_HEADERS:
                connection.putheader(name, value)
        connection.endheaders(body or None)
        answer = connection.getresponse()
        content = answer.read()
        lines = [f"HTTP/1.1 {answer.status} {answer.reason}"]
        lines += [
            f"{name}: {value}"
            for name, value in answer.getheaders()
            if name.lower() not in {*_DROPPED_HEADERS, "content-length"}
        ]
        length = answer.getheader("Content-Length") if method == "HEAD" else str(len(content))
        lines.append(f"Content-Length: {length or 0}")
        connection.close()
        return "\r\n".join(lines).encode("latin-1") + _HEAD_END + content

    def _listing(self, bucket: str, query: Mapping[str, str]) -> bytes:
        """Return a page of ListObjectsV2."""
        keys, prefix = self._keys[bucket], query.get("prefix", "")
        delimiter, limit = query.get("delimiter", ""), int(query.get("max-keys", _PAGE))
        token = query.get("continuation-token", "")
        after = base64.b64decode(token).decode() if token else query.get("start-after", "")
        place = bisect.bisect_right(keys, after) if after else 0
        place = max(place, bisect.bisect_left(keys, prefix))
        entries: list[str] = []
        last = ""
        while place < len(keys) and keys[place].startswith(prefix) and len(entries) < limit:
            key = keys[place]
            cut = key.find(delimiter, len(prefix)) if delimiter else -1
            if cut >= 0:
                common = key[: cut + len(delimiter)]
                entries.append(f"<CommonPrefixes><Prefix>{common}</Prefix></CommonPrefixes>")
                last = common + _LAST
                place = bisect.bisect_right(keys, last)
            else:
                entries.append(self._objects[f"/{bucket}/{key}"].entry)
                last = key
                place += 1
        is_truncated = place < len(keys) and keys[place].startswith(prefix)
        following = ""
        if is_truncated:
            token = base64.b64encode(last.encode()).decode()
            following = f"<NextContinuationToken>{token}</NextContinuationToken>"
        return _document(
            '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"<Name>{bucket}</Name><Prefix>{prefix}</Prefix><MaxKeys>{limit}</MaxKeys>"
            f"<KeyCount>{len(entries)}</KeyCount>"
            f"<IsTruncated>{str(is_truncated).lower()}</IsTruncated>"
            f"{following}{''.join(entries)}</ListBucketResult>"
        )

    def _serve(self, started: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        listening = self._loop.create_server(
            functools.partial(_Connection, self), "127.0.0.1", 0, backlog=4_096
        )
        server = self._loop.run_until_complete(listening)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        started.set()
        self._loop.run_forever()


def _document(xml: str) -> bytes:
    body = f'<?xml version="1.0" encoding="UTF-8"?>{xml}'.encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/xml\r\nContent-Length: {len(body)}"
    return head.encode() + _HEAD_END + body


def _range_answer(stored: _Stored, wanted: str) -> bytes:
    first, _, last = wanted.partition("-")
    size = len(stored.body)
    begin = int(first) if first else max(0, size - int(last))
    end = min(size, int(last) + 1) if first and last else size
    lines = (
        f"Content-Range: bytes {begin}-{end - 1}/{size}\r\nContent-Length: {end - begin}\r\n\r\n"
    )
    head = b"HTTP/1.1 206 Partial Content\r\n" + stored.head + lines.encode()
    return head + stored.body[begin:end]


class _Connection(asyncio.Protocol):
    """A client's connection; requests on it are answered in turn."""

    def __init__(self, front: Front) -> None:
        self._front = front
        self._loop = asyncio.get_running_loop()
        self._buffer = bytearray()
        self._is_continued = False
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        end = self._buffer.find(_HEAD_END)
        if end < 0:
            return
        head = bytes(self._buffer[: end + 2])
        lower = head.lower()
        place = lower.find(b"\r\ncontent-length:")
        length = int(lower[place + 17 :].partition(b"\r\n")[0]) if place >= 0 else 0
        if b"\r\nexpect: 100-continue" in lower and not self._is_continued:
            self._is_continued = True
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if len(self._buffer) < end + 4 + length:
            return
        body = bytes(self._buffer[end + 4 : end + 4 + length])
        del self._buffer[: end + 4 + length]
        self._is_continued = False
        method, target, _ = head.partition(b"\r\n")[0].decode("latin-1").split(" ")
        answer = self._front.answer(method, target, head)
        if answer is not None:
            self._loop.call_later(self._front.latency, self._transport.write, answer)
        else:
            self._loop.create_task(self._pass(method, target, head, body))

    async def _pass(self, method: str, target: str, head: bytes, body: bytes) -> None:
        front = self._front
        forwarded = self._loop.run_in_executor(
            front.pool, front.forward, method, target, head, body
        )
        answer, _ = await asyncio.gather(forwarded, asyncio.sleep(front.latency))
        self._transport.write(answer)
