"""A proxy in front of an S3 server that injects faults of networks and servers.

The client does not know it: the proxy's address is its endpoint, and the signature, which covers
the host, is forwarded unchanged. The fault of a request is drawn from the seed and the request's
identity (operation, path, part, and how many such requests came before), so the draw does not
depend on how the threads and processes of a run interleave.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from urllib.parse import urlsplit

from tests.support.dropped import without
from tests.support.faults import IN_ANSWER, REFUSALS, Fault, Request, Rule, flipped
from tests.support.server_differences import Condition

Act = Callable[[Request, Random], bool]
"""Does something to the machine when a request comes; False when it could not."""

_BURST = (3, 8)
_SLOWEST_SECONDS = 0.05
_SILENCE_SECONDS = 0.5
# S3 refuses requests that are signed this far from its own time.
_SKEW_SECONDS = 15 * 60
_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "expect"})


class FaultProxy:
    """A running proxy; without rules it forwards everything.

    Args:
        upstream: URL of the S3 server.
        acts: functions for faults that affect the machine rather than the request.

    Attributes:
        endpoint_url: where it listens.
        counts: injected faults, by kind.
        silence_seconds: how long the connection stays open if there is no answer.
        drops: conditions that are removed from every request, until changed.
        demands: headers without which writes are denied, until changed, by lower-case name.
        denied: paths of the writes that were denied.
    """

    def __init__(self, upstream: str, acts: Mapping[Fault, Act]) -> None:
        self.counts: Counter[Fault] = Counter()
        self.silence_seconds = _SILENCE_SECONDS
        self.drops: frozenset[Condition] = frozenset()
        self.demands: Mapping[str, str] = {}
        self.denied: list[str] = []
        self._acts = acts
        self._upstream = urlsplit(upstream).netloc
        self._lock = threading.Lock()
        self.use((), seed=0)
        self._server = _Server(self)
        self.endpoint_url = f"http://127.0.0.1:{self._server.server_port}"
        serve = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        serve.start()

    def use(self, rules: Sequence[Rule], *, seed: int) -> None:
        """Use these rules from now on, the first match first; counts are kept."""
        with self._lock:
            self._rules = tuple(rules)
            self._seed = seed
            self._seen: Counter[tuple[str, str, str]] = Counter()
            self._used: Counter[Rule] = Counter()
            self._refuse_next = 0

    def end(self) -> None:
        """Close the port."""
        self._server.shutdown()
        self._server.server_close()

    def draw(self, request: Request, *, body: bool) -> tuple[Fault | None, Random]:
        """Return the fault of this request, and the random generator for its details."""
        identity = (request.operation, request.path, request.part)
        with self._lock:
            self._seen[identity] += 1
            name = f"{self._seed} {identity} {self._seen[identity]}"
            if self._refuse_next:
                self._refuse_next -= 1
                return Fault.SLOW_DOWN, Random(name)
            for rule in self._rules:
                dice = Random(f"{name} {rule.fault}")
                if self._befalls(rule, request, dice, body=body):
                    self._used[rule] += 1
                    self._refuse_next = rule.fault is Fault.SLOW_DOWN and dice.randint(*_BURST)
                    return rule.fault, dice
        return None, Random(name)

    def _befalls(self, rule: Rule, request: Request, dice: Random, *, body: bool) -> bool:
        exhausted = rule.most is not None and self._used[rule] >= rule.most
        return not exhausted and rule.fits(request, body=body) and dice.random() < rule.share

    def denies(self, request: Request, headers: Message) -> bool:
        """Return whether this write lacks a header, as S3 evaluates a bucket policy for it.

        Results of a Map Run are written by Step Functions itself, which sends no such header.
        """
        if request.operation not in {"PUT", "CREATE"} or "/results/" in request.path:
            return False
        denied = any(headers.get(name) != value for name, value in self.demands.items())
        if denied:
            self.denied.append(request.path)
        return denied

    def happened(self, fault: Fault) -> None:
        """Count a fault that was really injected."""
        with self._lock:
            self.counts[fault] += 1

    def act(self, fault: Fault, request: Request, dice: Random) -> bool:
        """Apply a fault to the machine; return False if nothing was done."""
        act = self._acts.get(fault)
        done = act is not None and act(request, dice)
        if done:
            self.happened(fault)
        return done

    def connect(self) -> http.client.HTTPConnection:
        """Return a new connection to the server."""
        return http.client.HTTPConnection(self._upstream, timeout=120)


def _is_skewed(request: Request) -> bool:
    if not request.date:
        return False
    signed = datetime.strptime(request.date, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    return abs(signed.timestamp() - time.time()) > _SKEW_SECONDS


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512

    def __init__(self, proxy: FaultProxy) -> None:
        self.proxy = proxy
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, *_: object) -> None:
        """Ignore clients that disconnected or were disconnected: that is intended."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_any(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        request = Request.read(self.command, self.path, self.headers, self.client_address[1])
        fault, dice = self.server.proxy.draw(request, body=length > 1)
        if fault is Fault.RESET:
            self._reset(fault)
            return
        body = self.rfile.read(length)
        if fault is Fault.CLOCK_JUMP:
            # This request was still sent with the old time.
            self.server.proxy.act(fault, request, dice)
            fault = None
        if fault is None and _is_skewed(request):
            fault = Fault.SKEWED
        if self.server.proxy.denies(request, self.headers):
            self._answer_error(403, "AccessDenied", "explicit deny in a resource-based policy")
        elif fault is not None and fault in REFUSALS:
            self._refuse(fault)
        elif fault is Fault.HALF_REQUEST:
            self._send_half(body)
            self._reset(fault)
        elif fault is Fault.SILENCE:
            time.sleep(self.server.proxy.silence_seconds)
            self._reset(fault)
        else:
            self._pass_on(request, body, fault, dice)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = do_any  # noqa: N815 - http's names

    def log_message(self, *_: object) -> None:
        """Log nothing."""

    def _pass_on(self, request: Request, body: bytes, fault: Fault | None, dice: Random) -> None:
        proxy = self.server.proxy
        if fault is Fault.LATENCY:
            proxy.happened(fault)
            time.sleep(dice.uniform(0, _SLOWEST_SECONDS))
        elif fault is Fault.FLIPPED_REQUEST:
            proxy.happened(fault)
            body = flipped(body, dice)
        elif fault is Fault.KILLED_BEFORE and proxy.act(fault, request, dice):
            self.close_connection = True
            return
        answer, content = self._ask(request, body)
        if fault is Fault.KILLED_AFTER:
            proxy.act(fault, request, dice)
        if fault is Fault.LOST_ANSWER:
            self._reset(fault)
            return
        self._answer(answer, content, fault, dice)

    def _ask(self, request: Request, body: bytes) -> tuple[http.client.HTTPResponse, bytes]:
        proxy = self.server.proxy
        with contextlib.closing(proxy.connect()) as upstream:
            headers = {n: v for n, v in self.headers.items() if n.lower() not in _HOP}
            if proxy.drops:
                target = f"http://{upstream.host}:{upstream.port}{self.path}"
                headers, body = without(proxy.drops, request, target, headers, body)
            upstream.request(self.command, self.path, body or None, headers)
            answer = upstream.getresponse()
            return answer, answer.read()

    def _send_half(self, body: bytes) -> None:
        """Send the head and half of the body to the server, then disconnect."""
        with contextlib.closing(self.server.proxy.connect()) as upstream:
            upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in _HOP:
                    upstream.putheader(name, value)
            upstream.endheaders()
            upstream.send(body[: len(body) // 2])

    def _answer(
        self,
        answer: http.client.HTTPResponse,
        content: bytes,
        fault: Fault | None,
        dice: Random,
    ) -> None:
        self.send_response_only(answer.status)
        length = str(len(content))
        for name, value in answer.getheaders():
            if name.lower() == "content-length":
                length = value if self.command == "HEAD" else length
            elif name.lower() not in _HOP:
                self.send_header(name, value)
        if answer.status not in {204, 304}:
            self.send_header("Content-Length", length)
        self.end_headers()
        if len(content) > 1 and fault in IN_ANSWER and answer.status < 300:
            self._damage(content, fault, dice)
        elif content:
            self.wfile.write(content)

    def _damage(self, content: bytes, fault: Fault | None, dice: Random) -> None:
        if fault is Fault.FLIPPED_ANSWER:
            self.server.proxy.happened(fault)
            self.wfile.write(flipped(content, dice))
            return
        self.wfile.write(content[: dice.randrange(1, len(content))])
        if fault is Fault.CUT_ANSWER:
            self._reset(fault)
        elif fault is Fault.SHORT_ANSWER:
            self.server.proxy.happened(fault)
            self.close_connection = True

    def _refuse(self, fault: Fault) -> None:
        self.server.proxy.happened(fault)
        self._answer_error(*REFUSALS[fault])

    def _answer_error(self, status: int, code: str, message: str) -> None:
        body = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>".encode()
        self.send_response_only(status)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _reset(self, fault: Fault) -> None:
        self.server.proxy.happened(fault)
        self.close_connection = True
        # Closing with zero linger sends a reset; detached, so that no shutdown is sent before it.
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        os.close(self.connection.detach())


@contextlib.contextmanager
def fault_proxy(upstream: str, acts: Mapping[Fault, Act] | None = None) -> Iterator[FaultProxy]:
    """Run a proxy within the block."""
    proxy = FaultProxy(upstream, acts or {})
    try:
        yield proxy
    finally:
        proxy.end()
