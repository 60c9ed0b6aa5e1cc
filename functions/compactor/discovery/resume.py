"""Runs discovery in as many sequential invocations as it takes.

The first invocation finds the prefixes that are partitions and counts what is in them. If it
finishes, none of this is stored. If its time runs out, it stores the prefixes and what it found.
Each later invocation counts from the end of the last stored piece, and the last one writes the
work lists from all pieces.
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

# Kept at an invocation's end for requests in flight and the piece; a quarter if it is short.
_RESERVE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Ask:
    """Everything a discovery needs.

    Attributes:
        now: UNIX seconds.
        deadline: deadline of this invocation.
        workers: number of threads, each with one request at a time.
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
    """An incomplete discovery, which must be called again.

    Attributes:
        partitions: number of all partitions.
        counted: number of partitions counted so far.
    """

    partitions: int
    counted: int


def discover_on(ask: Ask) -> Discovery | Part | Joined:
    """Discover as far as the deadline allows, from where an earlier invocation stopped.

    Returns:
        The discovery, if one invocation could do all of it; a Part if it must be called again;
        or the counts of the written lists, from the last of several invocations.

    Raises:
        InvalidInput: see :func:`compactor.discovery.discover.discover`.
        IntegrityError: see there; or what an earlier invocation stored is missing.
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
    """Return a function that is True once no more work may be started."""
    reserve = min(_RESERVE_SECONDS, deadline.remaining_seconds() / 4)
    return lambda: deadline.remaining_seconds() < reserve


@dataclass(frozen=True, slots=True)
class _Counted:
    """What one invocation found.

    Attributes:
        found: what is in the partitions before ``end``.
        end: number of the first partition whose count is incomplete.
        open: incomplete counts from there on, by number.
    """

    found: Found
    end: int
    open: dict[int, Tally]

    def piece(self, start: int) -> Piece:
        """Return the piece to be stored."""
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
    """Counts the partitions of a run until time runs out."""

    ask: Ask
    count: Count
    prefixes: Sequence[str]
    parallel: Parallel

    def on(self, start: int, begun: Mapping[int, Tally]) -> _Counted:
        """Count partitions, from number ``start`` on.

        Args:
            start: number of the first partition.
            begun: incomplete counts of an earlier invocation, by the partition's number.
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
        # Incomplete counts are kept even if there is no time to continue them.
        kept = max(begun, default=-1)
        for number in range(start, len(self.prefixes)):
            if number > kept and self.count.stop():
                return
            yield number

    def _partition(self, number: int) -> Partition:
        return partition_below(self.ask.settings, self.prefixes[number])
