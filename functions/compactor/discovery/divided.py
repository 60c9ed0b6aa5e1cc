"""Discover in as many invocations as it takes, one after the other or several at once.

The first finds the prefixes that are partitions and counts what is in them. If that comes to an
end, nothing of this is seen. If its time runs out, or would several times over, it stores what it
found and divides the rest into stretches; whoever comes next goes on with these, where the last
stored piece ends, and the last one joins all pieces to the work lists. Few partitions that keep the
others waiting are left in the stretches, and divided into ranges of their keys.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from compactor.discovery.counting import Tally
from compactor.discovery.joined import join
from compactor.discovery.parallel import Parallel
from compactor.discovery.pieces import Division, Pieces, Stretch, open_counts
from compactor.discovery.places import check_places
from compactor.discovery.ranges import MOST_DIVISIONS, closed, divided_into_ranges
from compactor.discovery.search import Search, dates_of
from compactor.discovery.stretches import (
    Ask,
    Stretches,
    count_some,
    first_open,
    found_in,
    found_piece,
)
from compactor.discovery.watch import Watch
from compactor.discovery.work import Discovery, Joined
from compactor.errors import InvalidInput
from compactor.model import SHOWN_EXAMPLES

__all__ = ["Ask", "Part", "count_stretch", "discover_on"]

# Of one stretch, so that a piece and its prefixes are held in few MB.
MOST_PARTITIONS = 50_000


@dataclass(frozen=True, slots=True)
class Part:
    """A discovery that is not at its end.

    Attributes:
        partitions: in all.
        counted: of these.
        stretches: to be counted at the same time before discovery is asked again; none where it
            is to be asked again at once.
    """

    partitions: int
    counted: int
    stretches: tuple[int, ...] = ()


def discover_on(ask: Ask) -> Discovery | Part | Joined:
    """Discover as far as the deadline allows; goes on where an earlier invocation stopped.

    Returns:
        All of it, where one invocation could do it; a part, after which it is to be asked again;
        or, from the last invocation of several, the lists, written.

    Raises:
        InvalidInput: see :func:`compactor.discovery.discover.discover`.
        IntegrityError: likewise; or what an earlier invocation stored is gone.
    """
    check_places(ask.settings, ask.store)
    pieces = Pieces(ask.settings, ask.run_id, ask.store)
    division = pieces.division()
    if division is None:
        return _begin(ask, pieces)
    return _go_on(ask, pieces, division)


def count_stretch(ask: Ask, number: int) -> bool:
    """Count one stretch as far as the deadline allows; true when it is at its end.

    Raises:
        InvalidInput: the discovery of this run has no such stretch.
    """
    pieces = Pieces(ask.settings, ask.run_id, ask.store)
    division, known, depth = pieces.division(), 0, 0
    while division is not None:
        depth += 1
        if 0 < number - known <= division.stretches:
            stretches = Stretches(ask, pieces, division, leaves=depth < MOST_DIVISIONS)
            return stretches.count(number - known)
        known += division.stretches
        division = pieces.ranges(division)
    raise InvalidInput("stretch", number, f"one of the {known} that discovery made of this run")


def _begin(ask: Ask, pieces: Pieces) -> Discovery | Part | Joined:
    dates = dates_of(ask.settings, ask.now)
    watch = Watch(ask.deadline, shares=ask.shares, leaves=ask.shares, workers=ask.workers)
    with Parallel(ask.workers) as parallel:
        search = Search(ask.settings, ask.store, parallel)
        prefixes = [one.prefix for one in search.partitions(dates)]
        watch.begin(len(prefixes))
        stretch = Stretch(prefixes, {})
        counted = count_some(ask, parallel, watch, stretch, 0)
    end = first_open(counted, 0)
    if end == len(prefixes):
        found = found_in(ask.settings, stretch, counted, 0, end)
        found.skip(search.unpartitioned)
        return found.discovery()
    first = found_piece(ask.settings, stretch, counted, 0, end)
    first.unpartitioned = first.unpartitioned.plus(search.unpartitioned, SHOWN_EXAMPLES)
    first.open = {}
    ways = watch.ways(ask.fleet.at_once)
    left = any(tally.left for tally in counted.values())
    division = pieces.divide(
        first,
        _divided(prefixes[end:], open_counts(counted, end), end, ways),
        shared=ways > 1 or left,
    )
    if ways == 1 and left:
        return _go_on(ask, pieces, division)
    numbers = tuple(range(1, division.stretches + 1))
    return Part(division.partitions, end, numbers if division.shared else ())


def _divided(
    prefixes: Sequence[str], counts: Mapping[int, Tally], offset: int, ways: int
) -> list[Stretch]:
    """Stretches of about as many partitions each."""
    size = min(MOST_PARTITIONS, math.ceil(len(prefixes) / ways))
    stretches = []
    for start in range(0, len(prefixes), size):
        begun = {
            number - offset - start: one
            for number, one in counts.items()
            if start <= number - offset < start + size
        }
        stretches.append(Stretch(list(prefixes[start : start + size]), begun))
    return stretches


def _go_on(ask: Ask, pieces: Pieces, first: Division) -> Part | Joined:
    chain: list[Stretches] = []
    division: Division | None = first
    while division is not None:
        before = sum(one.division.stretches for one in chain)
        leaves = ask.shares and len(chain) + 1 < MOST_DIVISIONS
        chain.append(Stretches(ask, pieces, division, leaves=leaves))
        left = _counted(ask, chain[-1], before)
        if left is not None:
            return Part(first.partitions, chain[0].counted(), left)
        division = pieces.ranges(division) or _further(ask, pieces, chain)
    closed(ask, chain)
    return join(ask.settings, ask.run_id, pieces, first)


def _counted(ask: Ask, stretches: Stretches, before: int) -> tuple[int, ...] | None:
    """Count a division, or tell which stretches of it others are to count; None when it is.

    Args:
        ask: what for.
        stretches: of the division.
        before: how many stretches the divisions before it have.
    """
    if stretches.division.shared and ask.shares:
        left = (number for number in stretches.numbers if not stretches.is_counted(number))
        return tuple(before + number for number in left) or None
    if not all(stretches.count(number) for number in stretches.numbers):
        return ()
    return () if stretches.out_of_time else None


def _further(ask: Ask, pieces: Pieces, chain: Sequence[Stretches]) -> Division | None:
    """What was left in the last division, divided; None where nothing was."""
    ranges = divided_into_ranges(ask, chain)
    if ranges is None:
        return None
    return pieces.divide_further(chain[-1].division, ranges.stretches, shared=ranges.shared)
