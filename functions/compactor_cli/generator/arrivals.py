"""When objects arrive: quiet nights and weekends, bursts, and some hours late."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from datetime import UTC, datetime
from itertools import accumulate
from random import Random

from compactor_cli.generator.spec import GeneratorSpec

SLOT_SECONDS = 600
DAY_SECONDS = 86_400
BURST_RATE = 0.01
ON_TIME_SECONDS = 1_800
LATE_SECONDS = 3_600
LATEST_SECONDS = 3 * DAY_SECONDS

_SLOTS_A_DAY = DAY_SECONDS // SLOT_SECONDS
_WEEKEND_WEIGHT = 0.45


class Arrivals:
    """Maps 0..1 to event times, distributed like the traffic of the whole window.

    Attributes:
        first: UNIX seconds of the first day's midnight.
    """

    def __init__(self, spec: GeneratorSpec) -> None:
        midnight = datetime(spec.start.year, spec.start.month, spec.start.day, tzinfo=UTC)
        self.first = int(midnight.timestamp())
        rng = Random(f"arrivals:{spec.seed}")
        hours = [_hour_weight(slot / 6) for slot in range(_SLOTS_A_DAY)]
        weights = (
            weight * _day_weight(spec.start.weekday() + day) * _slot_factor(rng)
            for day in range(spec.days)
            for weight in hours
        )
        self._cumulative = array("d", accumulate(weights))

    def at(self, share: float) -> int:
        """Return the event time, UNIX seconds, before which a ``share`` below 1 occurs."""
        cumulative = self._cumulative
        wanted = share * cumulative[-1]
        slot = min(bisect_right(cumulative, wanted), len(cumulative) - 1)
        before = cumulative[slot - 1] if slot else 0.0
        within = (wanted - before) / (cumulative[slot] - before)
        return self.first + slot * SLOT_SECONDS + min(int(within * SLOT_SECONDS), SLOT_SECONDS - 1)


def delay_seconds(rng: Random, *, late: bool) -> float:
    """Return the whole seconds from the last event of an object to its LastModified.

    On time: about a minute, at most 30. Late: one hour to three days, typically four hours.
    """
    if late:
        return min(LATE_SECONDS + round(rng.lognormvariate(math.log(10_800), 0.9)), LATEST_SECONDS)
    return min(1 + round(rng.lognormvariate(math.log(60), 0.8)), ON_TIME_SECONDS)


def _hour_weight(hour: float) -> float:
    return 1.0 + 0.8 * math.sin((hour - 8) * math.pi / 12)


def _day_weight(weekday: int) -> float:
    return _WEEKEND_WEIGHT if weekday % 7 >= 5 else 1.0


def _slot_factor(rng: Random) -> float:
    noise = rng.lognormvariate(0.0, 0.25)
    return noise * rng.uniform(5.0, 25.0) if rng.random() < BURST_RATE else noise
