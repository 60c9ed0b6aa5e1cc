"""Where the marks of a chart stand, in percent of its width and of its height. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compactor.log.size_counts import least_bytes
from compactor.sizes import human_bytes

# Labels of the axis of sizes that stand beside each other on a telephone.
_MOST_LABELS = 5
# Seen even where it is one object of a million.
_LEAST_PERCENT = 1.5
#: Below it infrequent-access classes charge for as many bytes; it begins a bucket.
_SMALLEST_BILLED = 128 * 1024
# Whatever is smaller stands in one column: fewer than 128 bytes.
_POOLED = 7


@dataclass(frozen=True, slots=True)
class Column:
    """Objects of one bucket.

    Attributes:
        x, width: percent of the chart's width.
        before, after: heights, percent of half the chart; 0 where there is no object.
        objects_before, objects_after: how many there are.
        sizes: of the bucket, for a person.
        label: for the axis; empty where another one stands too near.
    """

    x: float
    width: float
    before: float
    after: float
    objects_before: int
    objects_after: int
    sizes: str
    label: str


@dataclass(frozen=True, slots=True)
class Histogram:
    """Sizes of objects before and after, on one axis.

    Heights are shares of the objects of their side, so that a few large outputs can be seen
    beside many small sources.

    Attributes:
        billed: percent of the width where 128 KiB stands; None where that is not in the chart.
        objects_before, objects_after: that are in it.
    """

    columns: tuple[Column, ...]
    billed: float | None
    objects_before: int
    objects_after: int


def histogram(before: Sequence[int], after: Sequence[int]) -> Histogram | None:
    """The chart of two lists of counts by bucket; None where there is no object.

    Args:
        before: of sources, see :class:`compactor.log.size_counts.SizeCounts`.
        after: of outputs.
    """
    used = [bucket for counts in (before, after) for bucket, n in enumerate(counts) if n]
    if not used:
        return None
    first, last = max(_POOLED, min(used) - 1), max(_POOLED, *used) + 1
    before, after = _pooled(before), _pooled(after)
    width = 100 / (last - first + 1)
    step = -(-(last - first + 1) // _MOST_LABELS)
    sums = (sum(before), sum(after))
    tallest = max(
        max(counts, default=0) / (total or 1)
        for counts, total in zip((before, after), sums, strict=True)
    )
    columns = []
    for bucket in range(first, last + 1):
        n, m = (counts[bucket] if bucket < len(counts) else 0 for counts in (before, after))
        heights = (length(n / (sums[0] or 1), tallest), length(m / (sums[1] or 1), tallest))
        label = human_label(bucket) if (bucket - first) % step == step // 2 else ""
        x = (bucket - first) * width
        columns.append(Column(x, width, *heights, n, m, bucket_text(bucket), label))
    billed_at = (_SMALLEST_BILLED.bit_length() - first) * width
    billed = billed_at if 0 < billed_at < 100 else None
    return Histogram(tuple(columns), billed, *sums)


def bucket_text(bucket: int) -> str:
    """The sizes of a column: ``2 KiB to 4 KiB``."""
    above = human_label(bucket + 1)
    return f"less than {above}" if bucket <= _POOLED else f"{human_label(bucket)} to {above}"


def _pooled(counts: Sequence[int]) -> list[int]:
    """The same, the smallest objects in one bucket."""
    return [*[0] * _POOLED, sum(counts[: _POOLED + 1]), *counts[_POOLED + 1 :]]


def human_label(bucket: int) -> str:
    """The least size of a bucket without needless decimals: ``2 KiB``."""
    return human_bytes(least_bytes(bucket)).replace(".0 ", " ")


def length(value: float, longest: float) -> float:
    """A bar's length in percent of the longest one; 0 for nothing, and seen for anything else."""
    return max(_LEAST_PERCENT, 100 * value / longest) if value and longest else 0.0
