"""Counts of a run: sources left alone, by reason with an example; objects by size, for a chart.

The size buckets are fixed, so that counts of different calls, runs and versions add up: bucket 0
holds empty objects, bucket n those of at least 2^(n-1) and fewer than 2^n bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import zip_longest

from compactor.model import Quarantined, QuarantineReason

#: Reasons that depend on settings: under different settings such a source is tried again.
BY_SETTINGS = frozenset(
    {
        QuarantineReason.UNKNOWN_FORMAT,
        QuarantineReason.BINARY,
        QuarantineReason.ENCODING,
        QuarantineReason.OPEN_END,
        QuarantineReason.OPEN_QUOTE,
        QuarantineReason.MALFORMED,
    }
)


@dataclass(slots=True)
class LeftAlone:
    """The sources of a run that were left alone for one reason.

    Attributes:
        example: key of the first.
        detail: what was seen of it, its first bytes escaped.
    """

    objects: int = 0
    bytes: int = 0
    example: str = ""
    detail: str = ""

    def plus(self, other: LeftAlone) -> LeftAlone:
        """Return the sum of both, with the example of the first that has one."""
        named = self if self.example else other
        return replace(named, objects=self.objects + other.objects, bytes=self.bytes + other.bytes)


def count_left_alone(
    counts: dict[str, LeftAlone], sources: Iterable[Quarantined], sign: int = 1
) -> None:
    """Add sources that were left alone, by reason; with a sign of -1, subtract them."""
    for quarantined in sources:
        left_alone = counts.get(quarantined.reason)
        if left_alone is None:
            left_alone = LeftAlone(0, 0, quarantined.source.key, quarantined.detail)
            counts[quarantined.reason.value] = left_alone
        left_alone.objects += sign
        left_alone.bytes += sign * quarantined.source.size


def added_up(counts: Iterable[Mapping[str, LeftAlone]]) -> dict[str, LeftAlone]:
    """Return the sums by reason, the most frequent first."""
    result: dict[str, LeftAlone] = {}
    for by_reason in counts:
        for reason, count in by_reason.items():
            # The count is zero if the commits were replaced.
            if not count.objects:
                continue
            result[reason] = result.get(reason, LeftAlone()).plus(count)
    return dict(sorted(result.items(), key=lambda item: (-item[1].objects, item[0])))


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
    numbers = Counter(map(int.bit_length, sizes))
    return [numbers[bucket] for bucket in range(max(numbers, default=-1) + 1)]


def _added(counts: list[int], more: list[int], sign: int = 1) -> list[int]:
    result = [a + sign * b for a, b in zip_longest(counts, more, fillvalue=0)]
    while result and not result[-1]:
        result.pop()
    return result
