"""The answers of S3 to the requests of botocore: all but the GET of a source.

Signing, retries and parsing of bodies stay real; sockets, TLS and the parsing of an answer's head
are left out. Sources, which libcurl reads, are in :mod:`tests.scale.bodies`.
"""

from __future__ import annotations

import hashlib
import io
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from botocore.awsrequest import AWSResponse

from tests.scale.keys import LAKE_BUCKET, ROOT, SOURCE_BUCKET, Keys
from tests.scale.meter import Asked, Meter

_DATE = "Sun, 04 Jan 2026 00:00:00 GMT"
_NOT_THERE = "<Error><Code>NoSuchKey</Code><Message>no such key</Message></Error>"
_TAKEN = "<Error><Code>PreconditionFailed</Code><Message>it is there</Message></Error>"


class _Raw(io.BytesIO):
    """A body as urllib3 gives it."""

    def stream(self, amt: int = 65_536, **_: object) -> Iterator[bytes]:
        while piece := self.read(amt):
            yield piece


@dataclass(frozen=True, slots=True)
class _Request:
    method: str
    bucket: str
    key: str
    query: Mapping[str, str]
    headers: Mapping[str, Any]
    body: bytes | memoryview


@dataclass(frozen=True, slots=True)
class Stored:
    """An object of the state, or an output, whose bytes nobody needs."""

    body: bytes
    modified: str
    etag: str

    @classmethod
    def of(cls, body: bytes | memoryview, modified: str) -> Stored:
        """As S3 keeps it."""
        body = bytes(body)
        return cls(body, modified, hashlib.md5(body, usedforsecurity=False).hexdigest())


