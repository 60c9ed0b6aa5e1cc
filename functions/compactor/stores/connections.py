"""Connections to S3 that stay open, for requests that are known whole beforehand."""

from __future__ import annotations

import http.client
import re
import select
import ssl
import time
import weakref
from collections import defaultdict
from collections.abc import Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from botocore.exceptions import (
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    IncompleteReadError,
    ReadTimeoutError,
    SSLError,
)
from botocore.httpsession import create_urllib3_context, get_cert_path

from compactor.pieces import Body, pieces_of
from compactor.stores.bodies import PIECE_BYTES, TimeIsUp
from compactor.stores.translate import Again

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator

_BLANK_LINE = b"\r\n\r\n"
# With a body of its length, and the connection left open.
_STATUS = re.compile(r"HTTP/1\.1 (200|206|4\d\d|5\d\d) ")
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_UNUSUAL = frozenset({"connection", "keep-alive", "transfer-encoding"})
_CONNECT_SECONDS = 5.0
# S3 has closed it by then; a function that was frozen meanwhile does not hear of that.
_IDLE_SECONDS = 30.0
# As many as may read sources at once.
_MOST_IDLE = 512
_JOINED_BYTES = 64 * 1024
_REFUSED = 400


#: When it was given back, by the wall clock; and what.
_Idle = tuple[float, http.client.HTTPConnection]


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class Origin(NamedTuple):
    """Who is connected to; ``host`` without brackets."""

    secure: bool
    host: str
    port: int


class Sent(NamedTuple):
    """A request as it goes out."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: Body


class Received(NamedTuple):
    """An answer, read to its end; the names of its headers are in small letters."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Connections:
    """Asks once, on a connection of its own for each request under way; thread safe.

    Raises what botocore raises where a request comes to no answer.

    Args:
        bundle: the file of those to trust, asked for before the first connection over TLS; None
            for those whom botocore trusts.
    """

    def __init__(self, bundle: Callable[[], str | None] = lambda: None) -> None:
        self._bundle = bundle
        self._idle: defaultdict[Origin, list[_Idle]] = defaultdict(list)
        self._context: ssl.SSLContext | None = None
        weakref.finalize(self, _close, self._idle)

    def ask(
        self, origin: Origin, sent: Sent, silence_seconds: float, time_is_up: TimeIsUp
    ) -> Received:
        """The answer to a request.

        Args:
            origin: who is asked.
            sent: what.
            silence_seconds: how long nothing may be heard, at most.
            time_is_up: for the bodies of both.

        Raises:
            BotoCoreError: there was no answer, or the request went out too slowly.
            Again: it comes so slowly that its time is up.
        """
        url = f"{'https' if origin.secure else 'http'}://{origin.host}"
        connection = self.take(origin, silence_seconds)
        stays = False
        try:
            with _told_of_answers(url):
                cut = _send(connection, sent, time_is_up)
                received, stays = _receive(connection.sock, sent.method, time_is_up)
            if cut is not None:
                stays = False
                if received.status < _REFUSED:
                    raise ConnectionClosedError(endpoint_url=url, error=cut) from cut
        finally:
            if stays:
                self.give_back(origin, connection)
            else:
                connection.close()
        return received

    def give_back(self, origin: Origin, connection: http.client.HTTPConnection) -> None:
        """Keep a connection for another request: no answer of it is left to read."""
        idle = self._idle[origin]
        if len(idle) < _MOST_IDLE:
            # By this clock a frozen process sees what it missed.
            idle.append((time.time(), connection))
        else:
            connection.close()

    def take(self, origin: Origin, silence_seconds: float) -> http.client.HTTPConnection:
        """A connection to be given back, or closed.

        Args:
            origin: who is connected to.
            silence_seconds: how long nothing may be heard on it, at most.

        Raises:
            BotoCoreError: there is none.
        """
        idle = self._idle[origin]
        while idle:
            try:
                since, connection = idle.pop()
            except IndexError:
                break
            if 0 <= time.time() - since < _IDLE_SECONDS and not _has_ended(connection):
                connection.sock.settimeout(silence_seconds)
                return connection
            connection.close()
        connection = self._new(origin)
        url = f"{'https' if origin.secure else 'http'}://{origin.host}"
        with _told_of_connecting(url):
            connection.connect()
        connection.sock.settimeout(silence_seconds)
        return connection

    def _new(self, origin: Origin) -> http.client.HTTPConnection:
        timeout = _CONNECT_SECONDS
        if not origin.secure:
            return http.client.HTTPConnection(origin.host, origin.port, timeout=timeout)
        if self._context is None:
            self._context = _trusting(self._bundle())
        return http.client.HTTPSConnection(
            origin.host, origin.port, timeout=timeout, context=self._context
        )


def _close(idle: Mapping[Origin, list[_Idle]]) -> None:
    for connections in idle.values():
        for _, connection in connections:
            connection.close()


def _trusting(bundle: str | None) -> ssl.SSLContext:
    """What botocore trusts, too."""
    context: ssl.SSLContext = create_urllib3_context()
    # urllib3 compares names itself, and has switched it off there.
    context.check_hostname = True
    # True for the usual ones; its stubs know nothing of a path.
    verify: Any = bundle or True
    context.load_verify_locations(get_cert_path(verify))
    return context


