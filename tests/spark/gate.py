"""A proxy before the embedded S3, so that a test can hold back or refuse single requests.

What is under test knows nothing of it: its endpoint is the proxy's address.
"""

from __future__ import annotations

import contextlib
import http.client
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length"})
_DENIED = b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"


@dataclass(frozen=True, slots=True)
class Request:
    """One request: ``path`` is ``/bucket/key``, decoded."""

    method: str
    path: str
    query: str


class Denied(Exception):
    """Raised by a rule: answer 403."""


Rule = Callable[[Request], None]


class Gate:
    """Every request passes ``rules`` before it goes on; a rule may wait, or raise Denied."""

    def __init__(self, upstream: str) -> None:
        self.rules: list[Rule] = []
        self.requests: list[Request] = []
        self._upstream = urlsplit(upstream).netloc
        gate = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                gate.serve(self)

            do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = handle_any  # noqa: N815 - http's names

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.endpoint_url = f"http://127.0.0.1:{self._server.server_port}"
        self._connections = threading.local()
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def end(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def count(self, method: str, ending: str) -> int:
        """How many requests of this method there were for keys that end so."""
        return sum(one.method == method and one.path.endswith(ending) for one in self.requests)

    def serve(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        parts = urlsplit(handler.path)
        request = Request(handler.command, unquote(parts.path), parts.query)
        self.requests.append(request)
        # Whoever waits for an answer may be dead when it comes.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            try:
                for rule in tuple(self.rules):
                    rule(request)
            except Denied:
                self._answer(handler, 403, [("Content-Type", "application/xml")], _DENIED)
                return
            self._forward(handler, body)

    def _forward(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        upstream = http.client.HTTPConnection(self._upstream, timeout=120)
        try:
            upstream.request(handler.command, handler.path, body, dict(handler.headers.items()))
            answer = upstream.getresponse()
            self._answer(handler, answer.status, answer.getheaders(), answer.read())
        finally:
            upstream.close()

    def _answer(
        self,
        handler: BaseHTTPRequestHandler,
        status: int,
        headers: list[tuple[str, str]],
        body: bytes,
    ) -> None:
        handler.send_response_only(status)
        length = str(len(body))
        for name, value in headers:
            if name.lower() == "content-length" and handler.command == "HEAD":
                length = value
            elif name.lower() not in _HOP:
                handler.send_header(name, value)
        handler.send_header("Content-Length", length)
        handler.end_headers()
        if handler.command != "HEAD":
            handler.wfile.write(body)


@contextlib.contextmanager
def gate(upstream: str) -> Iterator[Gate]:
    """A gate for the length of the block."""
    running = Gate(upstream)
    try:
        yield running
    finally:
        running.end()
