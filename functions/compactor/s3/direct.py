"""Makes a partition's most common requests by libcurl: botocore takes 2 ms of CPU time for each.

botocore determines where they are sent (:mod:`compactor.s3.routes`) and interprets every answer
but the expected success: through its before-send event it is given the answer as if to a request
of its own. So errors, including those with status 200, and redirects to other regions are handled
exactly as botocore handles them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote

import msgspec

from compactor.pieces import Body, pieces_of
from compactor.s3.bodies import TimeIsUp
from compactor.s3.curl_handle import Received, Request
from compactor.s3.retries import seconds_left, silence_seconds
from compactor.s3.routes import Route, Routes, answered_by, as_answer, takes
from compactor.s3.transfers import Transfers

if TYPE_CHECKING:
    from types_boto3_s3.client import S3Client

Found = TypeVar("Found")

OK = 200
_UNSIGNED = "UNSIGNED-PAYLOAD"
# With one of these headers the body is left unsigned over TLS, as botocore does.
_CHECKSUMS = frozenset({"x-amz-checksum-crc32"})
# libcurl would hash a body in the thread that all transfers share. Bodies larger than this are
# hashed in the caller's thread.
_HASHED_BYTES = 64 * 1024
# Keeps libcurl from adding this header to a request with a body.
_NOT_SENT = (b"Expect:",)


class Asked(msgspec.Struct, frozen=True):
    """A request in the terms of the S3 API.

    Attributes:
        key: empty for bucket requests.
        query: names and values, not encoded.
        headers: names in lower case.
    """

    method: str
    bucket: str
    key: str
    query: Mapping[str, str] = msgspec.field(default_factory=dict)
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    body: Body = b""


class Direct:
    """Sends requests in place of a botocore client; thread safe.

    Args:
        client: the client whose endpoint and credentials are used.

    Attributes:
        routes: where requests are sent.
        transfers: sends them.
    """

    def __init__(self, client: S3Client) -> None:
        self.routes = Routes(client)
        self.transfers = Transfers()

    def ask(
        self,
        asked: Asked,
        sound: Callable[[Received], Found | None],
        otherwise: Callable[[TimeIsUp], Found],
        time_is_up: TimeIsUp,
    ) -> Found:
        """Make a request once and return its result.

        Args:
            asked: the request.
            sound: returns the result of an expected answer; None for any other answer.
            otherwise: makes the same request through the client.
            time_is_up: returns True when the time for this try is over.

        Raises:
            BotoCoreError: there are no credentials.
            ClientError: the answer is an error.
            Again: there was no answer in time.
            InvalidInput: the server's certificate is not trusted.
        """
        route = self.routes.of(asked.bucket)
        # libcurl does not send headers without a value.
        if route is None or not takes(asked.key) or "" in asked.headers.values():
            return otherwise(time_is_up)
        received = self.transfers.ask(self._request(asked, route))
        found = sound(received)
        if found is not None:
            return found
        with answered_by(lambda request: as_answer(request, received)) as answered:
            answer = otherwise(time_is_up)
        if received.status != OK or len(answered) > 1:
            # botocore succeeded where libcurl got an error.
            self.routes.forget(asked.bucket)
        return answer

    def _request(self, asked: Asked, route: Route) -> Request:
        keys = self.routes.keys()
        headers = dict(asked.headers)
        # The CRC32 is enough: over TLS neither the body nor the checksum can change in transit.
        if route.is_secure and not _CHECKSUMS.isdisjoint(headers):
            headers["x-amz-content-sha256"] = _UNSIGNED
        elif len(asked.body) > _HASHED_BYTES or not isinstance(asked.body, bytes):
            headers["x-amz-content-sha256"] = _sha256(asked.body)
        if keys.token:
            headers["x-amz-security-token"] = keys.token
        lines = [f"{name}: {value}".encode("latin-1") for name, value in headers.items()]
        if any(b"\r" in line or b"\n" in line for line in lines):
            raise ValueError(f"a line break in a header of {asked.method} {asked.key!r}")
        if asked.method != "GET":
            lines += _NOT_SENT if "content-type" in headers else (*_NOT_SENT, b"Content-Type:")
        pairs = (f"{quote(k, safe='-_.~')}={quote(v, safe='-_.~')}" for k, v in asked.query.items())
        # While S3 completes an upload, it may send no more than an occasional space.
        silence = 0 if asked.method == "POST" else max(1, int(silence_seconds()))
        return Request(
            route.site,
            keys,
            asked.method,
            route.url(asked.key, "&".join(pairs)),
            lines,
            asked.body,
            seconds_left(),
            silence,
        )


def _sha256(body: Body) -> str:
    digest = hashlib.sha256()
    for piece in pieces_of(body):
        digest.update(piece)
    return digest.hexdigest()
