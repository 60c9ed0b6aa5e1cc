"""A short fingerprint of a listing: equal for equal listings, however they are paged.

It covers key, ETag, size, time, storage class and restore expiry of each object. Count and newest
time would not be enough: when a version of an object is deleted, the previous one is listed again,
with its older time and maybe another size.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Self

import msgspec

from compactor.model import SourceObject

_DIGEST_BYTES = 16
# Terminates each value of a column, so that the boundaries of pages do not matter. A key that
# contains it can collide only with a listing of as many values.
_END = "\0"


class Seen(msgspec.Struct, frozen=True):
    """The fingerprint of a listing.

    Attributes:
        objects: number of objects.
        bytes: their listed size.
        digest: 32 hex digits.
    """

    objects: int
    bytes: int
    digest: str


class Fingerprint:
    """Builds the fingerprint of a listing from its pages, in key order."""

    def __init__(self) -> None:
        self._objects = self._bytes = 0
        self._columns = [hashlib.blake2b(digest_size=_DIGEST_BYTES) for _ in range(5)]

    def add(self, page: Sequence[SourceObject]) -> None:
        """Add the next page."""
        self._objects += len(page)
        self._bytes += sum(one.size for one in page)
        rows = [
            (one.key, f"{one.last_modified:.6f}", one.etag, str(one.size), _class(one))
            for one in page
        ]
        for digest, column in zip(self._columns, zip(*rows, strict=True), strict=False):
            digest.update(_END.join((*column, "")).encode("utf-8", "surrogatepass"))

    def copy(self) -> Self:
        """Return an independent copy of the state so far."""
        other = type(self)()
        other._objects, other._bytes = self._objects, self._bytes
        other._columns = [one.copy() for one in self._columns]
        return other

    @property
    def seen(self) -> Seen:
        """The fingerprint of the pages so far."""
        digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
        for one in self._columns:
            digest.update(one.digest())
        return Seen(self._objects, self._bytes, digest.hexdigest())


def _class(one: SourceObject) -> str:
    return f"{one.storage_class} {one.restored_until}" if one.restored_until else one.storage_class
