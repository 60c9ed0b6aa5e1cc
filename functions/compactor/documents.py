"""Documents of the state, one object each: left under their version, and found again.

What their versions mean stands in :mod:`compactor.decoding`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

from compactor.decoding import decoded, numbered
from compactor.errors import AlreadyExists, ObjectMissing
from compactor.ports import ObjectStore

_T = TypeVar("_T")
_JSON = "application/json"


def leave_document(
    store: ObjectStore, place: tuple[str, str], document: object, version: int
) -> None:
    """Leave a document at a bucket and key, over what is there."""
    store.put(*place, _encoded(document, version), content_type=_JSON)


def leave_first(store: ObjectStore, place: tuple[str, str], document: object, version: int) -> bool:
    """Leave a document where there is none; False where there is one, which stands."""
    try:
        store.create(*place, _encoded(document, version), content_type=_JSON)
    except AlreadyExists:
        return False
    return True


def read_document(
    store: ObjectStore, place: tuple[str, str], decode: Callable[[bytes], _T], newest: int
) -> _T:
    """The document at a bucket and key.

    Args:
        store: where it is.
        place: bucket and key.
        decode: of :func:`compactor.decoding.decoder`.
        newest: the last version that this program knows.

    Raises:
        ObjectMissing: there is none.
        IntegrityError: a later version of this program wrote it, or it is damaged.
    """
    bucket, key = place
    return decoded(decode, f"s3://{bucket}/{key}", store.get(bucket, key), newest)


def find_document(
    store: ObjectStore, place: tuple[str, str], decode: Callable[[bytes], _T], newest: int
) -> _T | None:
    """As :func:`read_document`; None where there is none.

    Raises:
        IntegrityError: a later version of this program wrote it, or it is damaged.
    """
    try:
        return read_document(store, place, decode, newest)
    except ObjectMissing:
        return None


def _encoded(document: object, version: int) -> bytes:
    return msgspec.json.encode(numbered(document, version))
