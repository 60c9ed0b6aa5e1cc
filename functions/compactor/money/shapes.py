"""What is stored, as the numbers that costs depend on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from compactor.model import SourceObject
from compactor.planning.query_seconds import Stored
from compactor.settings.storage_classes import (
    DEEP_ARCHIVE,
    GLACIER,
    GLACIER_IR,
    MINIMUM_DAYS,
    ONEZONE_IA,
    STANDARD,
    STANDARD_IA,
)

#: Smaller objects are billed at this size in IA and Glacier IR. Intelligent-Tiering keeps them in
#: its frequent access tier, without the monitoring fee.
SMALL_BYTES = 128 * 1024
# Of each archived object, stored in its own class.
_INDEX_BYTES = 32 * 1024
#: Classes that bill small objects at :data:`SMALL_BYTES`, and those that must be restored.
LEAST_BILLED = frozenset({STANDARD_IA, ONEZONE_IA, GLACIER_IR})
ARCHIVED = frozenset({GLACIER, DEEP_ARCHIVE})
DAY_SECONDS = 86_400


@dataclass(frozen=True, slots=True)
class Holding:
    """The objects of one storage class.

    Attributes:
        storage_class: S3's name for it.
        objects: their number.
        bytes: as stored.
        small_objects: number of objects below 128 KB.
        small_bytes: bytes of these.
        early_byte_days: bytes billed, times the days that they are deleted before the minimum of
            their class.
    """

    storage_class: str
    objects: int = 0
    bytes: int = 0
    small_objects: int = 0
    small_bytes: int = 0
    early_byte_days: float = 0.0

    @property
    def billed_bytes(self) -> int:
        """The bytes whose storage the class bills."""
        if self.storage_class in LEAST_BILLED:
            return self.bytes - self.small_bytes + self.small_objects * SMALL_BYTES
        if self.storage_class in ARCHIVED:
            return self.bytes + self.objects * _INDEX_BYTES
        return self.bytes

    def __add__(self, other: Holding) -> Holding:
        """Return the sum of both, in the class of the first."""
        return Holding(
            self.storage_class,
            self.objects + other.objects,
            self.bytes + other.bytes,
            self.small_objects + other.small_objects,
            self.small_bytes + other.small_bytes,
            self.early_byte_days + other.early_byte_days,
        )


@dataclass(frozen=True, slots=True)
class Shape:
    """Objects, before or after a run.

    Attributes:
        holdings: sorted by the name of the storage class.
        parts: how many readers of a query can share them; each part takes at least one GET.
    """

    holdings: tuple[Holding, ...] = ()
    parts: int = 0

    @classmethod
    def of(
        cls, sizes: Iterable[int], *, storage_class: str = STANDARD, parts: int | None = None
    ) -> Shape:
        """Return objects of these sizes in bytes; by default each is one part."""
        listed = list(sizes)
        small = [size for size in listed if size < SMALL_BYTES]
        one = Holding(storage_class, len(listed), sum(listed), len(small), sum(small))
        return cls((one,) if one.objects else (), one.objects if parts is None else parts)

    @classmethod
    def of_sources(cls, sources: Iterable[SourceObject], deleted_at: float | None = None) -> Shape:
        """Return the shape of listed objects; each is one part.

        Args:
            sources: as listed.
            deleted_at: when they are deleted, UNIX seconds; None for never.
        """
        sizes: dict[str, list[int]] = {}
        early: dict[str, float] = {}
        for one in sources:
            name = one.storage_class
            sizes.setdefault(name, []).append(one.size)
            if deleted_at is not None and name in MINIMUM_DAYS:
                days = MINIMUM_DAYS[name] - (deleted_at - one.last_modified) / DAY_SECONDS
                (alone,) = cls.of((one.size,), storage_class=name).holdings
                early[name] = early.get(name, 0.0) + alone.billed_bytes * max(0.0, days)
        shapes = (cls.of(sizes[name], storage_class=name) for name in sorted(sizes))
        found = sum(shapes, cls())
        holdings = (
            replace(one, early_byte_days=early.get(one.storage_class, 0.0))
            for one in found.holdings
        )
        return cls(tuple(holdings), found.parts)

    @classmethod
    def alike(
        cls, objects: int, size: int, *, storage_class: str = STANDARD, parts: int | None = None
    ) -> Shape:
        """Return a number of objects of one size in bytes."""
        small = size < SMALL_BYTES
        every = objects * size
        one = Holding(storage_class, objects, every, objects * small, every * small)
        return cls((one,) if objects else (), objects if parts is None else parts)

    @property
    def objects(self) -> int:
        """Number of objects in all classes."""
        return sum(one.objects for one in self.holdings)

    @property
    def bytes(self) -> int:
        """Bytes in all classes."""
        return sum(one.bytes for one in self.holdings)

    @property
    def stored(self) -> Stored:
        """The same numbers as a query's model takes them."""
        return Stored(self.objects, self.bytes, self.parts)

    def moved(self, storage_class: str) -> Shape:
        """Return the same objects, all in one class."""
        if not self.holdings:
            return self
        whole = sum(
            (replace(one, storage_class=storage_class) for one in self.holdings[1:]),
            replace(self.holdings[0], storage_class=storage_class),
        )
        return Shape((whole,), self.parts)

    def __add__(self, other: Shape) -> Shape:
        """Return the sum of both."""
        found = {one.storage_class: one for one in self.holdings}
        for one in other.holdings:
            before = found.get(one.storage_class)
            found[one.storage_class] = one if before is None else before + one
        holdings = tuple(found[name] for name in sorted(found))
        return Shape(holdings, self.parts + other.parts)


NOTHING = Shape()
