"""A store on a scripted S3, and the requests of its tests."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator

from compactor.model import SourceObject, StoredPart
from compactor.ports import SourceBody
from compactor.s3.retries import Patience
from compactor.s3.store import S3Store, make_client
from tests.support.scripted_s3 import Answer, Asked

MIB = 1024 * 1024
# The ETag of a multipart object, which is not a checksum of the bytes that a test sends.
ETAG = "0123456789abcdef0123456789abcdef-3"
SOURCE = SourceObject("bucket", "logs/a.json", ETAG, 5, 0.0)
PARTS = (StoredPart(1, "etag-1", 5 * MIB), StoredPart(2, "etag-2", 7))


class NoTime:
    """A clock that advances only by waits, which return immediately."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.waits: list[float] = []
        self._lock = threading.Lock()

    def clock(self) -> float:
        return self.now

    def pause(self, stopped: threading.Event, seconds: float) -> bool:
        with self._lock:
            self.waits.append(seconds)
            self.now += seconds
        return stopped.is_set()

    def patience(self, deadline_seconds: float = 120.0) -> Patience:
        """Return a patience that always waits longest, instead of a random time."""
        return Patience(deadline_seconds, self.clock, self.pause, jitter=lambda longest: longest)


def store_on(url: str, *, libcurl: bool = True, time: NoTime | None = None) -> S3Store:
    client = make_client(url, connections=4)
    patience = (time or NoTime()).patience()
    return S3Store(client, threads=2, libcurl=libcurl, patience=patience)


def only(bodies: Iterator[SourceBody]) -> SourceBody:
    (body,) = bodies
    return body


def sends_ranges_of(content: bytes) -> Callable[[Asked], Answer]:
    """Return a handler that answers a GET as S3 does, with or without Range."""

    def answer(asked: Asked) -> Answer:
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", asked.headers.get("range", ""))
        headers = {"ETag": f'"{ETAG}"', "Last-Modified": "Fri, 02 Jan 2026 00:00:00 GMT"}
        if asked.method in {"PUT", "HEAD"}:
            return Answer(200, b"", headers)
        if wanted is None:
            return Answer(200, content, headers)
        first, last = int(wanted[1]), int(wanted[2])
        headers["Content-Range"] = f"bytes {first}-{last}/{len(content)}"
        return Answer(206, content[first : last + 1], headers)

    return answer


def complete(store: S3Store, crc32: int | None = 0) -> None:
    store.complete_upload("bucket", "out", "id", PARTS, crc32=crc32)


def deletes(asked: Asked, /, **codes: str) -> Answer:
    """Answer DeleteObjects as S3 does; ``codes`` are errors, by key."""
    parts = []
    for key in re.findall(r"<Key>(.*?)</Key>", asked.body.decode()):
        if key in codes:
            error = f"<Key>{key}</Key><Code>{codes[key]}</Code><Message>m</Message>"
            parts.append(f"<Error>{error}</Error>")
        else:
            parts.append(f"<Deleted><Key>{key}</Key></Deleted>")
    return Answer(body=f"<DeleteResult>{''.join(parts)}</DeleteResult>".encode())


def sources(*keys: str) -> list[SourceObject]:
    return [SourceObject("bucket", key, f"etag-of-{key}", 1, 0.0) for key in keys]
