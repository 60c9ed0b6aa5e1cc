"""What was measured of workers and loops, and the tables that show it."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version

from compactor_dev.bench.datasets import SETS
from compactor_dev.bench.measure import Spread, figure, markdown, parts, ratios

WORKER, LOOP = "worker", "loop"
TITLES = {
    WORKER: "**s3-compactor worker**",
    "naive": "one object at a time (boto3)",
    LOOP: "bare loop: obstore, 256 threads",
    "proving": "the loop, each record proved, outputs encoded",
}
_PACKAGES = ("boto3", "obstore", "isal", "msgspec", "moto")


@dataclass(frozen=True, slots=True)
class Measurement:
    """One candidate, once; seconds and memory as :class:`Taken` and the candidate itself say.

    Attributes:
        objects, bytes_in: sources read, and their stored bytes.
        of_objects: objects of the set, of which these were the first.
        start_seconds, start_user_seconds, start_kernel_seconds: until its imports were done.
            They come once, so that a sample's figures are those of the whole set at its pace.
        equal: the outputs hold exactly the records of the sources.
        second_run: what the worker asked for in a second run over the unchanged set.
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
        """CPU milliseconds in user space for one source."""
        return 1_000 * self._of_one(self.user_seconds, self.start_user_seconds)

    @property
    def kernel_ms(self) -> float:
        """Likewise, in the kernel."""
        return 1_000 * self._of_one(self.kernel_seconds, self.start_kernel_seconds)

    @property
    def cpu_ms(self) -> float:
        """Both."""
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
    """A row for each candidate in each lane; ratios are to the base's."""
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
    """What the table has no columns for."""
    loads = [one.load for one in found]
    text = f"Load average {min(loads):.1f} to {max(loads):.1f}."
    second = next((one.second_run for one in reversed(found) if one.second_run), {})
    asked = ", ".join(f"{count} {name}" for name, count in sorted(second.items()))
    return f"{text} A second run over the unchanged set: {asked}." if asked else text


def page(known: Results) -> str:
    """What docs/performance.md shows: for each set a table, and notes below it."""
    blocks = [
        f"**{one.title}**\n\n{markdown(HEADS, rows(known[one.name], LOOP), texts=2)}\n\n"
        f"{notes(known[one.name])}"
        for one in SETS.values()
        if one.name in known
    ]
    versions = ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
    made = (
        "Medians of the rounds. Each candidate is a fresh process, from its start to its published"
        " output, listing included; CPU is that of the candidate alone. Ratios are formed within"
        " each round; the loop is the bare one, which checks, counts and commits nothing. Latency"
        " comes before the first byte of every answer. Candidates and servers share processors."
        " ¹ measured on the first objects only, because it is slow, and scaled."
        f"\n\nMeasured on {time.strftime('%Y-%m-%d', time.gmtime())} on"
        f" {len(os.sched_getaffinity(0))} processors ({platform.machine()}), Python"
        f" {platform.python_version()}, {versions}."
    )
    return "\n\n".join([*blocks, made])
