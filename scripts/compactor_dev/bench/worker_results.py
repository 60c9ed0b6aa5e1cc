"""Measurements of workers and loops, and tables of them."""

from __future__ import annotations

import os
import platform
import textwrap
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version

from compactor_dev.bench.datasets import SETS
from compactor_dev.bench.measure import Spread, figure, markdown, parts, ratios

WORKER, LOOP, PROVING = "worker", "loop", "proving"
TITLES = {
    WORKER: "**s3-compactor worker**",
    "naive": "one object at a time (boto3)",
    LOOP: "bare loop: obstore, 256 threads",
    PROVING: "the loop, each record proved, outputs encoded",
}
_PACKAGES = ("boto3", "obstore", "isal", "msgspec", "pyarrow", "moto")
# As `make check` wants lines of documents.
_LINE = 100


@dataclass(frozen=True, slots=True)
class Measurement:
    """One run of a candidate; seconds and memory from :class:`Taken` and the candidate itself.

    Attributes:
        objects, bytes_in: sources read, and their stored bytes.
        of_objects: objects of the whole set, if only the first were read.
        start_seconds, start_user_seconds, start_kernel_seconds: until the end of imports.
            Counted once per set when figures of a sample are scaled.
        equal: whether the outputs contain exactly the records of the sources.
        second_run: requests of a second run of the worker over the unchanged set.
    """

    candidate: str
    lane: str
    round: int
    objects: int
    of_objects: int
    bytes_in: int
    bytes_out: int
    seconds: float
    user_seconds: float
    kernel_seconds: float
    start_seconds: float
    start_user_seconds: float
    start_kernel_seconds: float
    peak_bytes: int
    load: float
    equal: bool
    second_run: Mapping[str, int]

    def _of_one(self, taken: float, start: float) -> float:
        return start / self.of_objects + (taken - start) / self.objects

    @property
    def speed(self) -> float:
        """Sources a second of wall time."""
        return 1 / self._of_one(self.seconds, self.start_seconds)

    @property
    def user_ms(self) -> float:
        """CPU milliseconds in user space per source."""
        return 1_000 * self._of_one(self.user_seconds, self.start_user_seconds)

    @property
    def kernel_ms(self) -> float:
        """CPU milliseconds in the kernel per source."""
        return 1_000 * self._of_one(self.kernel_seconds, self.start_kernel_seconds)

    @property
    def cpu_ms(self) -> float:
        """CPU milliseconds per source."""
        return self.user_ms + self.kernel_ms


Results = dict[str, list[Measurement]]

HEADS = (
    "Candidate",
    "Lane",
    "CPU ms/object (min to max)",
    "user + kernel",
    "Objects/s (min to max)",
    "CPU / loop's",
    "Objects/s / loop's",
    "MB/s",
    "Peak MB",
    "Bytes out/in",
    "Records",
)


def rows(found: Sequence[Measurement], base: str) -> list[list[str]]:
    """Return a row per candidate and lane, with ratios to the base."""
    groups: dict[tuple[str, str], list[Measurement]] = {}
    for one in sorted(found, key=lambda one: (one.lane, one.round)):
        groups.setdefault((one.lane, one.candidate), []).append(one)
    return [_row(group, groups.get((lane, base), [])) for (lane, _), group in groups.items()]


def _row(group: Sequence[Measurement], base: Sequence[Measurement]) -> list[str]:
    first = group[0]
    user, kernel = (
        Spread.of(getattr(one, name) for one in group).median for name in ("user_ms", "kernel_ms")
    )
    speed = Spread.of(one.speed for one in group)
    cpu_ratio, speed_ratio = (
        ratios(
            {one.round: getattr(one, name) for one in group},
            {one.round: getattr(one, name) for one in base if one.candidate != first.candidate},
        )
        for name in ("cpu_ms", "speed")
    )
    return [
        TITLES.get(first.candidate, first.candidate)
        + (" ¹" if first.objects < first.of_objects else ""),
        first.lane,
        str(Spread.of(one.cpu_ms for one in group)),
        parts(user, kernel),
        str(speed),
        str(cpu_ratio or ""),
        str(speed_ratio or ""),
        figure(speed.median * first.bytes_in / first.objects / 1e6),
        f"{max(one.peak_bytes for one in group) / 1e6:,.0f}",
        f"{first.bytes_out / first.bytes_in:.3f}",
        "equal" if all(one.equal for one in group) else "**differ**",
    ]


def notes(found: Sequence[Measurement]) -> str:
    """Return figures that have no column in the table."""
    loads = [one.load for one in found]
    text = f"Load average {min(loads):.1f} to {max(loads):.1f}."
    second = next((one.second_run for one in reversed(found) if one.second_run), {})
    asked = ", ".join(f"{count} {name}" for name, count in sorted(second.items()))
    return f"{text} A second run over the unchanged set: {asked}." if asked else text


_PAGE_HEADS = (
    "Sources",
    "Lane",
    "CPU ms/object: worker",
    "bare loop",
    "proving loop",
    "Objects/s: worker",
    "bare loop",
    "proving loop",
    "CPU, worker / bare loop",
    "Objects/s, worker / bare loop",
    "Worker's peak MB",
)


def page(known: Results) -> str:
    """Return the table of docs/performance.md: a row per set and lane, and the conditions."""
    shown = [
        row
        for one in SETS.values()
        for lane in sorted({found.lane for found in known.get(one.name, [])})
        for row in _page_row(one.title, lane, [m for m in known[one.name] if m.lane == lane])
    ]
    loads = [one.load for found in known.values() for one in found]
    versions = ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
    made = (
        f"Measured on {time.strftime('%Y-%m-%d', time.gmtime())} on"
        f" {len(os.sched_getaffinity(0))} processors ({platform.machine()}), load average"
        f" {min(loads):.1f} to {max(loads):.1f}, Python {platform.python_version()}, {versions}."
    )
    return f"{markdown(_PAGE_HEADS, shown, texts=2)}\n\n{textwrap.fill(made, _LINE)}"


def _page_row(title: str, lane: str, found: Sequence[Measurement]) -> list[list[str]]:
    """Return one row, or none if the worker was not measured."""
    by_candidate: dict[str, list[Measurement]] = {}
    for one in found:
        by_candidate.setdefault(one.candidate, []).append(one)
    worker, loop = (by_candidate.get(name, []) for name in (WORKER, LOOP))
    if not worker:
        return []
    medians = [
        figure(Spread.of(getattr(one, name) for one in by_candidate[candidate]).median)
        if candidate in by_candidate
        else ""
        for name in ("cpu_ms", "speed")
        for candidate in (WORKER, LOOP, PROVING)
    ]
    compared = [
        ratios(*({one.round: getattr(one, name) for one in group} for group in (worker, loop)))
        for name in ("cpu_ms", "speed")
    ]
    peak = f"{max(one.peak_bytes for one in worker) / 1e6:,.0f}"
    return [[title, lane, *medians, *(str(one or "") for one in compared), peak]]
