"""Every kind of request of the S3 store: how to send it, and a valid answer."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from compactor.model import SourceObject
from compactor.s3.store import S3Store
from tests.support.s3_requests import ETAG, MIB, SOURCE, complete, only
from tests.support.scripted_s3 import Answer, Asked

ODD = SourceObject("bucket", "\x01", ETAG, 5, 0.0)
LARGE = SourceObject("bucket", "k", ETAG, 9 * MIB, 0.0)
HEADERS = {"ETag": f'"{ETAG}"', "Last-Modified": "Fri, 02 Jan 2026 00:00:00 GMT"}


def ranged(asked: Asked) -> Answer:
    """Answer a range as S3 does, with zeros."""
    if asked.method == "HEAD":
        return Answer(200, b"", HEADERS)
    first, last = map(int, re.findall(r"\d+", asked.headers["range"]))
    told = HEADERS | {"Content-Range": f"bytes {first}-{last}/{LARGE.size}"}
    return Answer(206, bytes(last + 1 - first), told)


def xml(text: str) -> Callable[[Asked], Answer]:
    """Return a handler that answers with this text."""
    return lambda asked: Answer(body=text.encode(), headers=HEADERS)


def chunks_of(source: SourceObject) -> Callable[[S3Store], Any]:
    """Return a request that reads a large source, range by range."""

    def read(store: S3Store) -> int:
        body = only(store.read_sources([source]))
        assert body.chunks is not None
        return sum(map(len, body.chunks()))

    return read


def read(store: S3Store) -> Any:
    """Read a small source; raise the error that came instead."""
    body = only(store.read_sources([SOURCE]))
    if body.error is not None:
        raise body.error
    return body.content


Ask = Callable[[S3Store], Any]
BODY = xml("hello")
LISTING = xml("<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>")
REQUESTS: dict[str, tuple[Ask, Callable[[Asked], Answer]]] = {
    "list": (lambda store: list(store.list_objects("bucket", "p/")), LISTING),
    "level": (lambda store: list(store.list_level("bucket", "p/")), LISTING),
    "uploads": (
        lambda store: list(store.list_uploads("bucket", "p/")),
        xml("<ListMultipartUploadsResult></ListMultipartUploadsResult>"),
    ),
    "get": (lambda store: store.get("bucket", "k"), BODY),
    "range": (lambda store: store.get_range("bucket", "k", 0, 5), ranged),
    "open": (lambda store: b"".join(store.open("bucket", "k")), BODY),
    "head": (lambda store: store.head("bucket", "k"), BODY),
    "put": (lambda store: store.put("bucket", "k", b"body"), lambda asked: Answer()),
    "create": (lambda store: store.create("bucket", "k", b"body"), lambda asked: Answer()),
    "start": (
        lambda store: store.create_upload("bucket", "k"),
        xml(
            "<InitiateMultipartUploadResult><UploadId>id</UploadId></InitiateMultipartUploadResult>"
        ),
    ),
    "part": (
        lambda store: store.upload_part("bucket", "k", "id", 1, b"part"),
        lambda asked: Answer(headers=HEADERS),
    ),
    "copy": (
        lambda store: store.copy_part("bucket", "k", "id", 1, SOURCE, 0, 5),
        xml('<CopyPartResult><ETag>"copied"</ETag></CopyPartResult>'),
    ),
    "complete": (
        complete,
        xml("<CompleteMultipartUploadResult><Key>k</Key></CompleteMultipartUploadResult>"),
    ),
    "abort": (
        lambda store: store.abort_upload("bucket", "k", "id"),
        lambda asked: Answer(204),
    ),
    "delete": (
        lambda store: store.delete_sources([SOURCE]),
        xml(f"<DeleteResult><Deleted><Key>{SOURCE.key}</Key></Deleted></DeleteResult>"),
    ),
    "delete alone": (lambda store: store.delete_sources([ODD]), lambda asked: Answer(204)),
    "read": (read, BODY),
    "read range": (lambda store: store.read_range(LARGE, 0, 5), ranged),
    "ranges": (chunks_of(LARGE), ranged),
}
