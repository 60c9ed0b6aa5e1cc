"""An S3 with latency, which runs within this process for the length of a ``with`` block.

Objects that were put here are served from memory, so that the clients are measured and not a
server. Everything else is passed to moto's server. Each response is delayed by the latency.
"""

from __future__ import annotations

import asyncio
import bisect
import hashlib
import logging
import os
import re
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any, NamedTuple, Self
from urllib.parse import parse_qsl, unquote

import boto3
from moto.server import ThreadedMotoServer

# Any credentials will do.
_USER, _REGION = "bench", "us-east-1"
_HEAD_END = b"\r\n\r\n"
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_RANGE = re.compile(rb"\r\nrange: *bytes=(\d*)-(\d*)", re.IGNORECASE)
_EXPECT = re.compile(rb"\r\nexpect: *100-continue", re.IGNORECASE)
_LAST = "\U0010ffff"


class _Stored(NamedTuple):
    """An object in memory, with its response headers and its entry of a listing."""

    body: bytes
    headers: str
    entry: str


class Front:
    """A running S3.

    Args:
        latency_ms: delay before each response.

    Attributes:
        latency: the delay in seconds.
        url: its endpoint.
        requests: number of requests so far.
    """

    def __init__(self, latency_ms: float) -> None:
        self.requests = 0
        self.url = ""
        self.latency = latency_ms / 1_000
        self._objects: dict[str, dict[str, _Stored]] = {}
        self._keys: dict[str, list[str]] = {}
        self._moto = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        self._loop = asyncio.new_event_loop()

    def __enter__(self) -> Self:
        # One line per request otherwise.
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self._moto.start()
        listening = self._loop.create_server(
            lambda: _Connection(self, self._loop), "127.0.0.1", 0, backlog=4_096
        )
        server = self._loop.run_until_complete(listening)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._moto.stop()

    @property
    def environment(self) -> Mapping[str, str]:
        """Variables by which AWS clients find it."""
        return {
            "AWS_ENDPOINT_URL_S3": self.url,
            "AWS_ACCESS_KEY_ID": _USER,
            "AWS_SECRET_ACCESS_KEY": _USER,
            "AWS_REGION": _REGION,
            "AWS_DEFAULT_REGION": _REGION,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "NO_PROXY": "127.0.0.1",
            "no_proxy": "127.0.0.1",
        }

    def bucket(self, name: str) -> Any:
        """Return a bucket of moto's server, as boto3 presents it."""
        service = boto3.resource(
            "s3",
            endpoint_url=self.url,
            region_name=_REGION,
            aws_access_key_id=_USER,
            aws_secret_access_key=_USER,
        )
        return service.Bucket(name)

    def put(self, bucket: str, key: str, body: bytes, modified: float) -> None:
        """Keep an object in memory; a bucket in memory is only read, its keys need no escaping."""
        etag = f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"'
        written = datetime.fromtimestamp(modified, UTC)
        headers = (
            f"ETag: {etag}\r\nLast-Modified: {format_datetime(written, usegmt=True)}\r\n"
            "Content-Type: binary/octet-stream\r\nAccept-Ranges: bytes\r\n"
        )
        entry = (
            f"<Contents><Key>{key}</Key><LastModified>{written:%Y-%m-%dT%H:%M:%S}.000Z"
            f"</LastModified><ETag>{etag}</ETag><Size>{len(body)}</Size>"
            "<StorageClass>STANDARD</StorageClass></Contents>"
        )
        self._objects.setdefault(bucket, {})[key] = _Stored(body, headers, entry)
        bisect.insort(self._keys.setdefault(bucket, []), key)

    def answer(self, head: bytes) -> bytes | None:
        """Return the response from memory; None for a request that moto answers."""
        self.requests += 1
        method, target, _ = head.partition(b"\r\n")[0].decode("latin-1").split(" ")
        path, _, query = target.partition("?")
        bucket, _, key = unquote(path)[1:].partition("/")
        if method == "GET" and bucket in self._objects and not key:
            return self._listing(bucket, dict(parse_qsl(query)))
        stored = self._objects.get(bucket, {}).get(key)
        if stored is None or method not in ("GET", "HEAD"):
            return None
        if query == "tagging":
            # Versions before 2026-11 ask for the tags of each source.
            return _document("<Tagging><TagSet></TagSet></Tagging>")
        return _object_response(stored, head, is_get=method == "GET")

    async def moto_answer(self, request: bytes) -> bytes:
        """Return moto's response to a request."""
        reader, writer = await asyncio.open_connection(*self._moto.get_host_and_port())
        writer.write(_EXPECT.sub(b"", request, count=1))
        response = await reader.read()
        writer.close()
        # Moto's server closes each connection; the client's stays open.
        return response.replace(b"Connection: close\r\n", b"", 1)

    def _listing(self, bucket: str, query: Mapping[str, str]) -> bytes:
        """Return a page of ListObjectsV2."""
        keys, prefix = self._keys[bucket], query.get("prefix", "")
        delimiter, limit = query.get("delimiter", ""), int(query.get("max-keys", "1000"))
        last = query.get("continuation-token") or query.get("start-after", "")
        place = max(bisect.bisect_left(keys, prefix), bisect.bisect_right(keys, last))
        entries: list[str] = []
        while place < len(keys) and keys[place].startswith(prefix) and len(entries) < limit:
            last = keys[place]
            cut = last.find(delimiter, len(prefix)) if delimiter else -1
            if cut >= 0:
                common = last[: cut + len(delimiter)]
                entries.append(f"<CommonPrefixes><Prefix>{common}</Prefix></CommonPrefixes>")
                last = common + _LAST
            else:
                entries.append(self._objects[bucket][last].entry)
            place = bisect.bisect_right(keys, last, place)
        is_truncated = place < len(keys) and keys[place].startswith(prefix)
        token = f"<NextContinuationToken>{last}</NextContinuationToken>" if is_truncated else ""
        return _document(
            '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"<Name>{bucket}</Name><Prefix>{prefix}</Prefix><MaxKeys>{limit}</MaxKeys>"
            f"<KeyCount>{len(entries)}</KeyCount>"
            f"<IsTruncated>{str(is_truncated).lower()}</IsTruncated>"
            f"{token}{''.join(entries)}</ListBucketResult>"
        )


