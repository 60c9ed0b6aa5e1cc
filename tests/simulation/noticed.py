"""Finds new seeds for guards whose removal the known schedule no longer notices.

    python -m tests.simulation.noticed

A change of the product changes what schedules do; until the known seeds are updated, ``make test``
searches for another schedule each time, up to a minute per guard. Prints the corrected lines for
outdated seeds; exits with 1 if there are any.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping

import pytest

from tests.simulation.event_mutations import EVENT_MUTATIONS, EVENT_NOTICED
from tests.simulation.events import play
from tests.simulation.explore import explore_batch
from tests.simulation.explored import Explored
from tests.simulation.keyed import KEYED_NOTICED, explore_keyed
from tests.simulation.lake import LAKE_NOTICED, explore_lakes
from tests.simulation.mutations import NOTICED
from tests.simulation.readers import READER_MUTATIONS, READER_NOTICED, misread
from tests.simulation.tables import TABLE_NOTICED, explore_tables

_MOST = 2_000
#: Takes a seed, a number of schedules and a guard; returns the first seed that notices, or None.
First = Callable[[int, int, str], int | None]


def _explored(explore: Callable[[int, int, str], Explored]) -> First:
    def first(seed: int, count: int, guard: str) -> int | None:
        found = explore(seed, count, guard)
        return found.violations[0][0] if found.violations else None

    return first


def _of_events(seed: int, count: int, guard: str) -> int | None:
    with EVENT_MUTATIONS[guard]():
        return next((one for one in range(seed, seed + count) if play(one).violation), None)


def _of_queries(seed: int, count: int, guard: str) -> int | None:
    with pytest.MonkeyPatch.context() as patch:
        READER_MUTATIONS[guard](patch)
        played = misread(range(seed, seed + count))
    return seed + played - 1 if played else None


_KINDS: Mapping[str, tuple[First, Mapping[str, int]]] = {
    "mutations.NOTICED": (_explored(explore_batch), NOTICED),
    "tables.TABLE_NOTICED": (_explored(explore_tables), TABLE_NOTICED),
    "lake.LAKE_NOTICED": (_explored(explore_lakes), LAKE_NOTICED),
    "keyed.KEYED_NOTICED": (_explored(explore_keyed), KEYED_NOTICED),
    "event_mutations.EVENT_NOTICED": (_of_events, EVENT_NOTICED),
    "readers.READER_NOTICED": (_of_queries, READER_NOTICED),
}


def main() -> int:
    """Check every known seed; search for another if it no longer notices."""
    wrong = 0
    for where, (first, known) in _KINDS.items():
        for guard, seed in known.items():
            if first(seed, 1, guard) == seed:
                continue
            wrong += 1
            sys.stdout.write(f'{where}: "{guard}": {first(0, _MOST, guard)},\n')
            sys.stdout.flush()
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
