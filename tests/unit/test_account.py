"""What Lambda says of the account, asked of a server that answers as Lambda does."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from compactor.aws.account import concurrency_of_account

_LIMIT = {"TotalCodeSize": 80_530_636_800, "ConcurrentExecutions": 50}


class _Lambda(ThreadingHTTPServer):
    status = 200
    limit: dict[str, int]
    asked: list[str]


class _Handler(BaseHTTPRequestHandler):
    server: _Lambda

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        body = json.dumps({"AccountLimit": self.server.limit}).encode()
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Lambda]:
    server = _Lambda(("127.0.0.1", 0), _Handler)
    server.asked, server.limit = [], {**_LIMIT, "UnreservedConcurrentExecutions": 40}
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    yield server
    server.shutdown()
    server.server_close()


def test_what_no_function_has_reserved_is_what_the_workers_share(service: _Lambda) -> None:
    assert concurrency_of_account() == 40
    assert [path.rstrip("/") for path in service.asked] == ["/2016-08-19/account-settings"]


def test_who_may_not_ask_knows_nothing(service: _Lambda) -> None:
    service.status = 403
    assert concurrency_of_account() is None


def test_an_answer_without_the_limit_says_nothing(service: _Lambda) -> None:
    service.limit = _LIMIT
    assert concurrency_of_account() is None


def test_a_service_that_does_not_answer_is_not_waited_for(
    service: _Lambda, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", "http://127.0.0.1:9")
    assert concurrency_of_account() is None
