"""How many objects there are of which size, as a report draws it.

Sizes fall into buckets that are the same everywhere and for ever, so that counts of different
calls, runs and versions add up: bucket 0 has the empty objects, bucket n those of at least
2^(n-1) bytes and fewer than 2^n.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import zip_longest


@dataclass(slots=True)
class SizeCounts:
    """Objects by size, before and after; a list ends with its last bucket that has any.

    Attributes:
        before: compacted sources in each bucket, by their listed size.
        after: outputs in each bucket, by their stored size.
    """

    before: list[int] = field(default_factory=list)
    after: list[int] = field(default_factory=list)

    def count(self, sources: Iterable[int], outputs: Iterable[int], sign: int = 1) -> None:
        """Add objects of so many bytes each; or with -1 take them away."""
        self.before = _added(self.before, _counted(sources), sign)
        self.after = _added(self.after, _counted(outputs), sign)

    def plus(self, other: SizeCounts) -> SizeCounts:
        """Both together."""
        return SizeCounts(_added(self.before, other.before), _added(self.after, other.after))


def least_bytes(bucket: int) -> int:
    """The smallest size that falls into a bucket, in bytes."""
    return 1 << bucket - 1 if bucket else 0


def _counted(sizes: Iterable[int]) -> list[int]:
    found = Counter(map(int.bit_length, sizes))
    return [found[bucket] for bucket in range(max(found, default=-1) + 1)]


def _added(counts: list[int], more: list[int], sign: int = 1) -> list[int]:
    result = [a + sign * b for a, b in zip_longest(counts, more, fillvalue=0)]
    while result and not result[-1]:
        result.pop()
    return result
