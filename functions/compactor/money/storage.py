"""What objects cost in a storage class: a month of storage, one full scan, and moving there."""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from compactor.model import SourceObject
from compactor.prices import Prices
from compactor.sizes import GIB, MIB

STANDARD = "STANDARD"
_INTELLIGENT_TIERING = "INTELLIGENT_TIERING"
# Classes that bill small objects at SMALL_BYTES, and those that must be restored.
_LEAST_BILLED = ("STANDARD_IA", "ONEZONE_IA", "GLACIER_IR")
_ARCHIVED = ("GLACIER", "DEEP_ARCHIVE")
#: The classes with prices, as S3 names them.
STORAGE_CLASSES = (STANDARD, _INTELLIGENT_TIERING, *_LEAST_BILLED, *_ARCHIVED)
#: Smaller objects are billed at this size in IA and Glacier IR. Intelligent-Tiering keeps them in
#: its frequent access tier, without the monitoring fee.
SMALL_BYTES = 128 * 1024
#: Maximum number of keys that one LIST returns.
KEYS_PER_LIST = 1_000
# Of each archived object: its index, stored in its own class, and its name, stored in Standard.
_INDEX_BYTES, _NAME_BYTES = 32 * 1024, 8 * 1024
# Engines read large objects by ranges of about this size.
_RANGE_BYTES = 64 * MIB


class Holding(msgspec.Struct, frozen=True):
    """Objects of one storage class.

    Attributes:
        storage_class: S3's name for it.
        objects: their number.
        bytes: as stored.
        small_objects: number of objects below 128 KB.
        small_bytes: bytes of these.
    """

    storage_class: str
    objects: int = 0
    bytes: int = 0
    small_objects: int = 0
    small_bytes: int = 0

    @classmethod
    def of(cls, sizes: Iterable[int], storage_class: str = STANDARD) -> Holding:
        """Return objects of these sizes in bytes."""
        every = list(sizes)
        small = [size for size in every if size < SMALL_BYTES]
        return cls(storage_class, len(every), sum(every), len(small), sum(small))

    @classmethod
    def alike(cls, objects: int, size: int) -> Holding:
        """Return a number of objects of one size in bytes, in Standard."""
        is_small = size < SMALL_BYTES
        stored = objects * size
        return cls(STANDARD, objects, stored, objects * is_small, stored * is_small)

    def in_class(self, storage_class: str) -> Holding:
        """Return the same objects in another class."""
        return replace(self, storage_class=storage_class)

    def month(self, prices: Prices) -> float:
        """Return the dollars for a month of storage."""
        name = _priced_class(self.storage_class)
        price = prices.of(f"s3.storage.{name.lower()}")
        if name in _LEAST_BILLED:
            billed = self.bytes - self.small_bytes + self.small_objects * SMALL_BYTES
            return billed / GIB * price
        if name in _ARCHIVED:
            names = self.objects * _NAME_BYTES / GIB * prices.of("s3.storage.standard")
            return (self.bytes + self.objects * _INDEX_BYTES) / GIB * price + names
        if name == _INTELLIGENT_TIERING:
            watched = self.objects - self.small_objects
            fee = watched * prices.of("s3.monitoring.intelligent_tiering")
            return self.bytes / GIB * price + fee
        return self.bytes / GIB * price

    @property
    def gets(self) -> int:
        """Requests to read it all: one for each object, or for each 64 MiB."""
        return max(self.objects, math.ceil(self.bytes / _RANGE_BYTES))

    def read(self, prices: Prices) -> float:
        """Return the dollars to read it all once, with retrieval and restores."""
        name = _priced_class(self.storage_class)
        suffix = name.lower()
        get = f"s3.get.{suffix}" if name in _LEAST_BILLED else "s3.get"
        dollars = self.gets * prices.of(get)
        if name in (*_LEAST_BILLED, *_ARCHIVED):
            dollars += self.bytes / GIB * prices.of(f"s3.retrieval.{suffix}")
        if name in _ARCHIVED:
            dollars += self.objects * prices.of(f"s3.restore.{suffix}")
        return dollars

    def move(self, storage_class: str, prices: Prices) -> float:
        """Return the dollars for lifecycle to move it to a class; none for Standard or its own."""
        if storage_class in {STANDARD, self.storage_class}:
            return 0.0
        return self.objects * prices.of(f"s3.transition.{storage_class.lower()}")


def holdings_of(sources: Iterable[SourceObject]) -> tuple[Holding, ...]:
    """Return listed objects by storage class."""
    sizes: dict[str, list[int]] = {}
    for source in sources:
        sizes.setdefault(source.storage_class, []).append(source.size)
    return tuple(Holding.of(sizes[name], name) for name in sorted(sizes))


def scan_requests(holdings: Iterable[Holding]) -> int:
    """Return the LISTs and GETs of one full scan."""
    every = tuple(holdings)
    return _lists(every) + sum(one.gets for one in every)


def scan(holdings: Iterable[Holding], prices: Prices) -> float:
    """Return the dollars that S3 charges for one full scan."""
    every = tuple(holdings)
    lists = _lists(every) * prices.of("s3.list")
    return lists + sum(one.read(prices) for one in every)


def _lists(holdings: Iterable[Holding]) -> int:
    return math.ceil(sum(one.objects for one in holdings) / KEYS_PER_LIST)


def _priced_class(storage_class: str) -> str:
    """Return the class whose prices apply: Standard if this one has no known price."""
    return storage_class if storage_class in STORAGE_CLASSES else STANDARD
