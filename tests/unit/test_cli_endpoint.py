"""No server answers: said soon, in one line, and before anything else is begun."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from compactor.errors import TransientStoreError
from compactor_cli import store as endpoint
from compactor_cli.commands import main
from compactor_cli.store import open_store

PLACES = ("s3://source/logs/", "s3://lake/compacted/")
COMMANDS = {
    "scan": PLACES[:1],
    "plan": PLACES,
    "run": PLACES,
    "verify": PLACES,
    "ls": PLACES[1:],
    "restore": (*PLACES[1:], "key"),
    "clean-up": (*PLACES, "--dry-run"),
    "explain": (*PLACES[1:], "key"),
    "doctor": PLACES[1:],
    "runs show": PLACES[1:],
    "maintain plan": ("--delta-prefixes", "s3://lake/gold/"),
    # Only the catalog knows in which bucket it lies, and is not asked before somebody answers.
    "maintain plan of a catalog": ("sql:sqlite:////does/not/exist.db#gold.orders",),
    "maintain run": ("delta:s3://lake/gold/orders/", "--state-uri", "s3://state/m/"),
}


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setattr(endpoint, "_WAIT_SECONDS", 0.0)


@contextmanager
def server(status: int) -> Iterator[str]:
    """Answers every request with this status; its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            return

    with HTTPServer(("127.0.0.1", 0), Handler) as served:
        thread = threading.Thread(target=served.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{served.server_port}"
        served.shutdown()
        thread.join()


@pytest.fixture
def dead() -> Iterator[str]:
    """A port on which nobody listens, and nobody else will."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_names_a_dead_endpoint_soon_in_one_line(capsys, monkeypatch, dead, command):
    asked = []

    def silence(*given):
        asked.append(given[2])
        return as_it_is(*given)

    as_it_is = endpoint._silence
    monkeypatch.setattr(endpoint, "_silence", silence)
    words = command.partition(" of ")[0].split()
    assert main([*words, *COMMANDS[command], "--endpoint-url", dead]) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"compactor: TransientStoreError: {dead} does not answer (")
    # And so within thirty seconds, see below.
    assert asked == [endpoint._SILENCE_SECONDS] * endpoint._TRIES


def test_who_takes_the_connection_and_says_nothing_is_no_answer(monkeypatch):
    monkeypatch.setattr(endpoint, "_SILENCE_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(TransientStoreError, match="does not answer"):
            open_store(url, "bucket")


def test_the_tries_and_waits_end_within_thirty_seconds():
    # Connecting takes the client up to five seconds, and so does an answer.
    assert endpoint._TRIES * (endpoint._SILENCE_SECONDS + 5.0) <= 30 - endpoint._TRIES


@pytest.mark.parametrize("status", [200, 400, 403, 404, 500, 503])
def test_any_answer_is_one(status):
    with server(status) as url:
        open_store(url, "bucket")


def test_without_credentials_nothing_is_begun(capsys, monkeypatch, dead):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    assert main(["run", *PLACES, "--endpoint-url", dead]) == 2
    err = capsys.readouterr().err
    assert err.startswith("compactor: no AWS credentials found\n  log in (")
    assert err.count("\n") == 2


def test_a_web_server_that_sends_everybody_elsewhere_is_no_endpoint(capsys):
    with server(301) as url:
        assert main(["plan", *PLACES, "--endpoint-url", url]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"compactor: InvalidInput: endpoint: '{url}'")
    assert err.count("\n") == 1


def test_a_run_whose_endpoint_dies_says_so_once_while_it_goes_on(capsys, monkeypatch):
    monkeypatch.setattr(endpoint, "_WATCH_SECONDS", 0.02)
    with server(200) as url, endpoint.watched(url, "bucket"):
        time.sleep(0.3)
        assert capsys.readouterr().err == ""
    with server(200) as url:
        gone = url
    err, until = "", time.monotonic() + 60
    with endpoint.watched(gone, "bucket"):
        while not err and time.monotonic() < until:
            time.sleep(0.05)
            err = capsys.readouterr().err
        time.sleep(0.3)
    err += capsys.readouterr().err
    assert err.startswith(f"compactor: {gone} has stopped answering (")
    assert err.count("\n") == 2
