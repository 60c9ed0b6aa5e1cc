"""A server that sends any bytes, in pieces and at times that the test chooses."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

_END_OF_REQUEST = b"\r\n\r\n"
#: Bytes to send, seconds to wait, or the end of the connection.
Piece = bytes | float | None


@dataclass
class RawS3:
    """A running server, and the requests that it got.

    Attributes:
        asked: number of requests by path.
        connections: number of connections.
    """

    url: str
    asked: Counter[str] = field(default_factory=Counter)
    connections: int = 0


@contextmanager
def raw_s3(
    answer: Callable[[str, int], Sequence[Piece]], tls: ssl.SSLContext | None = None
) -> Iterator[RawS3]:
    """Run a server on a free port.

    Args:
        answer: returns the pieces to send for a path and its number of requests so far, this one
            included.
        tls: the TLS context; None for plain HTTP.
    """
    listening = socket.create_server(("127.0.0.1", 0), backlog=512)
    scheme = "http" if tls is None else "https"
    server = RawS3(f"{scheme}://127.0.0.1:{listening.getsockname()[1]}")

    def serve(plain: socket.socket) -> None:
        with suppress(OSError), plain:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with tls.wrap_socket(plain, server_side=True) if tls else plain as connection:
                for path in _asked(connection):
                    server.asked[path] += 1
                    if not _sent(connection, answer(path, server.asked[path])):
                        return

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listening.accept()
                server.connections += 1
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield server
    finally:
        # Closing alone does not wake a thread that waits in accept.
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()


def _asked(connection: socket.socket) -> Iterator[str]:
    """Yield the path of each request; requests have no body."""
    waiting = b""
    while piece := connection.recv(65_536):
        waiting += piece
        while _END_OF_REQUEST in waiting:
            head, _, waiting = waiting.partition(_END_OF_REQUEST)
            yield head.split(b" ", 2)[1].decode()


def _sent(connection: socket.socket, pieces: Sequence[Piece]) -> bool:
    """Send the pieces; return whether the connection stays open."""
    for piece in pieces:
        if piece is None:
            return False
        if isinstance(piece, bytes):
            connection.sendall(piece)
        else:
            time.sleep(piece)
    return True
