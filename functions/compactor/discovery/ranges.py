"""Partitions that keep others waiting, divided into ranges of their keys.

One partition is listed by a few requests at once, however many invocations there are. So its count
is left, and what is behind the last key that was counted is cut into ranges, which are counted as
partitions are; a range that takes long is left, and cut, in its turn. At last all counts
of a partition are added up: that is what one invocation would have counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from compactor.discovery.counting import Count, Tally
from compactor.discovery.parallel import Parallel
from compactor.discovery.pieces import Stretch
from compactor.discovery.search import partition_below
from compactor.discovery.stretches import Ask, Stretches
from compactor.discovery.survey import Surveyed, ranges_for, survey
from compactor.discovery.watch import SHARE_SECONDS, ways_for

# Each time what is left is cut finer, where it is denser. After so many divisions nothing is left
# any more, and what takes long is gone on with call after call.
MOST_DIVISIONS = 6
# Of one invocation that counts ranges: 16 at once, each in a tenth of a second.
_PAGES_PER_SECOND = 100.0


@dataclass(frozen=True, slots=True)
class Left:
    """A count that was left."""

    prefix: str
    tally: Tally


@dataclass(frozen=True, slots=True)
class Ranges:
    """What was left, divided.

    Attributes:
        stretches: of ranges.
        shared: they are to be counted at the same time.
    """

    stretches: Sequence[Stretch]
    shared: bool


def divided_into_ranges(ask: Ask, chain: Sequence[Stretches]) -> Ranges | None:
    """How to go on with what was left in the last division; None where there is nothing left.

    Args:
        ask: what for.
        chain: all divisions, of which each but the first is about what was left in the one before.
    """
    sums = _added_up(ask, chain)
    left = [
        one
        for number in chain[-1].numbers
        for one in _left_in(chain[-1], number)
        # Of a partition that is too large nothing more need be known, nor of one that is closed.
        if one.prefix in sums and not sums[one.prefix].oversized
    ]
    if not left:
        return None
    with Parallel(ask.workers) as parallel:
        surveyed = list(parallel.in_order(lambda one: _surveyed(ask, one), left))
    seconds = sum(one.pages for one in surveyed) / _PAGES_PER_SECOND
    ways = ways_for(seconds, ask.fleet.at_once) if ask.shares and seconds > SHARE_SECONDS else 1
    ranges = [
        (one.prefix, range_)
        for one, known in zip(left, surveyed, strict=True)
        for range_ in _cut(one.tally, known)
    ]
    # Neighbours are alike: so that each stretch has some of every kind.
    stretches = [_stretch(ranges[at::ways]) for at in range(min(ways, len(ranges)))]
    return Ranges(stretches, shared=ways > 1)


def closed(ask: Ask, chain: Sequence[Stretches]) -> None:
    """Store the counts of what was left, in the pieces of the first division."""
    if len(chain) == 1:
        return
    sums = _added_up(ask, chain)
    for number in chain[0].numbers:
        stretch, begun = chain[0].open(number)
        left = {at: sums[stretch.prefixes[at]] for at, one in begun.items() if one.left}
        if left:
            chain[0].close(number, left)


def _surveyed(ask: Ask, one: Left) -> Surveyed:
    partition, tally = partition_below(ask.settings, one.prefix), one.tally
    return survey(ask.store, partition, tally.after, tally.until, tally.pages)


def _cut(tally: Tally, known: Surveyed) -> list[Tally]:
    """What is left of a count, in ranges that follow on each other."""
    cuts = known.cuts(ranges_for(tally.pages, known.pages))
    ends = [*cuts, tally.until]
    return [
        Tally(after=since, since=since, until=until, against_log=tally.against_log)
        for since, until in zip([tally.after, *cuts], ends, strict=True)
    ]


def _stretch(ranges: Sequence[tuple[str, Tally]]) -> Stretch:
    prefixes = [prefix for prefix, _ in ranges]
    return Stretch(prefixes, dict(enumerate(tally for _, tally in ranges)))


def _left_in(stretches: Stretches, number: int) -> Iterator[Left]:
    stretch, begun = stretches.open(number)
    for at, tally in begun.items():
        if tally.left:
            yield Left(stretch.prefixes[at], tally)


def _added_up(ask: Ask, chain: Sequence[Stretches]) -> Mapping[str, Tally]:
    """What is known by now of each partition that was left, by its prefix."""
    sums = {
        one.prefix: Tally(complete=True)
        for number in chain[0].numbers
        for one in _left_in(chain[0], number)
    }
    if sums:
        for prefix, tally in _counts(chain):
            if prefix in sums:
                sums[prefix] = _plus(sums[prefix], tally)
    count = Count(ask.settings, ask.store, ask.committed, ask.fleet)
    for one in sums.values():
        count.judge(one)
    return sums


def _counts(chain: Sequence[Stretches]) -> Iterator[tuple[str, Tally]]:
    for number in chain[0].numbers:
        yield from ((one.prefix, one.tally) for one in _left_in(chain[0], number))
    for further in chain[1:]:
        for number in further.numbers:
            yield from further.counts(number)


def _plus(one: Tally, other: Tally) -> Tally:
    return Tally(
        objects=one.objects + other.objects,
        size=one.size + other.size,
        seconds=one.seconds + other.seconds,
        complete=True,
        oversized=one.oversized or other.oversized,
        against_log=one.against_log or other.against_log,
        lost=one.lost.plus(other.lost),
        pages=one.pages + other.pages,
    )
