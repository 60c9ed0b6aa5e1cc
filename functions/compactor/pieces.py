"""Request bodies made of several buffers, sent without joining them: a join copies every byte."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


class Pieces:
    """Bytes in several pieces; ``bytes()`` joins them.

    Args:
        pieces: in order; must not change any more.
    """

    __slots__ = ("_pieces", "_size")

    def __init__(self, pieces: Sequence[bytes | memoryview]) -> None:
        self._pieces = tuple(pieces)
        self._size = sum(map(len, self._pieces))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[bytes | memoryview]:
        return iter(self._pieces)

    def __bytes__(self) -> bytes:
        return b"".join(self._pieces)


#: The types of a request body.
Body = bytes | memoryview | Pieces


def pieces_of(body: Body) -> Iterator[bytes | memoryview]:
    """Return the pieces of a body; for bytes, the body itself."""
    return iter(body) if isinstance(body, Pieces) else iter((body,))
