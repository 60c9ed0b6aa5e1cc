"""Stores the progress of sorting an inventory if it takes several sequential calls.

    listing/taken/000000.json      a piece: what the first call did

Pieces are created, never overwritten. If two calls continue from the same piece, the first one to
store its own piece counts, and the work of the other is discarded.
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
    """Sorted rows, stored until they are merged.

    Attributes:
        name: name of the part; its pages are numbered from 0.
        last: the last key of each page.
    """

    name: str
    last: list[str]


class TakenPiece(msgspec.Struct):
    """What one call did.

    Attributes:
        manifest_uri: URI of the inventory's manifest.
        manifest_md5: MD5 of the manifest; identifies the inventory.
        files: number of the manifest's files read by this call and those before it.
        parts: sorted parts that this call stored.
        pages: pages of the listing that this call wrote.
    """

    manifest_uri: str
    manifest_md5: str
    files: int
    parts: list[SortedPart]
    pages: list[PageLine]


_decode: Callable[[bytes], TakenPiece] = decoder(TakenPiece)


def read_pieces(shelf: Shelf) -> list[TakenPiece]:
    """Return all pieces, in order.

    Raises:
        IntegrityError: a piece is damaged, a later version wrote it, or the pieces are of several
            inventories.
    """
    found: list[TakenPiece] = []
    with suppress(ObjectMissing):
        for number in count():
            found.append(_read(shelf, _name(number)))
    if len({piece.manifest_md5 for piece in found}) > 1:
        raise IntegrityError(f"{_name(0)} and the pieces after it are of several inventories")
    return found


def add_piece(shelf: Shelf, number: int, piece: TakenPiece) -> None:
    """Store a piece, unless another call has already stored that number."""
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
