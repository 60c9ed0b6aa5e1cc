"""Messages between the local engine's processes: JSON with a 4-byte length before it."""

from __future__ import annotations

import json
import os
import struct
from typing import IO, Any

_LENGTH = struct.Struct(">I")


def answer_stream() -> IO[bytes]:
    """Standard output, for messages alone: what anybody prints from here on is an error's."""
    stream = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return stream


def send(stream: IO[bytes], message: Any) -> None:
    """Write one message and flush it.

    Raises:
        TypeError: the message holds something JSON has no form for.
        OSError: the other process is gone.
    """
    body = json.dumps(message, separators=(",", ":")).encode("utf-8")
    stream.write(_LENGTH.pack(len(body)) + body)
    stream.flush()


def receive(stream: IO[bytes]) -> Any | None:
    """Read one message; None when the other process is gone."""
    head = _exactly(stream, _LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    body = _exactly(stream, length)
    return json.loads(body) if len(body) == length else None


def _exactly(stream: IO[bytes], length: int) -> bytes:
    """Read this many bytes, or up to the end; a pipe gives them in pieces."""
    found = bytearray()
    while len(found) < length and (piece := stream.read(length - len(found))):
        found += piece
    return bytes(found)
