"""Progress lines: what is done, how fast, and how long the rest will take."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TextIO

from compactor.model import ObjectGroup

NAME = "compact_partitions"
_EVERY_SECONDS = 5.0


@dataclass(slots=True)
class Amount:
    """Groups, and the objects and bytes in them."""

    groups: int = 0
    objects: int = 0
    bytes: int = 0

    def add(self, group: ObjectGroup) -> None:
        """Add one group."""
        self.groups += 1
        self.objects += len(group.sources)
        self.bytes += group.size


@dataclass(slots=True)
class Console:
    """Writes progress lines, at most one in five seconds, and other lines immediately.

    Attributes:
        stream: where the lines are written.
        clock: monotonic seconds.
        name: of the job; prefixes each line.
    """

    stream: TextIO = field(default_factory=lambda: sys.stderr)
    clock: Callable[[], float] = time.monotonic
    planned: Amount = field(default_factory=Amount)
    finished: Amount = field(default_factory=Amount)
    _working_seconds: float = 0.0
    _round_began: float = 0.0
    _written_at: float = 0.0
    name: str = NAME

    def say(self, text: str) -> None:
        """Write one line immediately."""
        print(f"{self.name}: {text}", file=self.stream, flush=True)

    def begin_round(self, groups: Iterable[ObjectGroup], *, more: bool) -> None:
        """Start a round; ``more`` is True while not everything is listed yet."""
        for group in groups:
            self.planned.add(group)
        self._round_began = self._written_at = self.clock()
        self.say(self.line(more=more))

    def end_round(self) -> None:
        """End a round, when all its groups have an answer."""
        self._working_seconds += self.clock() - self._round_began
        self._round_began = 0.0

    def finish(self, group: ObjectGroup) -> None:
        """Count a group that has its answer as finished."""
        self.finished.add(group)

    def show(self, *, more: bool) -> None:
        """Write a progress line if the last one is at least five seconds old."""
        if self.clock() - self._written_at >= _EVERY_SECONDS:
            self._written_at = self.clock()
            self.say(self.line(more=more))

    def line(self, *, more: bool) -> str:
        """Return progress as one line; only finished groups count for the rate."""
        done, planned = self.finished, self.planned
        so_far = f"{done.groups:,}/{planned.groups:,} groups"
        if more:
            so_far += " (more to list)"
        seconds = self._seconds()
        if not done.objects or seconds <= 0:
            return f"{so_far}, no group finished yet, time left unknown"
        left = _duration(self._seconds_left(seconds))
        left = f"{left} left for these" if more else f"{left} left"
        rate = done.objects / seconds
        return f"{so_far}, {rate:,.{0 if rate >= 10 else 1}f} objects/s, {left}"

    def _seconds(self) -> float:
        current = self.clock() - self._round_began if self._round_began else 0.0
        return self._working_seconds + current

    def _seconds_left(self, seconds: float) -> float:
        """Estimate the time left by objects and by bytes, and return the longer."""
        done, planned = self.finished, self.planned
        by_objects = (planned.objects - done.objects) * seconds / done.objects
        by_bytes = (planned.bytes - done.bytes) * seconds / done.bytes if done.bytes else 0.0
        return max(by_objects, by_bytes)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
