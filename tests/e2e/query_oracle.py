"""What queries must and may read of a lake at work, and the figures of many of them."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

# Producers, refreshes, runs of two kinds, killed runs, clean-ups.
_KINDS = 6


class Misread(Exception):
    """A query did not read each record once."""


@dataclass(slots=True)
class Oracle:
    """What queries must and may read.

    Attributes:
        begun: records whose object somebody has begun to put: a query may read them.
        put: records of objects that are there.
        known: records that were there before a refresh looked which then succeeded.
        seen: records that a query has read.
        hidden: records that were put while somebody was about to switch a partition: what that
            switch shows may be older, so that they are read, and then not until the next refresh.
    """

    begun: set[int] = field(default_factory=set)
    put: set[int] = field(default_factory=set)
    known: set[int] = field(default_factory=set)
    seen: set[int] = field(default_factory=set)
    hidden: set[int] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _switching: int = 0
    _switches: int = 0

    @contextmanager
    def putting(self, ids: set[int]) -> Iterator[None]:
        """Somebody puts an object with these records."""
        with self._lock:
            self.begun |= ids
            quiet, at = self._switching == 0, self._switches
        yield
        with self._lock:
            self.put |= ids
            if not quiet or self._switches != at:
                self.hidden |= ids

    @contextmanager
    def switching(self) -> Iterator[Callable[[], None]]:
        """Somebody may switch partitions; calls what it is given once all of them were."""
        with self._lock:
            self._switching += 1
            self._switches += 1
            alone, at, before = self._switching == 1, self._switches, set(self.put)
        done: list[bool] = []
        yield lambda: done.append(True)
        with self._lock:
            self._switching -= 1
            # The catalog has no condition: of two at once an older one may be the last.
            if done and alone and self._switches == at:
                self.known |= before

    def must_be_read(self) -> set[int]:
        """By a query that is planned from now on."""
        with self._lock:
            return self.known | (self.seen - self.hidden)

    def was_read(self, ids: set[int]) -> None:
        """By a query."""
        with self._lock:
            self.seen |= ids


@dataclass(slots=True)
class Figures:
    """What happened.

    Attributes:
        acts: how often each kind.
        queries: answers that were looked at.
        during: of these, planned or read while somebody was at work.
        outlasted: queries that took longer than the grace, and found an object gone.
        deleted: sources that clean-ups have deleted.
        shown: states of partitions that queries have met.
    """

    acts: Counter[str] = field(default_factory=Counter)
    queries: int = 0
    during: int = 0
    outlasted: int = 0
    deleted: int = 0
    shown: Counter[str] = field(default_factory=Counter)

    def all_of(self, queries: int) -> bool:
        """True once there were as many queries, and each kind of act, and sources are gone."""
        return self.queries >= queries and len(self.acts) == _KINDS and self.deleted > 0

    @property
    def line(self) -> str:
        """All of it."""
        acts = ", ".join(f"{count} {name}" for name, count in sorted(self.acts.items()))
        shown = ", ".join(f"{count:,} {name}" for name, count in sorted(self.shown.items()))
        return (
            f"{self.queries} queries ({self.during} while others were at work,"
            f" {self.outlasted} outlasted the grace) beside {acts};"
            f" {self.deleted} sources deleted; partitions shown: {shown}"
        )
