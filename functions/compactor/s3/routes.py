"""Where libcurl asks for a bucket, and with whose credentials: as botocore says.

botocore knows the rules of endpoints (regions, FIPS, dual stack, China, VPC endpoints, path or
virtual host) and where credentials are. It prepares one request for each bucket, which is not sent,
and whose URL, region and access key are then used. What is out of the ordinary (client
certificates, other ways of signing, other headers) has no route here: botocore makes all its
requests.
"""

from __future__ import annotations

import io
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit
from urllib.request import getproxies, proxy_bypass

import botocore
import msgspec
from botocore.awsrequest import AWSResponse
from botocore.exceptions import BotoCoreError, ClientError
from urllib3 import HTTPResponse

from compactor.s3.curl_handle import Keys, Received, Site
from compactor.s3.sessions import ca_bundle, session_of

if TYPE_CHECKING:
    from types_boto3_s3.client import S3Client

_SAMPLE = "key"
_SIGNED_BY = re.compile(
    r"AWS4-HMAC-SHA256 Credential=([^/]+)/\d{8}/([^/]+)/s3/aws4_request, SignedHeaders="
)
# What botocore puts into every request; with anything else, it is one of another kind.
_USUAL_HEADERS = frozenset(
    {
        "amz-sdk-invocation-id",
        "amz-sdk-request",
        "authorization",
        "user-agent",
        "x-amz-content-sha256",
        "x-amz-date",
        "x-amz-security-token",
    }
)
# libcurl takes such segments out of a path, as a browser does.
_DOTS = re.compile(r"(?:^|/)\.\.?(?:/|$)")
_this_thread = threading.local()


class Route(msgspec.Struct, frozen=True):
    """Where the requests of a bucket go.

    Attributes:
        base: URL of its objects, up to their keys.
        site: what libcurl has to know of it.
        access_key: that signed the sample.
    """

    base: str
    site: Site
    access_key: str

    @property
    def is_secure(self) -> bool:
        """True over TLS."""
        return self.base.startswith("https://")

    def url(self, key: str, query: str = "") -> str:
        """URL of an object; of the bucket for no key."""
        if key:
            url = self.base + quote(key, safe="/~")
        else:
            bucket = self.base.rstrip("/")
            # Of a host alone the path is a slash.
            url = bucket if "/" in bucket.partition("://")[2] else self.base
        return f"{url}?{query}" if query else url


def takes(key: str) -> bool:
    """Whether libcurl asks for a key exactly as it is."""
    return _DOTS.search(key) is None


class Routes:
    """Routes and credentials of a client of botocore; thread safe.

    Args:
        client: whose endpoint and credentials serve; its requests may be answered by what came
            to a request of this.
    """

    def __init__(self, client: S3Client) -> None:
        events: Any = client.meta.events
        # The last of all: what answers before, as stand-ins for AWS do, leaves no route to learn.
        events.register_last("before-send", _instead, unique_id="compactor-direct")
        self._client = client
        self._credentials: Any = None
        self._routes: dict[str, Route | None] = {}
        self._latest: tuple[int, Keys] | None = None

    def of(self, bucket: str) -> Route | None:
        """The route of a bucket; None where botocore makes all its requests."""
        if bucket not in self._routes:
            self._routes[bucket] = self._learned(bucket)
        return self._routes[bucket]

    def forget(self, bucket: str) -> None:
        """Leave a bucket to botocore from now on: it is not where it was asked for."""
        self._routes[bucket] = None

    def keys(self) -> Keys:
        """What to sign with now; botocore renews it in time.

        Raises:
            BotoCoreError: it could not be renewed.
        """
        now, latest = int(time.time()), self._latest
        if latest is None or latest[0] != now:
            frozen = self._credentials.get_frozen_credentials()
            token = " ".join(frozen.token.split()) if frozen.token else None
            latest = self._latest = now, Keys(frozen.access_key, frozen.secret_key, token)
        return latest[1]

    def _learned(self, bucket: str) -> Route | None:
        if self._credentials is None:
            self._credentials = session_of(self._client).get_credentials()
        config: Any = self._client.meta.config
        if self._credentials is None or config.proxies or config.client_cert:
            return None
        try:
            with answered_by(lambda request: as_answer(request, _NOTHING)) as prepared:
                self._client.head_object(Bucket=bucket, Key=_SAMPLE)
        except (BotoCoreError, ClientError):
            return None
        route = self._route(prepared[0]) if prepared else None
        # The client may have been given other credentials than those that are found here.
        own = self._credentials.get_frozen_credentials().access_key
        return route if route is not None and route.access_key == own else None

    def _route(self, prepared: Any) -> Route | None:
        """The route of a prepared sample request; None where it is unusual."""
        headers = {name.lower(): _text(value) for name, value in prepared.headers.items()}
        url = urlsplit(prepared.url)
        by = _SIGNED_BY.match(headers.get("authorization", ""))
        usual = (
            headers.keys() <= _USUAL_HEADERS and not url.query and url.path.endswith(f"/{_SAMPLE}")
        )
        proxy = _proxy_of(prepared.url)
        if by is None or not usual or not url.hostname or proxy is None:
            return None
        trusted = self._trusted() if url.scheme == "https" else ""
        base = prepared.url.removesuffix(_SAMPLE)
        return Route(base, Site(by[2], trusted, proxy), by[1])

    def _trusted(self) -> str:
        """The file of certificate authorities that botocore takes."""
        given = ca_bundle(session_of(self._client))
        if given:
            return given
        try:
            from certifi import where  # noqa: PLC0415 - botocore takes it where it is installed
        except ImportError:
            return str(Path(botocore.__file__).with_name("cacert.pem"))
        return where()


def _proxy_of(url: str) -> str | None:
    """URL of the proxy that the environment names; empty for none, None for an unusual one."""
    scheme, host = url.partition("://")[0], urlsplit(url).netloc
    found = "" if proxy_bypass(host) else getproxies().get(scheme, "")
    return found if not found or found.startswith("http://") or "://" not in found else None


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


_NOTHING = Received(200, b"", b"")


def as_answer(request: Any, received: Received) -> AWSResponse:
    """What came to a request, as botocore takes it."""
    headers: Any = dict(received.headers)
    raw = HTTPResponse(
        io.BytesIO(received.body),
        headers,
        received.status,
        preload_content=False,
        decode_content=False,
        enforce_content_length=False,
    )
    return AWSResponse(request.url, received.status, headers, raw)


@contextmanager
def answered_by(answer: Callable[[Any], AWSResponse]) -> Iterator[list[Any]]:
    """This thread's next request of botocore is not sent, but answered so.

    Gives the requests that were prepared: those after the first are sent.
    """
    prepared: list[Any] = []
    _this_thread.next = (answer, prepared)
    try:
        yield prepared
    finally:
        _this_thread.next = None


def _instead(request: Any, **_: Any) -> AWSResponse | None:
    following = getattr(_this_thread, "next", None)
    if following is None:
        return None
    answer, prepared = following
    prepared.append(request)
    made: AWSResponse = answer(request)
    return made if len(prepared) == 1 else None
