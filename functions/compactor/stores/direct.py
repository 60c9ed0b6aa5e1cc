"""The usual requests of a partition without botocore, which takes 2 ms of CPU time for each.

botocore still says where a bucket is and how its requests are signed: once for each bucket, by
preparing a request that is not sent. And it judges every answer but the plain success that was
asked for: it is handed the answer as if it had come to a request of its own, so that errors,
those with status 200 among them, and redirects to other regions mean exactly what they mean
there. Whatever is out of the ordinary (proxies, client certificates, other ways of signing)
goes its way altogether.
"""

from __future__ import annotations

import io
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self, TypeVar
from urllib.parse import quote, urlsplit

import msgspec
from botocore.awsrequest import AWSResponse
from botocore.exceptions import BotoCoreError, ClientError
from botocore.httpsession import ProxyConfiguration
from botocore.utils import get_environ_proxies
from urllib3 import HTTPResponse

from compactor.pieces import Body
from compactor.stores.bodies import TimeIsUp
from compactor.stores.connections import Connections, Origin, Received, Sent
from compactor.stores.retries import silence_seconds
from compactor.stores.sessions import ca_bundle, session_of
from compactor.stores.signing import GetSigner, Keys, signed

if TYPE_CHECKING:
    from types_boto3_s3.client import S3Client

Found = TypeVar("Found")

OK = 200
USER_AGENT = "s3-compactor"
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
# Of a body, as a header; with one botocore leaves the body unsigned over TLS, too.
_CHECKSUMS = frozenset({"x-amz-checksum-crc32"})
_this_thread = threading.local()


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


class _Route(msgspec.Struct, frozen=True):
    """Where the requests of a bucket go.

    Attributes:
        host: as the header of that name tells it.
        path: encoded, of the bucket; ends with a slash.
        access_key: that signed the sample.
    """

    origin: Origin
    host: str
    path: str
    region: str
    access_key: str

    @classmethod
    def of(cls, prepared: Any) -> Self | None:
        """The route of a prepared request for the sample key; None where it is unusual."""
        headers = {name.lower(): _text(value) for name, value in prepared.headers.items()}
        url = urlsplit(prepared.url)
        by = _SIGNED_BY.match(headers.get("authorization", ""))
        usual = by is not None and headers.keys() <= _USUAL_HEADERS and not url.query
        if by is None or not usual or not url.path.endswith(f"/{_SAMPLE}") or not url.hostname:
            return None
        secure = url.scheme == "https"
        default = 443 if secure else 80
        # http.client would take the end of an IPv6 address for a port that is not told.
        origin = Origin(secure, url.hostname, url.port or default)
        host = url.netloc.rpartition(":")[0] if url.port == default else url.netloc
        return cls(origin, host, url.path.removesuffix(_SAMPLE), by[2], by[1])


class GetWay:
    """Where whole objects of a bucket are asked for.

    Attributes:
        bucket, origin: as they are.
        is_known: there was an answer, whatever it was.
        is_unusual: answers of successes are not those of S3.
    """

    def __init__(self, bucket: str, route: _Route, keys: Callable[[], Keys]) -> None:
        self.bucket = bucket
        self.origin = route.origin
        self.is_known = self.is_unusual = False
        self._route = route
        self._keys = keys
        self._latest: tuple[int, GetSigner] | None = None

    def request(self, key: str, etag: str) -> bytes:
        """A signed GET; thread safe.

        Args:
            key: of the object.
            etag: as it was listed, without quotes, of letters, digits and hyphens.

        Raises:
            ConnectionError: there are no credentials to sign with, now.
        """
        now, route, latest = int(time.time()), self._route, self._latest
        # All at once: nobody else may sign with the keys and the moment of long ago meanwhile.
        if latest is None or latest[0] != now:
            at = datetime.fromtimestamp(now, UTC)
            signer = GetSigner(route.host, USER_AGENT, self._keys_now(), route.region, at)
            latest = self._latest = now, signer
        return latest[1].request(route.path + quote(key, safe="/~"), etag)

    def _keys_now(self) -> Keys:
        try:
            return self._keys()
        except Exception as error:
            # Whoever renews them raises what they like.
            raise ConnectionError("no credentials") from error


