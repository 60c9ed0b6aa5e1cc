"""An HTTP server that answers as a test scripts it, and records its requests."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from xml.sax.saxutils import escape


@dataclass(frozen=True)
class Asked:
    """One request; header names are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Answer:
    """One answer. If ``sent`` is given, the connection closes after that many bytes of the body.

    Status 0 closes the connection without an answer.
    """

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    sent: int | None = None


def refusal(status: int, code: str, message: str = "") -> Answer:
    """Return an error as S3 sends it."""
    told = escape(message or f"message of {code}")
    body = f"<Error><Code>{escape(code)}</Code><Message>{told}</Message></Error>"
    return Answer(status, body.encode(), {"Content-Type": "application/xml"})


@dataclass
class ScriptedS3:
    """The server's URL, its answers, and the requests that it got."""

    url: str = ""
    answer: Callable[[Asked], Answer] = lambda asked: Answer()
    asked: list[Asked] = field(default_factory=list)

    def always(self, answer: Answer) -> None:
        """Give this answer to every request."""
        self.answer = lambda asked: answer

    @property
    def last(self) -> Asked:
        """The last request."""
        return self.asked[-1]


@contextmanager
def scripted_s3() -> Iterator[ScriptedS3]:
    """Run a server on a free port; it ends with the context."""
    script = ScriptedS3()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Head and body are sent together: otherwise the body waits 40 ms for the client's ACK.
        wbufsize = -1

        def serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            asked = Asked(self.command, self.path, headers, body)
            script.asked.append(asked)
            self.reply(script.answer(asked))

        do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = serve  # noqa: N815 - http.server's names

        def handle_expect_100(self) -> bool:
            sound = super().handle_expect_100()
            self.wfile.flush()
            return sound

        def reply(self, answer: Answer) -> None:
            if not answer.status:
                self.close_connection = True
                return
            # The server's own date is only sent if the test gives none.
            own_date = "Date" not in answer.headers
            (self.send_response if own_date else self.send_response_only)(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(answer.body[: answer.sent])
            self.close_connection |= answer.sent is not None

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    script.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.005,), daemon=True)
    thread.start()
    try:
        yield script
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
