"""What a listing showed, in a few bytes: equal for equal listings, wherever their pages end.

Of each object key, ETag, size, time, storage class and the end of a restored copy count. The count
and the newest time alone would not do: where a version of an object is deleted, the one before is
listed again, with its older time and, perhaps, its other size.
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
# Ends each value of a column, so that where pages end makes no difference. A key that holds one
# could only stand for another listing of as many values.
_END = "\0"
_SECONDS = len("2026-01-02T03:04:05Z")
_MILLISECONDS = len("2026-01-02T03:04:05.678Z")


class Seen(msgspec.Struct, frozen=True):
    """A listing in few bytes.

    Attributes:
        objects: how many it has.
        bytes: of them, as listed.
        digest: 32 hex digits.
    """

    objects: int
    bytes: int
    digest: str


class Fingerprint:
    """Takes a listing page by page, in the order of keys."""

    def __init__(self) -> None:
        self._objects = self._bytes = 0
        self._columns = [hashlib.blake2b(digest_size=_DIGEST_BYTES) for _ in range(5)]

    def add(self, page: Sequence[SourceObject]) -> None:
        """Take what is listed next."""
        if page:
            self.take(page, columns_of(page))

    def take(self, page: Sequence[SourceObject], columns: Sequence[str]) -> None:
        """The same, where its columns are known already."""
        self._objects += len(page)
        self._bytes += _size(page)
        for digest, text in zip(self._columns, columns, strict=True):
            digest.update(text.encode("utf-8", "surrogatepass"))

    def copy(self) -> Self:
        """Another one, with what was taken so far."""
        other = type(self)()
        other._objects, other._bytes = self._objects, self._bytes
        other._columns = [one.copy() for one in self._columns]
        return other

    @property
    def seen(self) -> Seen:
        """What was taken so far."""
        digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
        for one in self._columns:
            digest.update(one.digest())
        return Seen(self._objects, self._bytes, digest.hexdigest())


def columns_of(page: Sequence[SourceObject]) -> Sequence[str]:
    """Keys, times, ETags, sizes and classes of the objects of a page, each column one text."""
    if isinstance(page, SummedPage):
        return page.columns()
    rows = [
        (one.key, _moment(one.last_modified), one.etag, str(one.size), _class(one)) for one in page
    ]
    return tuple(ended(column) for column in zip(*rows, strict=True))


def ended(values: Iterable[str]) -> str:
    """A column of values as one text."""
    return _END.join((*values, ""))


def moments(listed: Sequence[str]) -> str:
    """The column of times as a listing has them, in UTC, to the second or the millisecond."""
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
