"""Workers side by side: when the last one ends."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from tests.scale.services import Services


@dataclass(frozen=True, slots=True)
class Together:
    """All workers of a run.

    Attributes:
        seconds: from the first start to the last end.
        most: that ran at the same time.
    """

    seconds: float
    most: int


def side_by_side(
    partitions: int, calls: Sequence[float], services: Services, wanted: int
) -> Together:
    """So many partitions whose calls take so long, each behind the one before.

    Args:
        partitions: how many.
        calls: seconds of the calls of one of them.
        services: how many may run, and how fast they are started.
        wanted: max_concurrency of the run.
    """
    slots = min(wanted, services.functions.concurrency, services.workflows.most_children)
    took = sum(calls)
    running: list[float] = []
    end, most = 0.0, 0
    for number in range(partitions):
        start = number / services.workflows.starts_per_second
        while running and running[0] <= start:
            heapq.heappop(running)
        if len(running) == slots:
            start = heapq.heappop(running)
        heapq.heappush(running, start + took)
        most = max(most, len(running))
        end = max(end, start + took)
    return Together(end, most)
