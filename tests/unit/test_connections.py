"""Answers as they come off the wire: the plain ones are read here, all others by http.client."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

import pytest
from botocore.exceptions import (
    ConnectionClosedError,
    HTTPClientError,
    IncompleteReadError,
    ReadTimeoutError,
)

from compactor.stores.connections import Connections, Origin, Received, Sent

PLAIN = b'HTTP/1.1 200 OK\r\nETag: "e"\r\nContent-Length: 5\r\n\r\nhello'
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"
TWICE = b"HTTP/1.1 200 OK\r\nA: 1\r\nA: 2\r\nContent-Length: 5\r\n\r\nhello"
CONTINUED = b"HTTP/1.1 100 Continue\r\n\r\n" + PLAIN
FOLDED = b"HTTP/1.1 200 OK\r\nA: 1\r\n 2\r\nContent-Length: 5\r\n\r\nhello"
CLOSING = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello"
OLD = b"HTTP/1.0 200 OK\r\n\r\nhello"
REFUSED = b"HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\nhello"
EMPTY = b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n"


class Scripted:
    """A server that sends pieces for each request; counts connections."""

    def __init__(self, pieces: Sequence[bytes], *, ends: bool) -> None:
        self.connections = 0
        self._pieces = pieces
        self._ends = ends
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.origin = Origin(False, "127.0.0.1", self._listening.getsockname()[1])
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._listening.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self.connections += 1
            # Who is answered early may be gone.
            with connection, suppress(ConnectionError):
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                while connection.recv(65_536):
                    for piece in self._pieces:
                        connection.sendall(piece)
                        # Otherwise two pieces may arrive as one.
                        time.sleep(0.01 if len(self._pieces) > 1 else 0.0)
                    if self._ends:
                        break


@contextmanager
def answering(*pieces: bytes, ends: bool = False) -> Iterator[Scripted]:
    script = Scripted(pieces, ends=ends)
    try:
        yield script
    finally:
        script.close()


def asked(connections: Connections, script: Scripted) -> Received:
    sent = Sent("GET", "/bucket/key", {"host": "127.0.0.1"}, b"")
    return connections.ask(script.origin, sent, 60.0, lambda: False)


def pieces_of(answer: bytes) -> list[bytes]:
    return [answer[:9], answer[9:24], answer[24:-3], answer[-3:]]


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize("answer", [PLAIN, CHUNKED, TWICE, CONTINUED, FOLDED])
def test_an_answer_is_whole_however_it_comes_and_leaves_its_connection_open(
    answer: bytes, cut: bool
) -> None:
    connections = Connections()
    with answering(*(pieces_of(answer) if cut else [answer])) as script:
        for _ in range(3):
            received = asked(connections, script)
            assert (received.status, received.body) == (200, b"hello")
        assert script.connections == 1


@pytest.mark.parametrize("answer", [CLOSING, OLD])
def test_an_answer_that_ends_its_connection_is_whole_and_the_next_one_has_another(
    answer: bytes,
) -> None:
    connections = Connections()
    with answering(answer, ends=True) as script:
        assert [asked(connections, script).body for _ in range(2)] == [b"hello"] * 2
        assert script.connections == 2


@pytest.mark.parametrize("more", [PLAIN, PLAIN[:9], b"x"])
def test_behind_more_than_an_answer_nobody_is_asked_on(more: bytes) -> None:
    connections = Connections()
    with answering(PLAIN + more) as script:
        assert [asked(connections, script).body for _ in range(3)] == [b"hello"] * 3
        assert script.connections == 3


@pytest.mark.parametrize(("seconds", "needed"), [(29, 1), (31, 2), (90_000, 2), (-1, 2)])
def test_a_connection_that_waited_long_is_not_used_again(
    seconds: float, needed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of a process that was frozen meanwhile, the other side may have tried to end it in vain.
    connections, now = Connections(), 1e9
    monkeypatch.setattr(time, "time", lambda: now)
    with answering(PLAIN) as script:
        asked(connections, script)
        now += seconds
        asked(connections, script)
        assert script.connections == needed


@pytest.mark.parametrize(("answer", "told"), [(REFUSED, (404, b"hello")), (EMPTY, (204, b""))])
def test_status_and_body_are_those_of_the_answer(answer: bytes, told: tuple[int, bytes]) -> None:
    with answering(answer) as script:
        received = asked(Connections(), script)
    assert (received.status, received.body) == told


def test_names_of_headers_are_in_small_letters_and_values_without_the_blanks_around_them() -> None:
    answer = b'HTTP/1.1 200 OK\r\nETag:"e"\r\nX-Blank: \t a b \r\ncontent-LENGTH: 0\r\n\r\n'
    with answering(answer) as script:
        received = asked(Connections(), script)
    assert received.headers == {"etag": '"e"', "x-blank": "a b", "content-length": "0"}


@pytest.mark.parametrize("answer", [PLAIN[:-1], TWICE[:-1]])
def test_a_body_that_breaks_off_is_told(answer: bytes) -> None:
    with answering(answer, ends=True) as script, pytest.raises(IncompleteReadError):
        asked(Connections(), script)


@pytest.mark.parametrize("answer", [b"", PLAIN[:3], b"hello\r\n\r\n"])
def test_what_has_no_status_is_no_answer(answer: bytes) -> None:
    with answering(answer, ends=True) as script, pytest.raises(HTTPClientError) as told:
        asked(Connections(), script)
    assert isinstance(told.value, ConnectionClosedError)


LARGE = bytes(32 << 20)


def sent_large(
    script: Scripted,
    connections: Connections | None = None,
    time_is_up: Callable[[], bool] = lambda: False,
) -> Received:
    sent = Sent("PUT", "/bucket/key", {"host": "127.0.0.1"}, LARGE)
    return (connections or Connections()).ask(script.origin, sent, 60.0, time_is_up)


def test_who_refuses_a_large_body_before_it_is_all_there_is_heard() -> None:
    connections = Connections()
    with answering(REFUSED, ends=True) as script:
        received = sent_large(script, connections)
        assert (received.status, received.body) == (404, b"hello")
        assert not connections._idle[script.origin], "behind it nobody knows what is sent"


def test_who_takes_a_large_body_before_it_is_all_there_has_not_got_it() -> None:
    with answering(PLAIN, ends=True) as script, pytest.raises(ConnectionClosedError):
        sent_large(script)


def test_a_large_body_goes_out_no_longer_than_there_is_time() -> None:
    looks: list[None] = []

    def time_is_up() -> bool:
        looks.append(None)
        return len(looks) > 3

    with answering(PLAIN) as script, pytest.raises(ReadTimeoutError):
        sent_large(script, time_is_up=time_is_up)
    assert len(looks) == 4
