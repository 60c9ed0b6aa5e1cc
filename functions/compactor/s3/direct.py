"""The usual requests of a partition by libcurl: botocore takes 2 ms of CPU time for each.

botocore says where they go (:mod:`compactor.s3.routes`) and judges every answer but the plain
success that was asked for: it is handed the answer as if it had come to a request of its own, by
its event before-send. So errors, those with status 200 among them, and redirects to other regions
mean exactly what they mean there.
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
# Of a body, as a header; with one botocore leaves the body unsigned over TLS, too.
_CHECKSUMS = frozenset({"x-amz-checksum-crc32"})
# libcurl hashes bodies in one piece itself, in the thread that all transfers share.
_HASHED_BYTES = 64 * 1024
# What libcurl would add to a request with a body.
_NOT_SENT = (b"Expect:",)


class Asked(msgspec.Struct, frozen=True):
    """A request as S3 describes it.

    Attributes:
        key: empty for requests of the bucket.
        query: names and values as they are.
        headers: names in lower case.
    """

    method: str
    bucket: str
    key: str
    query: Mapping[str, str] = msgspec.field(default_factory=dict)
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    body: Body = b""


class Direct:
    """Sends requests for a client of botocore; thread safe.

    Args:
        client: whose endpoint and credentials serve.

    Attributes:
        routes: where requests go.
        transfers: by which they are sent.
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
        """The answer to a request, asked once.

        Args:
            asked: the request.
            sound: reads an answer that is what was hoped for; None for any other.
            otherwise: makes the same request through the client.
            time_is_up: says whether the time for that is over.

        Raises:
            BotoCoreError: there are no credentials.
            ClientError: the answer is an error.
            Again: there was no answer in time.
            InvalidInput: the server's certificate is not trusted.
        """
        route = self.routes.of(asked.bucket)
        # libcurl takes a header without a value for one that is not to be sent.
        if route is None or not takes(asked.key) or "" in asked.headers.values():
            return otherwise(time_is_up)
        received = self.transfers.ask(self._request(asked, route))
        found = sound(received)
        if found is not None:
            return found
        with answered_by(lambda request: as_answer(request, received)) as answered:
            answer = otherwise(time_is_up)
        if received.status != OK or len(answered) > 1:
            # It knows a way around what was an error here.
            self.routes.forget(asked.bucket)
        return answer

    def _request(self, asked: Asked, route: Route) -> Request:
        keys = self.routes.keys()
        headers = dict(asked.headers)
        # Hashed once is enough: over TLS the bytes do not change on their way, nor the checksum.
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
        # While it completes an upload, S3 may send no more than a blank now and then.
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
