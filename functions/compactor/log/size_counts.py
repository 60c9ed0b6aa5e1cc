"""Counts of objects by size, as drawn in a report.

The size buckets are fixed, so that counts of different calls, runs and versions add up: bucket 0
holds empty objects, bucket n those of at least 2^(n-1) and fewer than 2^n bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import zip_longest


@dataclass(slots=True)
class SizeCounts:
    """Objects by size, before and after; each list ends with its last non-empty bucket.

    Attributes:
        before: compacted sources in each bucket, by their listed size.
        after: outputs in each bucket, by their stored size.
    """

    before: list[int] = field(default_factory=list)
    after: list[int] = field(default_factory=list)

    def count(self, sources: Iterable[int], outputs: Iterable[int], sign: int = 1) -> None:
        """Add objects with these sizes in bytes; with a sign of -1, subtract them."""
        self.before = _added(self.before, _counted(sources), sign)
        self.after = _added(self.after, _counted(outputs), sign)

    def plus(self, other: SizeCounts) -> SizeCounts:
        """Return the sum of both."""
        return SizeCounts(_added(self.before, other.before), _added(self.after, other.after))


def least_bytes(bucket: int) -> int:
    """Return the smallest size that falls into a bucket, in bytes."""
    return 1 << bucket - 1 if bucket else 0


def _counted(sizes: Iterable[int]) -> list[int]:
    found = Counter(map(int.bit_length, sizes))
    return [found[bucket] for bucket in range(max(found, default=-1) + 1)]


def _added(counts: list[int], more: list[int], sign: int = 1) -> list[int]:
    result = [a + sign * b for a, b in zip_longest(counts, more, fillvalue=0)]
    while result and not result[-1]:
        result.pop()
    return result