@dataclass(slots=True)
class Wire:
    """Stands in for the connections of botocore.

    Attributes:
        keys: the sources.
        whole: those whose partitions are to be found, where they are not these.
        stored: all else, by key.
        now: when what is written is dated, ISO 8601.
        page_keys: keys in a page of a listing.
    """

    keys: Keys
    page_keys: int = 1_000
    now: str = "2026-01-04T00:00:00.000Z"
    meter: Meter | None = None
    whole: Keys | None = None
    stored: dict[str, Stored] = field(default_factory=dict)
    _uploads: int = 0
    _sorted: list[str] = field(default_factory=list)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def send(self, request: Any) -> AWSResponse:
        """The answer to a request of botocore."""
        began = time.thread_time()
        body = request.body or b""
        if hasattr(body, "read"):
            body = body.read()
        asked, status, headers, body = self._answer(
            _parsed(request.method, request.url, request.headers, body)
        )
        told: Any = {"Date": _DATE, **headers}
        answer = AWSResponse(request.url, status, told, _Raw(body))
        self._tell(asked, began)
        return answer

    def restore(self, stored: Mapping[str, Stored]) -> None:
        """Let nothing but this be stored."""
        with self._lock:
            self.stored.clear()
            self.stored.update(stored)
            self._sorted = []

    def _tell(self, asked: Asked, began: float) -> None:
        if self.meter is not None:
            self.meter.asked(asked, time.thread_time() - began)

    def paths(self, prefix: str) -> list[str]:
        """Keys of what is stored below a prefix, in order."""
        with self._lock:
            if len(self._sorted) != len(self.stored):
                self._sorted = sorted(self.stored)
            start = bisect_right(self._sorted, prefix) - (prefix in self.stored)
            end = bisect_right(self._sorted, prefix + "\U0010ffff")
            return self._sorted[start:end]

    def _answer(self, one: _Request) -> tuple[Asked, int, dict[str, str], bytes]:
        if one.method == "GET" and one.query.get("list-type") == "2":
            return self._list(one)
        handlers: dict[str, Callable[[_Request], tuple[int, dict[str, str], bytes]]] = {
            "GET": self._get,
            "HEAD": self._get,
            "PUT": self._put,
            "POST": self._post,
        }
        kind = "PUT" if one.method == "POST" else one.method
        about = "state" if one.key.startswith("_compactor/") else one.bucket
        return Asked(kind, about, one.key), *handlers[one.method](one)

    def _list(self, one: _Request) -> tuple[Asked, int, dict[str, str], bytes]:
        prefix = one.query.get("prefix", "")
        about = "level" if "delimiter" in one.query else one.bucket
        if one.bucket == LAKE_BUCKET:
            about = "state" if prefix.startswith("_compactor/") else "lake"
            entries, token = self._list_stored(one, prefix)
        elif "delimiter" in one.query:
            entries, token = self._list_level(one, prefix)
        else:
            entries, token = self._list_sources(one, prefix)
        more = f"<NextContinuationToken>{token}</NextContinuationToken>" if token else ""
        text = (
            '<?xml version="1.0" encoding="UTF-8"?>\n'
            '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"<Name>{one.bucket}</Name><Prefix>{quote(prefix, safe='/')}</Prefix>{more}"
            f"<MaxKeys>1000</MaxKeys><EncodingType>url</EncodingType>"
            f"<IsTruncated>{'true' if token else 'false'}</IsTruncated>{entries}"
            "</ListBucketResult>"
        )
        return Asked("LIST", about, prefix), 200, {"Content-Type": "application/xml"}, text.encode()

    def _list_sources(self, one: _Request, prefix: str) -> tuple[str, str]:
        number = self.keys.number_of(prefix)
        token = one.query.get("continuation-token")
        start = int(token) if token else self.keys.behind(number, one.query.get("start-after", ""))
        end = start + self.page_keys
        entries = "".join(self.keys.entries(number, start, end))
        return entries, str(end) if end < self.keys.in_each else ""

    def _list_level(self, one: _Request, prefix: str) -> tuple[str, str]:
        if prefix != ROOT:
            # Partitions have no levels below them.
            return self._list_sources(one, prefix) if self.keys.has(prefix) else ("", "")
        start = int(one.query.get("continuation-token", 0))
        keys = self.whole or self.keys
        end = min(start + self.page_keys, keys.partitions)
        found = (quote(keys.prefix(number), safe="/") for number in range(start, end))
        entries = "".join(f"<CommonPrefixes><Prefix>{p}</Prefix></CommonPrefixes>" for p in found)
        return entries, str(end) if end < keys.partitions else ""

    def _list_stored(self, one: _Request, prefix: str) -> tuple[str, str]:
        after = one.query.get("continuation-token") or one.query.get("start-after", "")
        with self._lock:
            names = self.paths(prefix)
            if "delimiter" in one.query:
                names = list(dict.fromkeys(_rolled_up(name, len(prefix)) for name in names))
            names = names[bisect_right(names, after) :] if after else names
            page, more = names[: self.page_keys], len(names) > self.page_keys
            entries = "".join(map(self._entry, page))
        return entries, page[-1] if more else ""

    def _entry(self, name: str) -> str:
        if name not in self.stored:
            return f"<CommonPrefixes><Prefix>{quote(name, safe='/')}</Prefix></CommonPrefixes>"
        found = self.stored[name]
        return (
            f"<Contents><Key>{quote(name, safe='/')}</Key>"
            f"<LastModified>{found.modified}</LastModified>"
            f"<ETag>&quot;{found.etag}&quot;</ETag><Size>{len(found.body)}</Size>"
            "<StorageClass>STANDARD</StorageClass></Contents>"
        )

    def _get(self, one: _Request) -> tuple[int, dict[str, str], bytes]:
        found = self.stored.get(one.key) if one.bucket == LAKE_BUCKET else None
        if found is None:
            return 404, {}, b"" if one.method == "HEAD" else _NOT_THERE.encode()
        headers = {
            "ETag": f'"{found.etag}"',
            "Last-Modified": _DATE,
            "Content-Length": str(len(found.body)),
        }
        return 200, headers, b"" if one.method == "HEAD" else found.body

    def _put(self, one: _Request) -> tuple[int, dict[str, str], bytes]:
        if "uploadId" in one.query:
            return 200, {"ETag": f'"{one.query["partNumber"]:0>32}"'}, b""
        with self._lock:
            if "if-none-match" in one.headers and one.key in self.stored:
                return 412, {}, _TAKEN.encode()
            self.stored[one.key] = found = Stored.of(one.body, self.now)
        return 200, {"ETag": f'"{found.etag}"'}, b""

    def _post(self, one: _Request) -> tuple[int, dict[str, str], bytes]:
        with self._lock:
            if "uploads" in one.query:
                self._uploads += 1
                made = f"<UploadId>upload-{self._uploads}</UploadId>"
                text = f"<InitiateMultipartUploadResult>{made}</InitiateMultipartUploadResult>"
                return 200, {}, text.encode()
            self.stored[one.key] = Stored.of(b"", self.now)
        return 200, {}, b"<CompleteMultipartUploadResult></CompleteMultipartUploadResult>"


def _parsed(
    method: str, address: str, headers: Mapping[str, Any], body: bytes | memoryview
) -> _Request:
    url = urlsplit(address)
    bucket = url.netloc.partition(".")[0]
    assert bucket in {SOURCE_BUCKET, LAKE_BUCKET}, address
    query = dict(parse_qsl(url.query, keep_blank_values=True))
    named = {name.lower(): value for name, value in headers.items()}
    return _Request(method, bucket, unquote(url.path[1:]), query, named, body)


def _rolled_up(name: str, below: int) -> str:
    """A key, or the prefix of its level."""
    end = name.find("/", below)
    return name if end < 0 else name[: end + 1]