def _document(xml: str) -> bytes:
    body = f'<?xml version="1.0" encoding="UTF-8"?>{xml}'.encode()
    return _response("200 OK", "Content-Type: application/xml\r\n", len(body)) + body


def _response(status: str, headers: str, length: int) -> bytes:
    """Return the response up to its body."""
    return f"HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\n\r\n".encode()


def _object_response(stored: _Stored, head: bytes, *, is_get: bool) -> bytes:
    size = len(stored.body)
    part = _RANGE.search(head) if is_get else None
    if part is None:
        start = _response("200 OK", stored.headers, size)
        return start + stored.body if is_get else start
    first, last = part.groups()
    begin = int(first) if first else max(0, size - int(last))
    end = min(size, int(last) + 1) if first and last else size
    headers = f"{stored.headers}Content-Range: bytes {begin}-{end - 1}/{size}\r\n"
    return _response("206 Partial Content", headers, end - begin) + stored.body[begin:end]


class _Connection(asyncio.Protocol):
    """A client's connection; requests on it are answered in turn."""

    def __init__(self, front: Front, loop: asyncio.AbstractEventLoop) -> None:
        self._front, self._loop = front, loop
        self._buffer = bytearray()
        self._is_continued = False
        self._passing: asyncio.Task[None] | None = None
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        end = self._buffer.find(_HEAD_END)
        if end < 0:
            return
        head = bytes(self._buffer[:end])
        if not self._is_continued and _EXPECT.search(head):
            self._is_continued = True
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        length = _LENGTH.search(head)
        if len(self._buffer) < end + len(_HEAD_END) + int(length[1] if length else 0):
            return
        request = bytes(self._buffer)
        self._buffer.clear()
        self._is_continued = False
        answer = self._front.answer(head)
        if answer is None:
            # Without a reference, the task could be collected before its end.
            self._passing = self._loop.create_task(self._pass(request))
        else:
            self._loop.call_later(self._front.latency, self._transport.write, answer)

    async def _pass(self, request: bytes) -> None:
        await asyncio.sleep(self._front.latency)
        self._transport.write(await self._front.moto_answer(request))
