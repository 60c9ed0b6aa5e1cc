"""Messages between local processes: JSON, preceded by its length in 4 bytes."""

from __future__ import annotations

import json
import os
import struct
from typing import IO, Any

_LENGTH = struct.Struct(">I")


def answer_stream() -> IO[bytes]:
    """Return standard output for messages; further prints go to standard error."""
    stream = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return stream


def send(stream: IO[bytes], message: Any) -> None:
    """Write one message and flush it.

    Raises:
        TypeError: the message has a value that JSON does not support.
        OSError: the other process is gone.
    """
    body = json.dumps(message, separators=(",", ":")).encode("utf-8")
    stream.write(_LENGTH.pack(len(body)) + body)
    stream.flush()


def receive(stream: IO[bytes]) -> Any | None:
    """Read one message; returns None if the other process is gone."""
    head = _exactly(stream, _LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    body = _exactly(stream, length)
    return json.loads(body) if len(body) == length else None


def _exactly(stream: IO[bytes], length: int) -> bytes:
    """Read exactly ``length`` bytes, or fewer at the end; a pipe returns them in pieces."""
    found = bytearray()
    while len(found) < length and (piece := stream.read(length - len(found))):
        found += piece
    return bytes(found)
