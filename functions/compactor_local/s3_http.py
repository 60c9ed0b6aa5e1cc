"""A WSGI server with persistent connections, for thousands of small requests.

werkzeug's server closes every connection after its first response, and parses headers as email
headers: 1 ms of CPU per request, plus the client's cost of reconnecting.
"""

from __future__ import annotations

import io
import socketserver
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable
from email.utils import formatdate
from functools import lru_cache, partial
from typing import IO, Any, cast
from urllib.parse import unquote

from moto.core.request import (
    PRESERVED_HEADER_NAMES_ENVIRON_KEY,
    environ_key_for_header,
    should_preserve_original_header_name,
)
from werkzeug.serving import DechunkedInput

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
_Headers = list[tuple[str, str]]

_BLANK_LINE = b"\r\n\r\n"
_LONGEST_LINE = 65_536
_MOST_HEADERS = 200
_NO_BODY = ("204", "304")
_JOINED_BYTES = 65_536


class _Malformed(Exception):
    """The received bytes are not an HTTP/1.x request."""


class Server(socketserver.ThreadingTCPServer):
    """Serves a WSGI application, with a thread per connection.

    Args:
        application: what to serve.
        port: of the loopback interface; 0 for any free one.

    Attributes:
        environ: entries common to every request.
    """

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, application: Application, port: int) -> None:
        super().__init__(("127.0.0.1", port), _Connection)
        self.application = application
        self.environ = {
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": "http",
            "wsgi.errors": sys.stderr,
            "wsgi.multithread": True,
            "wsgi.multiprocess": False,
            "wsgi.run_once": False,
            "SCRIPT_NAME": "",
            "SERVER_NAME": "127.0.0.1",
            "SERVER_PORT": str(self.port),
        }

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self.server_address[1])

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log the error that ended a connection, unless the client disconnected."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


def serve(application: Application, port: int = 0) -> int:
    """Serve until the process ends; returns the loopback port (0: any free)."""
    server = Server(application, port)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.port


