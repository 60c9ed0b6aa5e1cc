"""Bodies of requests and answers: sent in pieces of 1 MiB, read completely or rejected."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from botocore.exceptions import IncompleteReadError

from compactor.s3.translate import MOST_CUT_SHORT, WEATHER, Again, cut_short_each_time

PIECE_BYTES = 1024 * 1024
TimeIsUp = Callable[[], bool]
_CONTENT_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")


class SentBody(io.BytesIO):
    """A request body that is sent in pieces of 1 MiB, until its time is up.

    botocore sends 128 KiB at a time and then waits for the interpreter lock, for which hundreds
    of reading threads compete: 2,000 objects of 100 KB took 17 % longer. In one piece (without
    TLS), 16 MiB would have to be sent within the 5 seconds of the connect timeout, which slower
    networks never reach.
    """

    def __init__(self, content: bytes | memoryview, time_is_up: TimeIsUp) -> None:
        super().__init__(content)
        self._time_is_up = time_is_up

    def read(self, size: int | None = -1) -> bytes:
        """Return the next piece, whatever positive size is given; without a size, the rest."""
        if size is None or size < 0:
            return super().read()
        if self._time_is_up():
            raise TimeoutError("the body went out too slowly")
        return super().read(PIECE_BYTES if size else 0)


def read_body(answer: Any, time_is_up: TimeIsUp) -> bytes:
    """Return the body of an answer to GET.

    Raises:
        Again: time is up before the body is complete.
        BotoCoreError: the body ends early.
    """
    pieces = []
    for piece in answer["Body"].iter_chunks(PIECE_BYTES):
        pieces.append(piece)
        if time_is_up():
            raise Again("the body came too slowly")
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def byte_range(start: int, length: int) -> str:
    """Return the value of an HTTP Range header."""
    return f"bytes={start}-{start + length - 1}"


def require_range(answer: Any, body: bytes, start: int, length: int) -> None:
    """Check that a body is the requested range, which may be cut by the end of the object.

    Raises:
        Again: the body is another range.
    """
    found = _CONTENT_RANGE.fullmatch(answer.get("ContentRange", ""))
    if found is None:
        # The server may send the whole object if the range covers all of it.
        sound = start == 0 and len(body) <= length
    else:
        first, last, size = (int(number) for number in found.groups())
        sound = first == start and last + 1 == min(start + length, size)
        sound = sound and len(body) == last + 1 - first
    if not sound:
        given = answer.get("ContentRange", "no range")
        asked = f"bytes {start} to {start + length - 1}"
        raise Again(f"{len(body)} bytes, {given}, to {asked}", cut_short=len(body) < length)


class Begun(NamedTuple):
    """An answer to GET, read as far as its first piece.

    Attributes:
        etag: the ETag header, with its quotes.
        left: bytes from the first piece to the end of the object.
        first: the first piece.
        following: the other pieces.
    """

    etag: str
    left: int
    first: bytes
    following: Iterator[bytes]


def begun(answer: Any, start: int) -> Begun:
    """Wait for the first piece of a body that was requested from byte ``start`` on.

    Raises:
        Again: the answer has no length or no first piece, or is another range.
        BotoCoreError: the body ended early.
    """
    left = answer.get("ContentLength")
    if left is None:
        raise Again("an answer without its length")
    if start and not answer.get("ContentRange", "").startswith(f"bytes {start}-"):
        raise Again(f"{answer.get('ContentRange', 'no range')} to bytes {start} and more")
    following = answer["Body"].iter_chunks(PIECE_BYTES)
    first = next(following, b"")
    if left and not first:
        raise Again("a body without its beginning", cut_short=True)
    return Begun(answer["ETag"], left, first, following)


def resumed(body: Begun, begin: Callable[[int, str], Begun]) -> Iterator[bytes]:
    """Yield all pieces of a body. If it breaks off, it is resumed from there.

    Args:
        body: the object from its start.
        begin: requests the object from an offset, pinned to an ETag, with retries.

    Raises:
        InvalidInput: while iterating, if too many answers in a row break off early.
    """
    at, size = 0, body.left
    cut_short = 0
    while at < size:
        begun_at, piece, is_short = at, body.first, True
        while piece:
            at += len(piece)
            yield piece
            try:
                piece = next(body.following, b"")
            except WEATHER as error:
                piece, is_short = b"", isinstance(error, IncompleteReadError)
        cut_short = cut_short + 1 if is_short and at - begun_at < PIECE_BYTES else 0
        if at < size and cut_short == MOST_CUT_SHORT:
            progress = f"{at:,} of {size:,} bytes, in {cut_short} answers that each broke off"
            raise cut_short_each_time(progress)
        if at < size:
            body = begin(at, body.etag)
