"""A short fingerprint of a listing: equal for equal listings, however they are paged.

It covers key, ETag, size, time, storage class and restore expiry of each object. Count and newest
time would not be enough: when a version of an object is deleted, the previous one is listed again,
with its older time and maybe another size.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Self

import msgspec

from compactor.model import SourceObject
from compactor.ports import SummedPage

_DIGEST_BYTES = 16
# Terminates each value of a column, so that the boundaries of pages do not matter. A key that
# contains it can collide only with a listing of as many values.
_END = "\0"
_SECONDS = len("2026-01-02T03:04:05Z")
_MILLISECONDS = len("2026-01-02T03:04:05.678Z")


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
        if page:
            self.take(page, columns_of(page))

    def take(self, page: Sequence[SourceObject], columns: Sequence[str]) -> None:
        """Add the next page, whose columns are already known."""
        self._objects += len(page)
        self._bytes += _size(page)
        for digest, text in zip(self._columns, columns, strict=True):
            digest.update(text.encode("utf-8", "surrogatepass"))

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


def columns_of(page: Sequence[SourceObject]) -> Sequence[str]:
    """Return keys, times, ETags, sizes and storage classes of a page, each column as one text."""
    if isinstance(page, SummedPage):
        return page.columns()
    rows = [
        (one.key, _moment(one.last_modified), one.etag, str(one.size), _class(one)) for one in page
    ]
    return tuple(ended(column) for column in zip(*rows, strict=True))


def ended(values: Iterable[str]) -> str:
    """Return a column as one text, each value terminated."""
    return _END.join((*values, ""))


def moments(listed: Sequence[str]) -> str:
    """Return the column of times for listed UTC times, to the second or the millisecond."""
    text = ended(listed)
    if len(text) == len(listed) * (_MILLISECONDS + 1):
        return text.replace(f"Z{_END}", f"000{_END}")
    if len(text) == len(listed) * (_SECONDS + 1):
        return text.replace(f"Z{_END}", f".000000{_END}")
    return ended(_moment(datetime.fromisoformat(one).timestamp()) for one in listed)


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).replace(tzinfo=None).isoformat(timespec="microseconds")


def _class(one: SourceObject) -> str:
    return f"{one.storage_class} {one.restored_until}" if one.restored_until else one.storage_class


def _size(page: Sequence[SourceObject]) -> int:
    return page.total_size() if isinstance(page, SummedPage) else sum(one.size for one in page)