class _Connection(socketserver.StreamRequestHandler):
    """One connection: serves requests sequentially."""

    # With Nagle's algorithm, a body sent after its head would wait for an acknowledgement.
    disable_nagle_algorithm = True
    server: Server

    def handle(self) -> None:
        try:
            while self._serve_one():
                pass
        except _Malformed:
            self.wfile.write(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")

    def _serve_one(self) -> bool:
        """Answer one request; returns False when the connection ends."""
        line, headers = _head(cast("io.BufferedReader", self.rfile))
        if not line:
            return False
        environ = self._environ(line)
        environ.update(headers)
        stays = _stays_open(environ)
        if not self._take_body(environ):
            return False
        answer = _Answer(environ["REQUEST_METHOD"])
        try:
            body = answer.body(self.server.application(environ, answer.start))
        except Exception:
            traceback.print_exc()
            answer, body, stays = _Answer.of_failure(), b"", False
        self._send(answer, body, stays=stays)
        return stays

    def _environ(self, line: str) -> dict[str, Any]:
        words = line.split()
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            raise _Malformed
        method, target, version = words
        path, _, query = target.partition("?")
        if "://" in path:
            path = "/" + path.partition("://")[2].partition("/")[2]
        environ: dict[str, Any] = {
            **self.server.environ,
            "REQUEST_METHOD": method,
            "PATH_INFO": unquote(path, "latin-1") if "%" in path else path,
            "QUERY_STRING": query,
            "REQUEST_URI": target,
            "RAW_URI": target,
            "REMOTE_ADDR": self.client_address[0],
            "REMOTE_PORT": self.client_address[1],
            "SERVER_PROTOCOL": version,
        }
        return environ

    def _take_body(self, environ: dict[str, Any]) -> bool:
        """Read the whole body into one buffer; returns False if it was truncated."""
        if environ.get("HTTP_EXPECT", "").lower() == "100-continue":
            self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        length = environ.get("CONTENT_LENGTH", "0")
        if "chunked" in environ.get("HTTP_TRANSFER_ENCODING", "").lower():
            body = DechunkedInput(cast("IO[bytes]", self.rfile)).read()
        elif length.isdecimal():
            body = self.rfile.read(int(length))
            if len(body) < int(length):
                return False
        else:
            raise _Malformed
        environ["wsgi.input"] = io.BytesIO(body)
        environ["wsgi.input_terminated"] = True
        return True

    def _send(self, answer: _Answer, body: bytes, *, stays: bool) -> None:
        head = answer.head(len(body), stays=stays)
        if answer.method == "HEAD":
            body = b""
        if len(body) <= _JOINED_BYTES:
            self.connection.sendall(head + body)
        else:
            self.connection.sendall(head)
            self.connection.sendall(body)


class _Answer:
    """The response of an application to one request.

    Attributes:
        method: of the request.
    """

    def __init__(self, method: str) -> None:
        self.method = method
        self._status = ""
        self._headers: _Headers = []
        self._written: list[bytes] = []

    @classmethod
    def of_failure(cls) -> _Answer:
        """Return the response of an application that failed."""
        answer = cls("")
        answer.start("500 Internal Server Error", [])
        return answer

    def start(self, status: str, headers: _Headers, _: Any = None) -> Callable[[bytes], None]:
        """WSGI's ``start_response``."""
        self._status, self._headers = status, headers
        return self._written.append

    def body(self, given: Iterable[bytes]) -> bytes:
        """Return all bytes of the body; a single piece is not copied."""
        try:
            pieces = [*given]
        finally:
            close = getattr(given, "close", None)
            if close is not None:
                close()
        pieces = self._written + pieces
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def head(self, length: int, *, stays: bool) -> bytes:
        """Return the status line and headers."""
        names = {name.lower() for name, _ in self._headers}
        lines = [f"HTTP/1.1 {self._status}"]
        lines += [f"{name}: {value}" for name, value in self._headers]
        if "date" not in names:
            lines.append(f"Date: {_date(int(time.time()))}")
        bodiless = self.method == "HEAD" or self._status.startswith(_NO_BODY)
        if "content-length" not in names and not bodiless:
            lines.append(f"Content-Length: {length}")
        if not stays:
            lines.append("Connection: close")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


@lru_cache(2)
def _date(seconds: int) -> str:
    return formatdate(seconds, usegmt=True)


def _head(stream: io.BufferedReader) -> tuple[str, dict[str, Any]]:
    """Return a request's first line and its headers in WSGI's form; empty at the end."""
    arrived = stream.peek()
    end = arrived.find(_BLANK_LINE)
    if end < 0 or arrived.count(b"\n", 0, end) != arrived.count(b"\r\n", 0, end):
        # The head is in several pieces, has bare newlines, or the connection has ended.
        line = _line(stream)
        return line, _headers(partial(_line, stream)) if line else {}
    lines = iter(stream.read(end + len(_BLANK_LINE)).decode("latin-1").split("\r\n"))
    return next(lines), _headers(partial(next, lines))


def _line(stream: io.BufferedIOBase) -> str:
    line = stream.readline(_LONGEST_LINE)
    if line and not line.endswith(b"\n"):
        raise _Malformed
    return line.rstrip(b"\r\n").decode("latin-1")


def _headers(following: Callable[[], str]) -> dict[str, Any]:
    """Return the headers of a request in WSGI's form.

    Args:
        following: returns the next line; an empty one ends the headers.
    """
    found: dict[str, Any] = {}
    underscored: _Headers = []
    for _ in range(_MOST_HEADERS):
        line = following()
        if not line:
            _keep_names(underscored, found)
            return found
        name, colon, value = line.partition(":")
        if not colon or not name or name[0] in " \t":
            raise _Malformed
        value = value.strip()
        if "_" in name:
            underscored.append((name, value))
            continue
        key = _environ_name(name)
        if key in found and key.startswith("HTTP_"):
            value = f"{found[key]},{value}"
        found[key] = value
    raise _Malformed


@lru_cache(1_000)
def _environ_name(name: str) -> str:
    """Return the WSGI name of a header."""
    key = name.upper().replace("-", "_")
    return key if key in {"CONTENT_TYPE", "CONTENT_LENGTH"} else f"HTTP_{key}"


def _keep_names(underscored: _Headers, found: dict[str, Any]) -> None:
    """Pass names with underscores to moto: WSGI cannot distinguish them from hyphens."""
    names: dict[str, str] = {}
    for name, value in underscored:
        key = environ_key_for_header(name)
        if not should_preserve_original_header_name(name) or (key in found and key not in names):
            continue
        found[key] = f"{found[key]},{value}" if key in names else value
        names.setdefault(key, name)
    found[PRESERVED_HEADER_NAMES_ENVIRON_KEY] = names


def _stays_open(environ: dict[str, Any]) -> bool:
    if environ["SERVER_PROTOCOL"] == "HTTP/1.0" or "HTTP_TRANSFER_ENCODING" in environ:
        # Chunks may be followed by trailers, which this server does not read.
        return False
    return "close" not in environ.get("HTTP_CONNECTION", "").lower()
