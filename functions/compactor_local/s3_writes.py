"""Middlewares for moto's server: atomic conditional writes, and fast plain writes.

moto 5.2.5 checks ``If-None-Match`` and writes in two steps that another writer can interleave. It
takes 4 ms of CPU before a request reaches its store. A run writes six times per partition: the
plain forms of these six requests go to the store directly. Requests that are not plain, or that are
to be rejected, are left to moto, which has the error messages.
"""

from __future__ import annotations

import threading
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl
from xml.sax.saxutils import escape

from moto.core.exceptions import ServiceException
from moto.s3 import models
from moto.s3.utils import metadata_from_headers

from compactor_local import multipart_patches
from compactor_local.definition import ACCOUNT
from compactor_local.s3_http import Application

_CONDITIONAL = ("PUT", "POST", "DELETE")
_CRC32 = "x-amz-checksum-crc32"
# The checksum algorithm, as SDKs send it.
_ALGORITHM = "x-amz-sdk-checksum-algorithm"
_METADATA = "x-amz-meta-"
# Headers that do not affect what is stored.
_OF_TRANSPORT = frozenset(
    {
        "accept",
        "accept-encoding",
        "amz-sdk-invocation-id",
        "amz-sdk-request",
        "authorization",
        "connection",
        "content-length",
        "expect",
        "host",
        "user-agent",
        "x-amz-date",
        "x-amz-security-token",
        "x-amzn-trace-id",
    }
)
_OF_CONTENT = frozenset({"content-type", "x-amz-content-sha256"})
_OF_UPLOAD = frozenset({"x-amz-checksum-algorithm", "x-amz-checksum-type"})
_MOST_PARTS = 10_000
_LONGEST_KEY = 1_024
_XML = "{http://s3.amazonaws.com/doc/2006-03-01/}"
_Answer = tuple[list[tuple[str, str]], bytes]


class _LeftToMoto(Exception):
    """The request is not plain, or is to be rejected; nothing was changed."""


@dataclass(frozen=True, slots=True)
class _Write:
    """A write to a plain bucket.

    Attributes:
        headers: in lower case, without those of the transport.
    """

    backend: Any
    bucket: Any
    name: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    def require_headers(self, allowed: frozenset[str] = frozenset()) -> None:
        """Leave requests with other headers to moto."""
        for name in self.headers.keys() - allowed - _OF_CONTENT:
            if not name.startswith(_METADATA):
                raise _LeftToMoto
        if self.headers.get("x-amz-content-sha256", "").startswith("STREAMING"):
            raise _LeftToMoto

    def checksum(self) -> str | None:
        """Return the CRC32 sent with the body, after checking it; None if none was sent."""
        sent = self.headers.get(_CRC32)
        wrong = sent is not None and sent != multipart_patches.crc32(self.body)
        if wrong or self.headers.get(_ALGORITHM, "CRC32") != "CRC32":
            raise _LeftToMoto
        return sent

    def require_condition(self) -> None:
        """Leave a write whose condition may fail to moto; call while holding the write lock."""
        condition = self.headers.get("if-none-match")
        if condition not in (None, "*") or (condition and self.bucket.keys.get(self.name)):
            raise _LeftToMoto


