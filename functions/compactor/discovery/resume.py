"""Discover in as many invocations as it takes, one after the other.

The first finds the prefixes that are partitions and counts what is in them. If it comes to an end,
nothing of this is stored. If its time runs out, it stores the prefixes and what it found.
Each later invocation counts from where the last stored piece ends, and the last one joins all
pieces to the work lists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from compactor.discovery.counting import Committed, Count, Tally
from compactor.discovery.discover import Found
from compactor.discovery.discovery_pieces import Partitions, Piece, Pieces
from compactor.discovery.fleet import Fleet
from compactor.discovery.joined import join
from compactor.discovery.location_checks import check_places, rests_of
from compactor.discovery.parallel import Parallel
from compactor.discovery.search import Search, dates_of, partition_below
from compactor.discovery.work_items import Discovery, Joined
from compactor.model import Partition
from compactor.planning.surroundings import Surroundings
from compactor.ports import Deadline, ObjectStore
from compactor.settings.settings import Settings

# Kept of an invocation for the requests under way and the piece; of a short one, a quarter.
_RESERVE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Ask:
    """Everything a discovery needs.

    Attributes:
        now: UNIX seconds.
        deadline: of this invocation.
        workers: threads, each with one request at a time.
    """

    settings: Settings
    run_id: str
    store: ObjectStore
    now: float
    committed: Committed
    deadline: Deadline
    fleet: Fleet = field(default_factory=Fleet)
    workers: int = 16


@dataclass(frozen=True, slots=True)
class Part:
    """A discovery that is not at its end, and is to be called again.

    Attributes:
        partitions: in all.
        counted: of these.
    """

    partitions: int
    counted: int


def discover_on(ask: Ask) -> Discovery | Part | Joined:
    """Discover as far as the deadline allows, from where an earlier invocation stopped.

    Returns:
        All of it, where one invocation could do it; a part, after which it is to be called again;
        or, from the last invocation of several, the lists, written.

    Raises:
        InvalidInput: see :func:`compactor.discovery.discover.discover`.
        IntegrityError: likewise; or what an earlier invocation stored is gone.
    """
    settings, store = ask.settings, ask.store
    has_identity = check_places(settings, store)
    rests = rests_of(settings, store, ask.now, ask.run_id, has_identity=has_identity)
    around = Surroundings(store, settings.source.root.bucket)
    count = Count(
        settings,
        store,
        ask.committed,
        ask.fleet,
        _stop_before(ask.deadline),
        around=around,
        rests=rests,
        now=ask.now,
    )
    pieces = Pieces(settings, ask.run_id, store)
    partitions = pieces.partitions()
    if partitions is None:
        return _begin(ask, count, pieces, around)
    return _go_on(ask, count, pieces, partitions)


def _begin(ask: Ask, count: Count, pieces: Pieces, around: Surroundings) -> Discovery | Part:
    dates = dates_of(ask.settings, ask.now)
    with Parallel(ask.workers) as parallel:
        search = Search(ask.settings, ask.store, parallel, around)
        prefixes = [one.prefix for one in search.partitions(dates)]
        counted = _Counts(ask, count, prefixes, parallel).on(0, {})
    counted.found.skip(search.unpartitioned)
    if counted.end == len(prefixes):
        return counted.found.discovery()
    partitions = pieces.begin(Partitions(prefixes, counted.piece(0)))
    return Part(len(partitions.prefixes), partitions.first.end)


def _go_on(ask: Ask, count: Count, pieces: Pieces, partitions: Partitions) -> Part | Joined:
    prefixes, has_counted = partitions.prefixes, False
    while True:
        number, last = pieces.last(partitions)
        if has_counted and count.stop():
            return Part(len(prefixes), last.end)
        if last.end == len(prefixes):
            return join(ask.settings, ask.run_id, pieces, partitions)
        with Parallel(ask.workers) as parallel:
            counted = _Counts(ask, count, prefixes, parallel).on(last.end, last.open)
        pieces.add(number + 1, counted.piece(last.end))
        has_counted = True


def _stop_before(deadline: Deadline) -> Callable[[], bool]:
    """True once nothing more is to be begun."""
    reserve = min(_RESERVE_SECONDS, deadline.remaining_seconds() / 4)
    return lambda: deadline.remaining_seconds() < reserve


@dataclass(frozen=True, slots=True)
class _Counted:
    """What one invocation found.

    Attributes:
        found: in the partitions up to ``end``.
        end: number of the first partition that is not counted to its end.
        open: counts from there on that were begun.
    """

    found: Found
    end: int
    open: dict[int, Tally]

    def piece(self, start: int) -> Piece:
        """The same, to be stored."""
        found = self.found
        return Piece(
            start,
            self.end,
            found.items,
            found.oversized,
            found.objects,
            found.lost,
            found.unpartitioned,
            self.open,
            found.resting,
        )


@dataclass(frozen=True, slots=True)
class _Counts:
    """Counts the partitions of a run until it is to stop."""

    ask: Ask
    count: Count
    prefixes: Sequence[str]
    parallel: Parallel

    def on(self, start: int, begun: Mapping[int, Tally]) -> _Counted:
        """Count from a partition on.

        Args:
            start: its number.
            begun: counts that an earlier invocation began, by the partition's number.
        """
        counted = dict(self.parallel.in_order(self._one(begun), self._numbers(start, begun)))
        end = start
        while end in counted and counted[end].complete:
            end += 1
        found = Found(self.ask.settings)
        found.add((self._partition(number), counted[number]) for number in range(start, end))
        open_ = {number: one for number, one in counted.items() if number >= end and one.begun}
        return _Counted(found, end, open_)

    def _one(self, begun: Mapping[int, Tally]) -> Callable[[int], tuple[int, Tally]]:
        return lambda number: (
            number,
            self.count((self._partition(number), begun.get(number)))[1],
        )

    def _numbers(self, start: int, begun: Mapping[int, Tally]) -> Iterator[int]:
        # What was begun is kept, also where there is no time for it.
        kept = max(begun, default=-1)
        for number in range(start, len(self.prefixes)):
            if number > kept and self.count.stop():
                return
            yield number

    def _partition(self, number: int) -> Partition:
        return partition_below(self.ask.settings, self.prefixes[number])
