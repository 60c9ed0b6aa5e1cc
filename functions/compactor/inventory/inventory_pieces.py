"""What several calls, one after the other, took of one inventory, before its listing is there.

    listing/taken/000000.json      a piece: what the first call took

Pieces are created, never overwritten: of two calls that go on from the same piece, the first one to
store its own counts, and the other is asked again.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import count

import msgspec

from compactor.decoding import decoder, numbered, require_version
from compactor.errors import AlreadyExists, IntegrityError, ObjectMissing
from compactor.inventory.pages import LISTING_VERSION, PageLine, Shelf


class SortedPart(msgspec.Struct):
    """Rows in order, laid aside.

    Attributes:
        name: of the part; its pages are numbered from 0.
        last: the last key of each page.
    """

    name: str
    last: list[str]


class TakenPiece(msgspec.Struct):
    """What one call took.

    Attributes:
        manifest_uri: of the inventory.
        manifest_md5: names it for certain.
        files: so many of the manifest's files are read, by this call and those before it.
        parts: that this call laid aside.
        pages: of the listing, that this call wrote.
    """

    manifest_uri: str
    manifest_md5: str
    files: int
    parts: list[SortedPart]
    pages: list[PageLine]


_decode: Callable[[bytes], TakenPiece] = decoder(TakenPiece)


def read_pieces(shelf: Shelf) -> list[TakenPiece]:
    """All there are, in order.

    Raises:
        IntegrityError: one is damaged, a later version wrote it, or they are of two inventories.
    """
    found: list[TakenPiece] = []
    with suppress(ObjectMissing):
        for number in count():
            found.append(_read(shelf, _name(number)))
    if len({piece.manifest_md5 for piece in found}) > 1:
        raise IntegrityError(f"{_name(0)} and the pieces after it are of several inventories")
    return found


def add_piece(shelf: Shelf, number: int, piece: TakenPiece) -> None:
    """Store a piece; in vain where another call was here before."""
    with suppress(AlreadyExists):
        shelf.create(_name(number), msgspec.json.encode(numbered(piece, LISTING_VERSION)))


def _read(shelf: Shelf, name: str) -> TakenPiece:
    body = shelf.get(name)
    require_version(f"{name} of the listing", body, LISTING_VERSION)
    try:
        return _decode(body)
    except (msgspec.MsgspecError, ValueError) as error:
        raise IntegrityError(f"{name} of the listing is damaged: {error}") from error


def _name(number: int) -> str:
    return f"taken/{number:06d}.json"