def serve_conditionally(application: Application) -> Application:
    """Serialize conditional writes, so that only one of two can win."""
    writing = threading.Lock()

    def serve(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        conditional = "HTTP_IF_NONE_MATCH" in environ or "HTTP_IF_MATCH" in environ
        if conditional and environ["REQUEST_METHOD"] in _CONDITIONAL:
            with writing:
                return application(environ, start_response)
        return application(environ, start_response)

    return serve


def serve_writes(application: Application) -> Application:
    """Carry out plain writes of objects and uploads without moto's request handling."""

    def serve(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        try:
            write = _plain_write(environ)
            headers, body = _verb(environ["REQUEST_METHOD"], write)(write)
        except (_LeftToMoto, ServiceException):
            environ["wsgi.input"].seek(0)
            return application(environ, start_response)
        start_response("200 OK", [*headers, ("Content-Length", str(len(body)))])
        return [body]

    return serve


def _verb(method: str, write: _Write) -> Callable[[_Write], _Answer]:
    """Return the function for a request."""
    wanted = (method, frozenset(write.query))
    verb = _VERBS.get(wanted)
    if verb is None:
        raise _LeftToMoto
    return verb


def _plain_write(environ: Mapping[str, Any]) -> _Write:
    if environ["REQUEST_METHOD"] not in ("PUT", "POST"):
        raise _LeftToMoto
    path = environ["PATH_INFO"].encode("latin-1").decode("utf-8", "replace")
    bucket_name, _, name = path[1:].partition("/")
    backend = models.s3_backends[ACCOUNT]["aws"]
    bucket = backend.buckets.get(bucket_name)
    if bucket is None or not _plain_name(name) or not _plain_bucket(bucket):
        raise _LeftToMoto
    text = environ["QUERY_STRING"]
    query = dict(parse_qsl(text, keep_blank_values=True)) if text else {}
    return _Write(backend, bucket, name, query, _headers(environ), environ["wsgi.input"].read())


def _plain_name(name: str) -> bool:
    odd = name.startswith("/") or "//" in name or "\ufffd" in name
    return bool(name) and not odd and name.isprintable() and len(name.encode()) <= _LONGEST_KEY


def _plain_bucket(bucket: Any) -> bool:
    """Return whether the bucket has no configuration that changes what a write does."""
    special = (
        bucket.versioning_status,
        bucket.encryption,
        bucket.policy,
        bucket.object_lock_enabled,
        bucket.notification_configuration,
        bucket.cors,
    )
    return type(bucket) is models.FakeBucket and not any(special)


def _headers(environ: Mapping[str, Any]) -> dict[str, str]:
    found = {}
    for key, value in environ.items():
        name = _header_name(key)
        if name:
            found[name] = value
    return found


@lru_cache(1_000)
def _header_name(key: str) -> str:
    """Return the lower-case name of a WSGI header; empty for headers without effect."""
    if key != "CONTENT_TYPE" and not key.startswith("HTTP_"):
        return ""
    name = key.removeprefix("HTTP_").lower().replace("_", "-")
    return "" if name in _OF_TRANSPORT else name


def _put_object(write: _Write) -> _Answer:
    write.require_headers(frozenset({"if-none-match", _CRC32, _ALGORITHM}))
    write.require_condition()
    checksum = write.checksum()
    made = write.backend.put_object(write.bucket.name, write.name, write.body, storage="STANDARD")
    made.set_metadata(metadata_from_headers(dict(write.headers)))
    made.set_acl(write.bucket.acl)
    if checksum is not None:
        made.checksum_algorithm, made.checksum_value = "CRC32", checksum
    # Tags of a replaced object.
    write.backend.tagger.delete_all_tags_for_resource(made.arn)
    return [("ETag", made.etag)], b""


def _create_upload(write: _Write) -> _Answer:
    if write.body:
        raise _LeftToMoto
    write.require_headers(_OF_UPLOAD)
    metadata = metadata_from_headers(dict(write.headers))
    upload = write.backend.create_multipart_upload(
        write.bucket.name, write.name, metadata, "STANDARD", {}, None, None, None
    )
    checksums = [(name, write.headers[name]) for name in sorted(_OF_UPLOAD & write.headers.keys())]
    return [*checksums, ("Content-Type", "application/xml")], _document(
        "InitiateMultipartUploadResult",
        {"Bucket": write.bucket.name, "Key": write.name, "UploadId": upload.id},
    )


def _upload_part(write: _Write) -> _Answer:
    write.require_headers(frozenset({_CRC32, _ALGORITHM}))
    write.checksum()
    number = write.query["partNumber"]
    if not number.isdecimal() or not 1 <= int(number) <= _MOST_PARTS:
        raise _LeftToMoto
    with multipart_patches.serving(write.headers):
        part = write.backend.upload_part(
            write.bucket.name, write.query["uploadId"], int(number), write.body
        )
    return [("ETag", part.etag)], b""


def _complete_upload(write: _Write) -> _Answer:
    write.require_headers(frozenset({"if-none-match", _CRC32, "x-amz-checksum-type"}))
    # Even without a condition: this upload may have been completed before.
    if write.bucket.keys.get(write.name):
        raise _LeftToMoto
    write.require_condition()
    parts = _named_parts(write.body)
    with multipart_patches.serving(write.headers):
        made = write.backend.complete_multipart_upload(
            write.bucket.name, write.query["uploadId"], parts
        )
    return [("Content-Type", "application/xml")], _document(
        "CompleteMultipartUploadResult",
        {
            "Location": f"http://{write.bucket.name}.s3.amazonaws.com/{write.name}",
            "Bucket": write.bucket.name,
            "Key": write.name,
            "ETag": made.etag,
        },
    )


def _named_parts(body: bytes) -> list[tuple[int, str]]:
    """Return number and ETag of each part in a CompleteMultipartUpload request."""
    try:
        root = ET.fromstring(body)  # noqa: S314 - from this machine's own clients
        parts = [
            (int(_text(one, "PartNumber")), _text(one, "ETag"))
            for one in root.iter()
            if one.tag in ("Part", f"{_XML}Part")
        ]
    except (ET.ParseError, ValueError):
        raise _LeftToMoto from None
    if not parts:
        raise _LeftToMoto
    return parts


def _text(part: ET.Element, name: str) -> str:
    found = part.findtext(name) or part.findtext(f"{_XML}{name}")
    if found is None:
        raise _LeftToMoto
    return found


def _document(name: str, fields: Mapping[str, str]) -> bytes:
    inner = "".join(f"<{field}>{escape(value)}</{field}>" for field, value in fields.items())
    namespace = _XML.strip("{}")
    declared = '<?xml version="1.0" encoding="UTF-8"?>'
    return f'{declared}<{name} xmlns="{namespace}">{inner}</{name}>'.encode()


_VERBS: Mapping[tuple[str, frozenset[str]], Callable[[_Write], _Answer]] = {
    ("PUT", frozenset()): _put_object,
    ("POST", frozenset({"uploads"})): _create_upload,
    ("PUT", frozenset({"partNumber", "uploadId"})): _upload_part,
    ("POST", frozenset({"uploadId"})): _complete_upload,
}
