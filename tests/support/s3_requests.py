"""A store on a scripted S3, and what tests ask of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from compactor.model import SourceObject, StoredPart
from compactor.ports import SourceBody
from compactor.stores.s3 import S3Store, make_client
from tests.support.scripted_s3 import Answer, Asked

MIB = 1024 * 1024
ETAG = "0123456789abcdef0123456789abcdef"
SOURCE = SourceObject("bucket", "logs/a.json", ETAG, 5, 0.0)
PARTS = (StoredPart(1, "etag-1", 5 * MIB), StoredPart(2, "etag-2", 7))


def store_on(url: str, *, fast: bool = False) -> S3Store:
    client = make_client(url, connections=4)
    return S3Store(client, threads=2, fast=fast, deadline_seconds=0.5)


def only(bodies: Iterator[SourceBody]) -> SourceBody:
    (body,) = bodies
    return body


def sends_ranges_of(content: bytes) -> Callable[[Asked], Answer]:
    """Answers a GET as S3 does, with or without Range."""

    def answer(asked: Asked) -> Answer:
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", asked.headers.get("range", ""))
        headers = {"ETag": f'"{ETAG}"', "Last-Modified": "Fri, 02 Jan 2026 00:00:00 GMT"}
        if asked.method == "PUT":
            return Answer(200, b"", headers)
        if wanted is None:
            return Answer(200, content, headers)
        first, last = int(wanted[1]), int(wanted[2])
        headers["Content-Range"] = f"bytes {first}-{last}/{len(content)}"
        return Answer(206, content[first : last + 1], headers)

    return answer


def complete(store: S3Store, crc32: int | None = 0) -> None:
    store.complete_upload("bucket", "out", "id", PARTS, crc32=crc32)


def sources(*keys: str) -> list[SourceObject]:
    return [SourceObject("bucket", key, f"etag-of-{key}", 1, 0.0) for key in keys]
