"""One libcurl transfer: a signed GET and its answer. The only module that imports pycurl."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from compactor.errors import CompactorError, InvalidInput
from compactor.s3.translate import Again

try:
    import pycurl
except ImportError:  # not every platform has a wheel
    pycurl = None
__all__ = [
    "IS_INSTALLED",
    "USER_AGENT",
    "Done",
    "Handle",
    "Keys",
    "Received",
    "Request",
    "Site",
    "failure",
    "pycurl",
]

#: Whether pycurl is installed.
IS_INSTALLED = pycurl is not None
USER_AGENT = "s3-compactor"
_CONNECT_MS = 5_000
_MOST_SECONDS = 86_400
_BUFFER_BYTES = 64 * 1024
# Room for the body of an error answer. libcurl itself refuses heads of more than 300 KB.
_REFUSAL_BYTES = 64 * 1024
# Size limits are rounded up, so that small sources share one and it is rarely set again.
_UP_TO = 16 * 1024 - 1


_BLANK_LINE = b"\r\n\r\n"
_ETAG = re.compile(rb"\r\netag:[ \t]*([^\r\n]*)", re.IGNORECASE)


class Keys(NamedTuple):
    """Credentials as they are at one moment."""

    access_key: str
    secret_key: str
    token: str | None = None


class Site(NamedTuple):
    """What the requests for one bucket have in common.

    Attributes:
        region: the region for which requests are signed.
        ca_bundle: file of trusted certificate authorities; empty without TLS.
        proxy: URL of the proxy; empty for no proxy.
    """

    region: str
    ca_bundle: str
    proxy: str


class Request(NamedTuple):
    """A GET to be sent.

    Attributes:
        url: encoded URL.
        headers: lines to be signed, each ``name: value``.
        seconds: limit from its start to the end of its answer.
        most_bytes: maximum size of a successful answer's body.
    """

    site: Site
    keys: Keys
    url: str
    headers: Sequence[bytes]
    seconds: float
    most_bytes: int


class Received(NamedTuple):
    """A complete answer.

    Attributes:
        head: raw status lines and headers, including those of interim answers and proxies.
    """

    status: int
    head: bytes
    body: bytes

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers by lower-case name."""
        return _fields(self.head)

    @property
    def etag(self) -> str | None:
        """The ETag header, or None."""
        # For a single head without trailers, the pattern takes a tenth of the time.
        is_alone = self.head.find(_BLANK_LINE) == len(self.head) - len(_BLANK_LINE)
        found = _ETAG.search(self.head) if is_alone else None
        return found[1].decode("latin-1") if found else self.headers.get("etag")


#: Called with the answer to a request, or with the error.
Done = Callable[[Received | Exception], None]


class Handle:
    """A reusable libcurl transfer.

    Attributes:
        curl: the Curl object, to be added to a CurlMulti once a request is set.
        done: called when the transfer has ended.
    """

    __slots__ = (
        "_body",
        "_head",
        "_keys",
        "_limits",
        "_site",
        "curl",
        "done",
    )

    def __init__(self) -> None:
        self.curl: Any = pycurl.Curl()
        self.done: Done = _ignore
        self._head, self._body = io.BytesIO(), io.BytesIO()
        self._site: Site | None = None
        self._keys: Keys | None = None
        self._limits: tuple[int, int] | None = None

    def set(self, request: Request, done: Done) -> None:
        """Prepare the transfer of a request."""
        self.done = done
        curl = self.curl
        if self._site is not request.site:
            if self._site is not None:
                curl.reset()
            self._prepare(request.site)
            self._keys = self._limits = None
        if self._keys != request.keys:
            self._keys = request.keys
            curl.setopt(pycurl.USERNAME, request.keys.access_key)
            curl.setopt(pycurl.PASSWORD, request.keys.secret_key)
        curl.setopt(pycurl.URL, request.url)
        curl.setopt(pycurl.HTTPHEADER, request.headers)
        limits = (
            max(1, int(min(request.seconds, _MOST_SECONDS) * 1000)),
            (request.most_bytes | _UP_TO) + _REFUSAL_BYTES,
        )
        if limits != self._limits:
            self._limits = limits
            curl.setopt(pycurl.TIMEOUT_MS, limits[0])
            curl.setopt(pycurl.MAXFILESIZE_LARGE, limits[1])

    def _prepare(self, site: Site) -> None:
        curl, self._site = self.curl, site
        curl.setopt(pycurl.AWS_SIGV4, f"aws:amz:{site.region}:s3")
        curl.setopt(pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS)
        curl.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_1_1)
        # Set even if empty, so that libcurl does not read the environment itself.
        curl.setopt(pycurl.PROXY, site.proxy)
        curl.setopt(pycurl.NOPROXY, "")
        if site.ca_bundle:
            curl.setopt(pycurl.CAINFO, site.ca_bundle)
        curl.setopt(pycurl.SSL_VERIFYPEER, 1)
        curl.setopt(pycurl.SSL_VERIFYHOST, 2)
        curl.setopt(pycurl.SSLVERSION, pycurl.SSLVERSION_TLSv1_2)
        curl.setopt(pycurl.USERAGENT, USER_AGENT)
        # Objects stored with a Content-Encoding are returned as stored.
        curl.setopt(pycurl.ACCEPT_ENCODING, "identity")
        curl.setopt(pycurl.HTTP_CONTENT_DECODING, 0)
        curl.setopt(pycurl.NOSIGNAL, 1)
        # S3's DNS returns different addresses each time, which spreads connections over them.
        curl.setopt(pycurl.DNS_CACHE_TIMEOUT, 0)
        curl.setopt(pycurl.CONNECTTIMEOUT_MS, _CONNECT_MS)
        curl.setopt(pycurl.BUFFERSIZE, _BUFFER_BYTES)
        curl.setopt(pycurl.HEADERFUNCTION, self._head.write)
        curl.setopt(pycurl.WRITEFUNCTION, self._body.write)

    def received(self) -> Received:
        """Return the answer of a transfer that has ended without an error."""
        status = self.curl.getinfo(pycurl.RESPONSE_CODE)
        return Received(status, self._head.getvalue(), self._body.getvalue())

    def clear(self) -> None:
        """Release the last request and answer."""
        self.done = _ignore
        for one in (self._head, self._body):
            one.seek(0)
            one.truncate()


def _fields(head: bytes) -> dict[str, str]:
    """Return the headers of the final answer, without interim answers', a proxy's or trailers."""
    found: dict[str, str] = {}
    is_over = False
    for line in head.decode("latin-1").replace("\r", "").split("\n"):
        if line.startswith("HTTP/"):
            found.clear()
            is_over = False
        elif not line:
            is_over = True
        elif not is_over:
            name, _, value = line.partition(":")
            found[name.lower()] = value.strip(" \t")
    return found


def failure(code: int, text: str) -> CompactorError:
    """Return the error for a failed transfer, by libcurl's code and text."""
    if code in {pycurl.E_PEER_FAILED_VERIFICATION, pycurl.E_SSL_CACERT_BADFILE}:
        accepted = "an endpoint whose certificate this machine trusts"
        return InvalidInput("endpoint", text, accepted)
    return Again(text or f"libcurl's error {code}", cut_short=code == pycurl.E_PARTIAL_FILE)


def _ignore(_: Received | Exception) -> None:
    """Do nothing: no caller waits for the answer."""