def _has_ended(connection: http.client.HTTPConnection) -> bool:
    """True when the other side has closed it: nothing is to be read before the next request."""
    poll = select.poll()
    poll.register(connection.sock, select.POLLIN)
    return bool(poll.poll(0))


def _send(
    connection: http.client.HTTPConnection, sent: Sent, time_is_up: TimeIsUp
) -> OSError | None:
    """Head and small bodies in one piece: of two, each wakes the other side.

    http.client sends them apart, and takes as much CPU time for the head as signing does. Returns
    what cut a large body off: who refuses a request need not take all of it, and may have said so.
    """
    lines = [f"{sent.method} {sent.target} HTTP/1.1", "accept-encoding: identity"]
    lines += [f"{name}: {value}" for name, value in sent.headers.items()]
    if sent.method != "GET":
        lines.append(f"content-length: {len(sent.body)}")
    head = "\r\n".join(lines)
    if {head.count("\r"), head.count("\n")} != {len(lines) - 1}:
        raise ValueError(f"a line break in a header of {sent.method} {sent.target}")
    is_small = len(sent.body) <= _JOINED_BYTES
    together = pieces_of(sent.body) if is_small else ()
    connection.sock.sendall(b"".join((head.encode("latin-1"), b"\r\n\r\n", *together)))
    if is_small:
        return None
    try:
        # The time-out of a socket is for the whole of what it is given at once.
        for piece in _cut(sent.body):
            if time_is_up():
                raise TimeoutError("the body went out too slowly")
            connection.sock.sendall(piece)
    except (BrokenPipeError, ConnectionResetError) as error:
        return error
    return None


def _cut(body: Body) -> Iterator[memoryview]:
    """A body in pieces of 1 MiB at most."""
    for piece in pieces_of(body):
        view = memoryview(piece)
        yield from (view[at : at + PIECE_BYTES] for at in range(0, len(view), PIECE_BYTES))


def _receive(sock: socket.socket, method: str, time_is_up: TimeIsUp) -> tuple[Received, bool]:
    """An answer, and whether the connection stays open behind it."""
    with sock.makefile("rb") as stream:
        arrived = stream.peek()
        plain = None if method == "HEAD" else _plain_head(arrived)
        if plain is not None:
            stream.read(plain.size)
            body = _body(stream, plain.length, time_is_up)
            # Behind anything more nobody knows what the next answer is.
            is_all = len(arrived) <= plain.size + plain.length
            return Received(plain.status, plain.headers, body), is_all
        answer = http.client.HTTPResponse(sock, method=method)
        # What it would read from is in the buffer of the stream.
        answer.fp.close()
        answer.fp = stream
        answer.begin()
        headers = {name.lower(): value for name, value in answer.headers.items()}
        body = _body(answer, None, time_is_up)
        if answer.length:
            expected = len(body) + answer.length
            raise IncompleteReadError(actual_bytes=len(body), expected_bytes=expected)
        return Received(answer.status, headers, body), not answer.will_close


class _Head(NamedTuple):
    """The head of a plain answer.

    Attributes:
        size: its own bytes.
        length: those of the body.
    """

    status: int
    headers: Mapping[str, str]
    size: int
    length: int


def _plain_head(arrived: bytes) -> _Head | None:
    """What an answer begins with; None where only http.client knows how to go on.

    http.client takes as much CPU time for a head as signing and sending do: it reads it as that
    of a mail.
    """
    end = arrived.find(_BLANK_LINE)
    if end < 0:
        return None
    first, *lines = arrived[:end].decode("latin-1").split("\r\n")
    status = _STATUS.match(first)
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not _NAME.fullmatch(name):
            return None
        headers[name.lower()] = value.strip(" \t")
    length = headers.get("content-length", "")
    plain = length.isdecimal() and length.isascii() and len(headers) == len(lines)
    if status is None or not plain or not _UNUSUAL.isdisjoint(headers):
        return None
    return _Head(int(status[1]), headers, end + len(_BLANK_LINE), int(length))


def _body(stream: _Readable, length: int | None, time_is_up: TimeIsUp) -> bytes:
    """So many bytes; without a length all that there are."""
    pieces: list[bytes] = []
    left = PIECE_BYTES if length is None else length
    while left and (piece := stream.read(min(left, PIECE_BYTES))):
        pieces.append(piece)
        left = left if length is None else left - len(piece)
        if time_is_up():
            raise Again("the body came too slowly")
    if length is not None and left:
        raise IncompleteReadError(actual_bytes=length - left, expected_bytes=length)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


@contextmanager
def _told_of_connecting(url: str) -> Iterator[None]:
    try:
        yield
    except ssl.SSLError as error:
        raise SSLError(endpoint_url=url, error=error) from error
    except TimeoutError as error:
        raise ConnectTimeoutError(endpoint_url=url, error=error) from error
    except OSError as error:
        raise EndpointConnectionError(endpoint_url=url, error=error) from error


@contextmanager
def _told_of_answers(url: str) -> Iterator[None]:
    try:
        yield
    except TimeoutError as error:
        raise ReadTimeoutError(endpoint_url=url, error=error) from error
    except (OSError, http.client.HTTPException) as error:
        raise ConnectionClosedError(endpoint_url=url, error=error) from error
