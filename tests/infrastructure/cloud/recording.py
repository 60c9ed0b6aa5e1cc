"""What a server was asked, by whom and with what answer; a WSGI middleware.

Every request is signed with an access key of its sender's own, so that what libraries send on
their own account (retries, reads from threads) is known as well as what was called.
"""

from __future__ import annotations

import io
import re
import threading
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

_CREDENTIAL = re.compile(r"Credential=([^/,]+)/\d+/[^/]+/([^/]+)/aws4_request")
# The names of what to delete stand in the body; those of requests with a target, too. Nothing else
# there is of interest.
_KEPT_BODIES = {"delete", "delete="}


@dataclass(frozen=True, slots=True)
class Request:
    """One request of a signed protocol.

    Attributes:
        sender: access key.
        service: as the signature names it, ``s3``.
        method: of HTTP.
        path: decoded.
        query: as sent.
        headers: of Amazon's own, in lower case, without their common ``x-amz-``.
        body: of requests whose resources are named there; else empty.
        status: of the answer.
    """

    sender: str
    service: str
    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: str
    status: int


class Recorder:
    """Keeps every signed request that passes."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._lock = threading.Lock()
        self._requests: list[Request] = []

    def __call__(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        """Serve one request."""
        named = "HTTP_X_AMZ_TARGET" in environ or environ.get("QUERY_STRING") in _KEPT_BODIES
        body = _read_body(environ) if named else b""

        def note(status: str, *rest: Any) -> Any:
            self._note(environ, body, int(status[:3]))
            return start_response(status, *rest)

        return self._application(environ, note)

    def take(self) -> list[dict[str, Any]]:
        """Everything since the last time, ready for JSON."""
        with self._lock:
            taken, self._requests = self._requests, []
        return [asdict(one) for one in taken]

    def _note(self, environ: dict[str, Any], body: bytes, status: int) -> None:
        signed = _CREDENTIAL.search(environ.get("HTTP_AUTHORIZATION", ""))
        if signed is None:
            return
        headers = {
            name[11:].lower().replace("_", "-"): value
            for name, value in environ.items()
            if name.startswith("HTTP_X_AMZ_")
        }
        # WSGI hands bytes over as Latin-1.
        path = environ["PATH_INFO"].encode("latin-1").decode("utf-8", "replace")
        request = Request(
            sender=signed[1],
            service=signed[2],
            method=environ["REQUEST_METHOD"],
            path=path,
            query=environ.get("QUERY_STRING", ""),
            headers=headers,
            body=body.decode("utf-8", "replace"),
            status=status,
        )
        with self._lock:
            self._requests.append(request)


def _read_body(environ: dict[str, Any]) -> bytes:
    body: bytes = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    environ["wsgi.input"] = io.BytesIO(body)
    return body
