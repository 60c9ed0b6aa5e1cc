"""The proxy itself: a client sees the fault that was asked for, and the seed decides which."""

from __future__ import annotations

import http.client
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import SimpleQueue
from random import Random

import pytest

from tests.support.fault_proxy import FaultProxy, fault_proxy
from tests.support.faults import REFUSALS, Fault, Request, Rule

BODY = b"the body of an object " * 100


class Upstream(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    received: SimpleQueue[bytes]

    def do_any(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        self.received.put(self.rfile.read(length))
        self.send_response(200)
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY)

    do_GET = do_PUT = do_POST = do_any  # noqa: N815 - http's names

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def received():
    return SimpleQueue()


@pytest.fixture
def proxy(received):
    handler = type("Handler", (Upstream,), {"received": received})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    with fault_proxy(f"http://127.0.0.1:{server.server_port}") as running:
        yield running
    server.shutdown()
    server.server_close()


def ask(proxy: FaultProxy, method: str = "PUT", path: str = "/b/k", **headers: str):
    client = http.client.HTTPConnection(proxy.endpoint_url.removeprefix("http://"), timeout=60)
    try:
        client.request(method, path, BODY if method == "PUT" else None, headers)
        answer = client.getresponse()
        return answer.status, answer.read()
    finally:
        client.close()


def use(proxy: FaultProxy, fault: Fault) -> None:
    proxy.silence_seconds = 0.01
    proxy.use([Rule(fault, 1.0)], seed=1)


def test_without_rules_everything_passes_as_it_is(proxy, received):
    assert ask(proxy) == (200, BODY)
    assert received.get(timeout=60) == BODY
    assert proxy.counts == Counter()


@pytest.mark.parametrize(
    ("fault", "error", "arrives"),
    [
        (Fault.RESET, ConnectionError, None),
        (Fault.HALF_REQUEST, ConnectionError, len(BODY) // 2),
        (Fault.SILENCE, ConnectionError, None),
        (Fault.LOST_ANSWER, ConnectionError, len(BODY)),
        (Fault.CUT_ANSWER, ConnectionError, len(BODY)),
        (Fault.SHORT_ANSWER, http.client.IncompleteRead, len(BODY)),
    ],
    ids=lambda value: value.name.lower() if isinstance(value, Fault) else "",
)
def test_a_connection_breaks_where_it_was_asked_for(proxy, received, fault, error, arrives):
    use(proxy, fault)
    with pytest.raises(error) as raised:
        ask(proxy)
    assert raised.type is not http.client.RemoteDisconnected, "that was an orderly goodbye"
    assert proxy.counts == Counter([fault])
    assert received.empty() if arrives is None else len(received.get(timeout=60)) == arrives


@pytest.mark.parametrize("fault", [f for f in REFUSALS if f is not Fault.SKEWED])
def test_a_refusal_is_s3s_own_and_does_not_reach_the_server(proxy, received, fault):
    use(proxy, fault)
    status, body = ask(proxy)
    assert (status, REFUSALS[fault][1].encode() in body) == (REFUSALS[fault][0], True)
    assert received.empty()


def test_a_burst_refuses_the_requests_that_follow(proxy):
    proxy.use([Rule(Fault.SLOW_DOWN, 1.0, most=1)], seed=1)
    answers = [ask(proxy)[0] for _ in range(12)]
    refused = answers.count(503)
    assert 1 < refused < 12
    assert answers == [503] * refused + [200] * (12 - refused)


def test_a_clock_that_is_wrong_is_refused(proxy):
    assert ask(proxy, **{"x-amz-date": "20200101T000000Z"})[0] == 403
    assert proxy.counts == Counter([Fault.SKEWED])


@pytest.mark.parametrize("fault", [Fault.FLIPPED_REQUEST, Fault.FLIPPED_ANSWER])
def test_a_wrong_byte_is_one_byte_on_one_of_the_ways(proxy, received, fault):
    use(proxy, fault)
    status, answer = ask(proxy)
    there = sum(a != b for a, b in zip(BODY, received.get(timeout=60), strict=True))
    back = sum(a != b for a, b in zip(BODY, answer, strict=True))
    assert status == 200
    assert (there, back) == ((1, 0) if fault is Fault.FLIPPED_REQUEST else (0, 1))


def test_the_draw_depends_on_the_seed_and_the_request_not_on_who_comes_first(proxy):
    rules = [Rule(Fault.RESET, 0.3), Rule(Fault.LATENCY, 0.3)]
    requests = [Request("GET", f"/b/{n % 40}", "", 0, "") for n in range(200)]

    def draws(seed: int, order: list[Request]) -> Counter[tuple[str, Fault | None]]:
        proxy.use(rules, seed=seed)
        return Counter((one.path, proxy.draw(one, body=False)[0]) for one in order)

    shuffled = Random(3).sample(requests, len(requests))
    assert draws(1, requests) == draws(1, shuffled)
    assert draws(1, requests) != draws(2, requests)


@pytest.mark.parametrize(
    ("method", "target", "operation", "path"),
    [
        ("GET", "/b/a%20b", "GET", "/b/a b"),
        ("GET", "/b?list-type=2&prefix=x%2Fy", "LIST", "/b/x/y"),
        ("GET", "/b?uploads&prefix=x", "UPLOADS", "/b/x"),
        ("PUT", "/b/k?partNumber=3&uploadId=u", "PART", "/b/k"),
        ("POST", "/b/k?uploads", "CREATE", "/b/k"),
        ("POST", "/b/k?uploadId=u", "COMPLETE", "/b/k"),
        ("POST", "/b?delete", "DELETE", "/b"),
        ("DELETE", "/b/k?uploadId=u", "ABORT", "/b/k"),
    ],
)
def test_requests_are_distinguished_by_what_they_ask_for(method, target, operation, path):
    request = Request.read(method, target, http.client.HTTPMessage(), 0)
    assert (request.operation, request.path) == (operation, path)
    copied = http.client.HTTPMessage()
    copied["x-amz-copy-source"] = "/b/other"
    assert Request.read("PUT", "/b/k?partNumber=1", copied, 0).operation == "COPY"