class Direct:
    """Sends requests for a client of botocore; thread safe.

    Args:
        client: whose endpoint and credentials serve; its requests may be answered by what came
            to a request of this.

    Attributes:
        connections: on which they are sent.
    """

    def __init__(self, client: S3Client) -> None:
        events: Any = client.meta.events
        events.register("before-send.s3", _instead, unique_id="compactor-direct")
        self._client = client
        self.connections = Connections(lambda: ca_bundle(session_of(client)))
        self._credentials: Any = None
        self._routes: dict[str, _Route | None] = {}
        self._gets: dict[str, GetWay] = {}

    def ask(
        self,
        asked: Asked,
        sound: Callable[[Received], Found | None],
        otherwise: Callable[[], Found],
        time_is_up: TimeIsUp,
    ) -> Found:
        """The answer to a request, asked once.

        Args:
            asked: the request.
            sound: reads an answer that is what was hoped for; None for any other.
            otherwise: makes the same request through the client.
            time_is_up: for the bodies of both.

        Raises:
            BotoCoreError: there was no answer, or the request went out too slowly.
            ClientError: it is an error.
            Again: it came too slowly.
        """
        route = self._route(asked.bucket)
        if route is None:
            return otherwise()
        received = self.connections.ask(
            route.origin, self._signed(asked, route), silence_seconds(), time_is_up
        )
        found = sound(received)
        if found is not None:
            return found
        with _answered_by(lambda request: _as_answer(request, received)) as answered:
            told = otherwise()
        if received.status != OK or len(answered) > 1:
            # It knows a way around what was an error here.
            self._routes[asked.bucket] = None
        return told

    def way_of_gets(self, bucket: str) -> GetWay | None:
        """Where whole objects are asked for; None where the client alone knows."""
        route = self._route(bucket)
        if route is None:
            return None
        return self._gets.setdefault(bucket, GetWay(bucket, route, self._keys))

    def _keys(self) -> Keys:
        frozen = self._credentials.get_frozen_credentials()
        return Keys(frozen.access_key, frozen.secret_key, frozen.token)

    def _signed(self, asked: Asked, route: _Route) -> Sent:
        path = route.path + quote(asked.key, safe="/~") if asked.key else _of_bucket(route.path)
        pairs = (f"{quote(k, safe='-_.~')}={quote(v, safe='-_.~')}" for k, v in asked.query.items())
        query = "&".join(sorted(pairs))
        # Hashed once is enough: over TLS nobody changes the bytes on their way, nor the checksum.
        twice = route.origin.secure and not _CHECKSUMS.isdisjoint(asked.headers)
        headers = signed(
            (asked.method, path, query),
            {**asked.headers, "host": route.host},
            None if twice else asked.body,
            keys=self._keys(),
            region=route.region,
            at=datetime.now(UTC),
        )
        headers["user-agent"] = USER_AGENT
        # Of a question without a value only the signature has the sign behind it.
        sent = query if "&" in query else query.removesuffix("=")
        return Sent(asked.method, f"{path}?{sent}" if sent else path, headers, asked.body)

    def _route(self, bucket: str) -> _Route | None:
        if bucket not in self._routes:
            self._routes[bucket] = self._learned(bucket)
        return self._routes[bucket]

    def _learned(self, bucket: str) -> _Route | None:
        if self._credentials is None:
            self._credentials = session_of(self._client).get_credentials()
        config: Any = self._client.meta.config
        if self._credentials is None or config.proxies or config.client_cert:
            return None
        try:
            with _answered_by(_as_nothing) as prepared:
                self._client.head_object(Bucket=bucket, Key=_SAMPLE)
        except (BotoCoreError, ClientError):
            return None
        route = _Route.of(prepared[0]) if prepared else None
        if route is None or _by_proxy(prepared[0].url):
            return None
        # The client may have been given others than those that are found here.
        own = self._credentials.get_frozen_credentials().access_key
        return route if route.access_key == own else None


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _by_proxy(url: str) -> bool:
    # Where only NO_PROXY is set, that is among the proxies, too.
    return ProxyConfiguration(get_environ_proxies(url)).proxy_url_for(url) is not None


def _of_bucket(path: str) -> str:
    return path.rstrip("/") or "/"


def _as_answer(request: Any, received: Received) -> AWSResponse:
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


def _as_nothing(request: Any) -> AWSResponse:
    return _as_answer(request, Received(200, {}, b""))


@contextmanager
def _answered_by(answer: Callable[[Any], AWSResponse]) -> Iterator[list[Any]]:
    """This thread's next request of botocore is not sent, but answered so.

    Gives the requests that were prepared: those behind the first are sent.
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
    return answer(request) if len(prepared) == 1 else None
