"""Removes conditions from requests between a client and its S3 server.

The signature covers most headers and the body, so the rest is signed again with the credentials of
the tests: the server sees a valid request without the condition.
"""

from __future__ import annotations

import base64
import hashlib
import re
import zlib
from collections.abc import Collection, Mapping
from urllib.parse import urlsplit

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.support.faults import Request
from tests.support.server_differences import Condition

_KEYS = Credentials("testing", "testing")
_REGION = "us-east-1"
_HEADERS: Mapping[Condition, tuple[str, str]] = {
    Condition.CREATE: ("PUT", "if-none-match"),
    Condition.PUBLISH: ("COMPLETE", "if-none-match"),
    Condition.READ: ("GET", "if-match"),
    Condition.WHOLE_CHECKSUM: ("COMPLETE", "x-amz-checksum-crc32"),
    Condition.DELETE_ONE: ("DELETE", "if-match"),
}
_ETAG = re.compile(rb"<ETag>[^<]*</ETag>")
_SIGNED = ("authorization", "x-amz-date", "x-amz-content-sha256", "host")


def without(
    conditions: Collection[Condition],
    request: Request,
    target: str,
    headers: Mapping[str, str],
    body: bytes,
) -> tuple[dict[str, str], bytes]:
    """Return a request's headers and body without these conditions, signed again.

    Args:
        conditions: the conditions to remove.
        request: the request.
        target: its URL, with the server's address.
        headers: its headers.
        body: its body.
    """
    left = {name.lower(): value for name, value in headers.items()}
    before = dict(left)
    for condition, (operation, name) in _HEADERS.items():
        if condition in conditions and request.operation == operation:
            left.pop(name, None)
    sent = body
    if Condition.DELETE_MANY in conditions and request.operation == "DELETE" and body:
        sent = _ETAG.sub(b"", body)
        left |= _sums(left, sent)
    if left == before and sent == body:
        return dict(headers), body
    return _signed(request, target, left, sent), sent


def _sums(headers: Mapping[str, str], body: bytes) -> dict[str, str]:
    """Return length and checksums of a new body, for the headers that were there before."""
    md5 = hashlib.md5(body, usedforsecurity=False).digest()
    made = {
        "content-length": str(len(body)).encode(),
        "content-md5": base64.b64encode(md5),
        "x-amz-checksum-crc32": base64.b64encode(zlib.crc32(body).to_bytes(4, "big")),
    }
    return {name: value.decode() for name, value in made.items() if name in headers}


def _signed(
    request: Request, target: str, headers: Mapping[str, str], body: bytes
) -> dict[str, str]:
    method = {"COMPLETE": "POST", "COPY": "PUT"}.get(request.operation, request.operation)
    if request.operation == "DELETE" and body:
        method = "POST"
    left = {name: value for name, value in headers.items() if name not in _SIGNED}
    left["host"] = urlsplit(target).netloc
    again = AWSRequest(method, target, left, body)
    S3SigV4Auth(_KEYS, "s3", _REGION).add_auth(again)
    return dict(again.headers.items())
