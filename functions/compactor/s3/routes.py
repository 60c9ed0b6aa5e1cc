"""Takes each bucket's URL, region and credentials from botocore, for reads by libcurl.

botocore implements the endpoint rules (regions, FIPS, dual stack, China, VPC endpoints, path or
virtual host) and finds credentials. For each bucket it prepares one request that is not sent, and
that request's URL, region and access key are used. Unusual configurations (client certificates,
other signature methods, other headers) get no route: botocore makes all requests to such buckets.
"""

from __future__ import annotations

import io
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit
from urllib.request import getproxies, proxy_bypass

import botocore
import msgspec
from botocore.awsrequest import AWSResponse
from urllib3 import HTTPResponse

from compactor.s3.curl_handle import Keys, Site
from compactor.s3.sessions import ca_bundle, session_of

if TYPE_CHECKING:
    from types_boto3_s3.client import S3Client

_SAMPLE = "key"
_SIGNED_BY = re.compile(
    r"AWS4-HMAC-SHA256 Credential=([^/]+)/\d{8}/([^/]+)/s3/aws4_request, SignedHeaders="
)
# Headers that botocore adds to every request. A request with any other header is unusual.
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
# libcurl resolves dot segments in a path, as a browser does.
_DOTS = re.compile(r"(?:^|/)\.\.?(?:/|$)")
_this_thread = threading.local()


class Route(msgspec.Struct, frozen=True):
    """Where the requests for a bucket are sent.

    Attributes:
        base: URL of its objects, up to their keys.
        site: region, certificates and proxy, for libcurl.
        access_key: the access key that signed the sample request.
    """

    base: str
    site: Site
    access_key: str

    def url(self, key: str) -> str:
        """Return the URL of an object."""
        return self.base + quote(key, safe="/~")


def takes(key: str) -> bool:
    """Return whether libcurl requests the key unchanged."""
    return _DOTS.search(key) is None


class Routes:
    """Routes and credentials of a botocore client; thread safe.

    Args:
        client: the client whose endpoint and credentials are used.
    """

    def __init__(self, client: S3Client) -> None:
        events: Any = client.meta.events
        # Registered last: if another handler answers first, as AWS mocks do, no route is learned.
        events.register_last("before-send", _instead, unique_id="compactor-routes")
        self._client = client
        self._credentials: Any = None
        self._routes: dict[str, Route | None] = {}
        self._latest: tuple[int, Keys] | None = None

    def of(self, bucket: str) -> Route | None:
        """Return the route of a bucket; None if botocore is to make all its requests."""
        if bucket not in self._routes:
            self._routes[bucket] = self._learned(bucket)
        return self._routes[bucket]

    def keys(self) -> Keys:
        """Return the current credentials, which botocore renews in time.

        Raises:
            BotoCoreError: they could not be renewed.
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
            with _unsent() as prepared:
                self._client.head_object(Bucket=bucket, Key=_SAMPLE)
        except Exception:
            # botocore may first send another request, such as CreateSession for a directory
            # bucket, and raises KeyError for the empty answer to it.
            return None
        route = self._route(prepared[0]) if prepared else None
        # The client may have been created with credentials other than the session's.
        own = self._credentials.get_frozen_credentials().access_key
        return route if route is not None and route.access_key == own else None

    def _route(self, prepared: Any) -> Route | None:
        """Return the route that a prepared sample request takes; None if it is unusual."""
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
        """Return the file of certificate authorities that botocore uses."""
        given = ca_bundle(session_of(self._client))
        if given:
            return given
        try:
            from certifi import where  # noqa: PLC0415 - botocore takes it where it is installed
        except ImportError:
            return str(Path(botocore.__file__).with_name("cacert.pem"))
        return where()


def _proxy_of(url: str) -> str | None:
    """Return the proxy URL from the environment; empty for no proxy, None for an unusual one."""
    scheme, host = url.partition("://")[0], urlsplit(url).netloc
    found = "" if proxy_bypass(host) else getproxies().get(scheme, "")
    return found if not found or found.startswith("http://") or "://" not in found else None


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


@contextmanager
def _unsent() -> Iterator[list[Any]]:
    """Answer this thread's next botocore request with an empty success instead of sending it.

    Yields the list of prepared requests. Any after the first were sent.
    """
    prepared: list[Any] = []
    _this_thread.prepared = prepared
    try:
        yield prepared
    finally:
        _this_thread.prepared = None


def _instead(request: Any, **_: Any) -> AWSResponse | None:
    prepared = getattr(_this_thread, "prepared", None)
    if prepared is None:
        return None
    prepared.append(request)
    headers: Any = {}
    raw = HTTPResponse(io.BytesIO(), preload_content=False)
    return AWSResponse(request.url, 200, headers, raw) if len(prepared) == 1 else None
