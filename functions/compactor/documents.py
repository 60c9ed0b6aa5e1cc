"""Versioned JSON documents of the state, one object each.

See :mod:`compactor.decoding` for what versions mean.
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
    """Write a document, and overwrite the one that is there."""
    store.put(*place, _encoded(document, version), content_type=_JSON)


def leave_first(store: ObjectStore, place: tuple[str, str], document: object, version: int) -> bool:
    """Write a document if the key is free. Returns False, without a change, if it is not."""
    try:
        store.create(*place, _encoded(document, version), content_type=_JSON)
    except AlreadyExists:
        return False
    return True


def read_document(
    store: ObjectStore, place: tuple[str, str], decode: Callable[[bytes], _T], newest: int
) -> _T:
    """Return the document at a bucket and key.

    Args:
        store: the store to read.
        place: bucket and key.
        decode: made by :func:`compactor.decoding.decoder`.
        newest: the newest version that this program can read.

    Raises:
        ObjectMissing: there is no such object.
        IntegrityError: it is damaged, or a later version of this program wrote it.
    """
    bucket, key = place
    return decoded(decode, f"s3://{bucket}/{key}", store.get(bucket, key), newest)


def find_document(
    store: ObjectStore, place: tuple[str, str], decode: Callable[[bytes], _T], newest: int
) -> _T | None:
    """Return the same as :func:`read_document`, or None if there is no such object.

    Raises:
        IntegrityError: it is damaged, or a later version of this program wrote it.
    """
    try:
        return read_document(store, place, decode, newest)
    except ObjectMissing:
        return None


def _encoded(document: object, version: int) -> bytes:
    return msgspec.json.encode(numbered(document, version))
