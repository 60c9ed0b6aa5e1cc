"""Sums over listed objects, in constant memory. Pure."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass, field

from compactor.model import SHOWN_EXAMPLES, Skipped, SkipReason, SourceObject
from compactor.money import SMALL_BYTES
from compactor.sizes import GIB, MIB

_KIB = 1 << 10
#: Lower bounds of the histogram's classes, in bytes: an object belongs to the last class whose
#: bound is not larger than it. Empty objects are a class of their own.
BOUNDS = (0, 1, 4 * _KIB, 16 * _KIB, 64 * _KIB, SMALL_BYTES, MIB, 8 * MIB, 64 * MIB, GIB)
_DAY = 86_400


@dataclass(slots=True)
class Sizes:
    """A histogram of sizes.

    Attributes:
        objects, bytes: by class, in the order of :data:`BOUNDS`.
    """

    objects: list[int] = field(default_factory=lambda: [0] * len(BOUNDS))
    bytes: list[int] = field(default_factory=lambda: [0] * len(BOUNDS))

    def add(self, size: int) -> None:
        """Add an object of ``size`` bytes."""
        at = bisect_right(BOUNDS, size) - 1
        self.objects[at] += 1
        self.bytes[at] += size

    @property
    def small(self) -> tuple[int, int]:
        """Number and bytes of objects below 128 KiB, including empty ones."""
        end = BOUNDS.index(SMALL_BYTES)
        return sum(self.objects[:end]), sum(self.bytes[:end])


@dataclass(slots=True)
class Arrivals:
    """When objects arrived, by Last-Modified.

    Attributes:
        days: objects and bytes of each day since 1970, UTC.
        first, last: UNIX seconds; 0.0 if there are no objects.
        open_since: UNIX seconds; a partition with a later object may still grow.
        recent: number of objects that arrived later than that.
    """

    days: dict[int, tuple[int, int]] = field(default_factory=dict)
    first: float = 0.0
    last: float = 0.0
    open_since: float = math.inf
    recent: int = 0

    def add(self, one: SourceObject) -> None:
        """Add an object."""
        day = int(one.last_modified // _DAY)
        objects, size = self.days.get(day, (0, 0))
        self.days[day] = objects + 1, size + one.size
        self.first = min(self.first or one.last_modified, one.last_modified)
        self.last = max(self.last, one.last_modified)
        self.recent += one.last_modified > self.open_since

    @property
    def usual_day(self) -> tuple[float, float, int] | None:
        """Median objects and bytes of the days between the first and last, and the number of days.

        None if there are fewer than three such days.
        """
        if not self.days or max(self.days) - min(self.days) < 4:
            return None
        whole = [self.days.get(day, (0, 0)) for day in range(min(self.days) + 1, max(self.days))]
        middle = len(whole) // 2
        objects = sorted(one for one, _ in whole)[middle]
        return float(objects), float(sorted(size for _, size in whole)[middle]), len(whole)


@dataclass(slots=True)
class Skips:
    """The objects that no run would take, by skip reason."""

    by_reason: dict[SkipReason, Skipped] = field(default_factory=dict)

    def add(self, reason: SkipReason, one: SourceObject) -> None:
        """Add an object."""
        before = self.by_reason.get(reason)
        if before is None:
            self.by_reason[reason] = Skipped(1, one.size, (one.key,))
            return
        examples = before.examples
        if len(examples) < SHOWN_EXAMPLES:
            examples = (*examples, one.key)
        self.by_reason[reason] = Skipped(before.objects + 1, before.bytes + one.size, examples)
