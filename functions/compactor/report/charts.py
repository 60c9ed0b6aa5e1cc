"""Positions in the two charts of a report, in percent of their width and height. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compactor.log.counts import least_bytes
from compactor.sizes import human_bytes, human_seconds, plural

# How many labels of the size axis fit beside each other on a phone.
_MOST_LABELS = 5
# Minimum height, so that one object among a million is visible.
_LEAST_PERCENT = 1.5
# Buckets up to this one, of fewer than 128 bytes, share one column.
_POOLED = 7


@dataclass(frozen=True, slots=True)
class Column:
    """The objects of one bucket.

    Attributes:
        x, width: percent of the chart's width.
        before, after: heights, percent of half the chart; 0 if there are no objects.
        objects_before, objects_after: number of objects.
        sizes: range of the bucket, for display.
        label: for the axis; empty if it would overlap with another one.
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

    Heights are shares of the objects on the same side, so that a few large outputs are visible
    next to many small sources.

    Attributes:
        tallest: share of the objects that a full height means, from 0 to 1.
        objects_before, objects_after: number of objects in the chart.
    """

    columns: tuple[Column, ...]
    tallest: float
    objects_before: int
    objects_after: int


def histogram(before: Sequence[int], after: Sequence[int]) -> Histogram | None:
    """Return the chart of two lists of counts by bucket; None if there are no objects.

    Args:
        before: of sources, see :class:`compactor.log.counts.SizeCounts`.
        after: of outputs.
    """
    used = [bucket for counts in (before, after) for bucket, count in enumerate(counts) if count]
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
        heights = (_length(n / (sums[0] or 1), tallest), _length(m / (sums[1] or 1), tallest))
        label = _label(bucket) if (bucket - first) % step == step // 2 else ""
        x = (bucket - first) * width
        columns.append(Column(x, width, *heights, n, m, _bucket_text(bucket), label))
    return Histogram(tuple(columns), tallest, *sums)


def _bucket_text(bucket: int) -> str:
    """Return the sizes of a column, such as ``2 KiB to 4 KiB``."""
    above = _label(bucket + 1)
    return f"less than {above}" if bucket <= _POOLED else f"{_label(bucket)} to {above}"


def _pooled(counts: Sequence[int]) -> list[int]:
    """Return the counts with the smallest objects pooled into one bucket."""
    return [*[0] * _POOLED, sum(counts[: _POOLED + 1]), *counts[_POOLED + 1 :]]


def _label(bucket: int) -> str:
    """Return the lower bound of a bucket without needless decimals, such as ``2 KiB``."""
    return human_bytes(least_bytes(bucket)).replace(".0 ", " ")


def _length(value: float, longest: float) -> float:
    """Return a bar's length, percent of the longest; 0 for nothing, else at least visible."""
    return max(_LEAST_PERCENT, 100 * value / longest) if value and longest else 0.0


@dataclass(frozen=True, slots=True)
class Bar:
    """The duration of one run.

    Attributes:
        x, width: percent of the chart's width.
        height: percent of the longest run's.
        failed: the run failed.
        text: for display.
    """

    x: float
    width: float
    height: float
    failed: bool
    text: str


@dataclass(frozen=True, slots=True)
class Trend:
    """The durations of runs, in the order in which they ended.

    Attributes:
        longest: duration that a full height means.
        first, last: when these runs started.
    """

    bars: tuple[Bar, ...]
    longest: str
    first: str
    last: str


def trend(runs: Sequence[Mapping[str, Any]]) -> Trend | None:
    """Return the chart of the durations of runs; None if there are fewer than two.

    Args:
        runs: lines of :mod:`compactor.report.run_history` with ``started`` for display, oldest
            first.
    """
    if len(runs) < 2:
        return None
    longest = max(run["wall_seconds"] for run in runs)
    width = 100 / len(runs)
    bars = tuple(
        Bar(
            number * width,
            width * 0.86,
            _length(run["wall_seconds"], longest),
            run["status"] == "failed",
            f"{run['started']}: {human_seconds(run['wall_seconds'])},"
            f" {plural(run['objects'], 'object')}, {run['status']}",
        )
        for number, run in enumerate(runs)
    )
    return Trend(bars, human_seconds(longest), runs[0]["started"], runs[-1]["started"])
