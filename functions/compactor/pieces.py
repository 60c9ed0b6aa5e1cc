"""A body in pieces that lie where they were made: putting them together would copy each byte."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


class Pieces:
    """Bytes, one piece after the other; ``bytes()`` puts them together.

    Args:
        pieces: in order; not to be changed any more.
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


#: What a request may carry.
Body = bytes | memoryview | Pieces


def pieces_of(body: Body) -> Iterator[bytes | memoryview]:
    """The pieces of a body; of bytes, themselves."""
    return iter(body) if isinstance(body, Pieces) else iter((body,))
