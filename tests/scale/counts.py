"""Stands in for the listing of partitions in discovery: each takes what those of a sample took.

So all partitions of a run go through discovery as it is: it finds them, looks at its time,
stores what each invocation found, and joins it.
"""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest import mock

from compactor.discovery.counting import Tally
from compactor.log.resting import Resting
from compactor.model import Partition
from compactor.planning.surroundings import Surroundings
from tests.scale.keys import Keys
from tests.scale.meter import Meter, Used
from tests.scale.services import FUNCTIONS

_Asked = tuple[Partition, Tally | None]


class SkippedCounts:
    """Called as :class:`compactor.discovery.counting.Count` is, and gives what is called so.

    Args:
        meter: of the invocation that is under way.
        keys: of all partitions.
        page_keys: keys in a page of a listing.
        sample: what the partitions of the sample took together.
        weight: how often this is what one partition takes.
        share: one object in so many is in the sample.
        resting: what was found of a partition of the sample at rest; nothing where they are not.
    """

    def __init__(
        self,
        meter: Callable[[], Meter | None],
        keys: Keys,
        page_keys: int,
        sample: Used,
        weight: float,
        share: int,
        resting: Resting,
    ) -> None:
        self._resting = resting
        self._meter = meter
        self._keys = keys
        self._page_keys = page_keys
        self._pages = max(1, math.ceil(keys.in_each / page_keys))
        of_page = weight / self._pages
        self._computed = sample.computed * of_page
        self._waited = (sample.alone + sample.beside) * of_page
        # Of a share of a partition, what is asked once of it is asked once of the whole.
        once = of_page / share
        self._requests = {
            kind: number * (of_page if kind == "LIST source" else once)
            for kind, number in sample.requests.items()
        }
        # Few partitions leave lanes empty.
        lanes = FUNCTIONS["discover"].lanes
        self._waited *= lanes / min(lanes, keys.partitions)
        self._done = 0
        self._lock = threading.Lock()

    def __call__(self, *given: Any, around: Surroundings, **_: object) -> _Count:
        """A count; the last of what a real one is given by position tells when to stop."""
        return _Count(partial(self._count, given[-1], around), given[-1])

    def _count(
        self, stop: Callable[[], bool], looks: Surroundings, asked: _Asked
    ) -> tuple[Partition, Tally]:
        partition, tally = asked[0], asked[1] or Tally()
        if tally.complete or stop():
            return partition, tally
        # What all partitions share is asked as it is.
        assert looks.above(partition.prefix) is None
        number = self._keys.number_of(partition.prefix)
        start, end = self._keys.behind(number, tally.after), self._keys.in_each
        # Where nothing is, that is told by a page, too.
        for at in range(start, max(end, start + 1), self._page_keys):
            self._list_page()
            objects = min(end - at, self._page_keys)
            tally.objects += objects
            tally.size = tally.objects * self._keys.size
            if at + objects < end and stop():
                tally.after = partition.prefix + self._keys.name(number, at + objects - 1)
                return partition, tally
        tally.complete = True
        tally.resting = self._resting
        return partition, tally

    def _list_page(self) -> None:
        with self._lock:
            # In the sum they are whole requests, as many as there would be.
            before, self._done = self._done, self._done + 1
            requests = Counter(
                {
                    kind: round(number * self._done) - round(number * before)
                    for kind, number in self._requests.items()
                }
            )
        meter = self._meter()
        if meter is not None:
            meter.counted(Used(self._computed, beside=self._waited, requests=requests))


class _Count:
    """Counts one partition a call; ``stop`` is true when a count is to stop."""

    def __init__(
        self, count: Callable[[_Asked], tuple[Partition, Tally]], stop: Callable[[], bool]
    ) -> None:
        self._count = count
        self.stop = stop

    def __call__(self, asked: _Asked) -> tuple[Partition, Tally]:
        return self._count(asked)


@contextmanager
def counts_skipped(counts: SkippedCounts) -> Iterator[None]:
    """Let discovery list no partition."""
    with mock.patch("compactor.discovery.resume.Count", counts):
        yield
