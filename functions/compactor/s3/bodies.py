"""Bodies on their way: sent in pieces that are neither small nor slow, read until nothing lacks."""

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
    """A body that goes to the socket in pieces of 1 MiB, until its time is up.

    botocore sends 128 KiB at a time, and waits after each for the interpreter lock, which
    hundreds of reading threads want as well: 2,000 objects of 100 KB took 17 % longer. In one
    piece, on the other hand, 16 MiB must be gone within the 5 seconds that a connect may take
    (without TLS), which slower networks never reach.
    """

    def __init__(self, content: bytes | memoryview, time_is_up: TimeIsUp) -> None:
        super().__init__(content)
        self._time_is_up = time_is_up

    def read(self, size: int | None = -1) -> bytes:
        """The next piece, however little is asked for; all that is left for no size."""
        if size is None or size < 0:
            return super().read()
        if self._time_is_up():
            raise TimeoutError("the body went out too slowly")
        return super().read(PIECE_BYTES if size else 0)


def read_body(answer: Any, time_is_up: TimeIsUp) -> bytes:
    """The body of an answer to GET.

    Raises:
        Again: it comes so slowly that its time is up.
        BotoCoreError: it ends early.
    """
    pieces = []
    for piece in answer["Body"].iter_chunks(PIECE_BYTES):
        pieces.append(piece)
        if time_is_up():
            raise Again("the body came too slowly")
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def byte_range(start: int, length: int) -> str:
    """The value of an HTTP Range header."""
    return f"bytes={start}-{start + length - 1}"


def require_range(answer: Any, body: bytes, start: int, length: int) -> None:
    """Make sure that a body is the range that was asked for; at the end of an object, its end.

    Raises:
        Again: it is not.
    """
    found = _CONTENT_RANGE.fullmatch(answer.get("ContentRange", ""))
    if found is None:
        # All of it, instead of a range that covers all of it.
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
    """An answer to GET whose body has begun to come.

    Attributes:
        etag: quoted, as it came.
        left: bytes from the first piece to the end of the object.
    """

    etag: str
    left: int
    first: bytes
    following: Iterator[bytes]


def begun(answer: Any, start: int) -> Begun:
    """Wait for the first piece of a body that was asked for from ``start`` on.

    Raises:
        Again: nothing came, or another range than asked for.
        BotoCoreError: it ended early.
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
    """All pieces of a body, resumed where it breaks off.

    Args:
        body: the object from its start.
        begin: offset and ETag -> the object from there on; asks again by itself.

    Raises:
        InvalidInput: while iterating, when it breaks off again and again.
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
