"""Versioned JSON documents of the state, one object each.

See :mod:`compactor.decoding` for what versions mean.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

from compactor.decoding import decoded, numbered
from compactor.errors import EARLIER_VERSION, AlreadyExists, ObjectMissing, object_gone
from compactor.ports import ObjectStore

_T = TypeVar("_T")
_JSON = "application/json"


def leave_document(
    store: ObjectStore, place: tuple[str, str], document: object, version: int
) -> None:
    """Write a document, and overwrite the one that is there."""
    store.put(*place, _encoded(document, version), content_type=_JSON)


def leave_first(store: ObjectStore, place: tuple[str, str], document: object, version: int) -> bool:
    """Write a document if the key is free. Returns False, without a change, if it is not."""
    return create_once(store, place, _encoded(document, version), _JSON)


def create_once(
    store: ObjectStore, place: tuple[str, str], body: bytes, content_type: str = ""
) -> bool:
    """Create an object by one PUT that fails if the key is taken; return False if it is.

    After a lost answer, the object that is there may be this one.
    """
    try:
        store.create(*place, body, content_type=content_type)
    except AlreadyExists:
        return False
    return True


def read_document(
    store: ObjectStore,
    place: tuple[str, str],
    decode: Callable[[bytes], _T],
    newest: int,
    *,
    way_out: str = EARLIER_VERSION,
) -> _T:
    """Return the document at a bucket and key.

    Args:
        store: the store to read.
        place: bucket and key.
        decode: made by :func:`compactor.decoding.decoder`.
        newest: the newest version that this program can read.
        way_out: what to do about a damaged document.

    Raises:
        ObjectMissing: there is no such object.
        IntegrityError: it is damaged, or a later version of this program wrote it.
    """
    bucket, key = place
    return decoded(decode, f"s3://{bucket}/{key}", store.get(bucket, key), newest, way_out=way_out)


def require_object(store: ObjectStore, place: tuple[str, str], remedy: str = "") -> bytes:
    """Return an object at a bucket and key that was listed, or is named by another one.

    Raises:
        IntegrityError: it is gone.
    """
    bucket, key = place
    try:
        return store.get(bucket, key)
    except ObjectMissing:
        raise object_gone(f"s3://{bucket}/{key}", remedy) from None


def find_document(
    store: ObjectStore,
    place: tuple[str, str],
    decode: Callable[[bytes], _T],
    newest: int,
    *,
    way_out: str = EARLIER_VERSION,
) -> _T | None:
    """Return the same as :func:`read_document`, or None if there is no such object.

    Raises:
        IntegrityError: it is damaged, or a later version of this program wrote it.
    """
    try:
        return read_document(store, place, decode, newest, way_out=way_out)
    except ObjectMissing:
        return None


def _encoded(document: object, version: int) -> bytes:
    return msgspec.json.encode(numbered(document, version))
