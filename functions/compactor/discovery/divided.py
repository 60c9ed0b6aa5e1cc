"""Discover in as many invocations as it takes, one after the other or several at once.

The first finds the prefixes that are partitions and counts what is in them. If that comes to an
end, nothing of this is seen. If its time runs out, or would several times over, it stores what it
found and divides the rest into stretches; whoever comes next goes on with these, where the last
stored piece ends, and the last one joins all pieces to the work lists.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from compactor.discovery.counting import Committed, Count, Tally
from compactor.discovery.discover import Found
from compactor.discovery.fleet import Fleet
from compactor.discovery.joined import join
from compactor.discovery.parallel import Parallel
from compactor.discovery.pieces import Division, Piece, Pieces, Stretch, open_counts
from compactor.discovery.places import check_places, rests_of
from compactor.discovery.search import Search, dates_of, partition_below
from compactor.discovery.work import Discovery, Joined
from compactor.errors import InvalidInput
from compactor.ports import Deadline, ObjectStore
from compactor.settings.settings import Settings

# Kept of an invocation for the requests under way and the piece; of a short one, a quarter.
RESERVE_SECONDS = 60.0
# After so long it is known how fast the counting is, and when it would take longer than this, it
# is shared among invocations that should take so long each.
_LOOK_SECONDS, SHARE_SECONDS, STRETCH_SECONDS = 30.0, 300.0, 240.0
# Each asks for 16 pages at once, of the 5,500 requests a second that S3 serves below one prefix.
MOST_AT_ONCE = 20
# Of one stretch, so that a piece and its prefixes are held in few MB.
MOST_PARTITIONS = 50_000


@dataclass(frozen=True, slots=True)
class Ask:
    """Everything a discovery needs.

    Attributes:
        now: UNIX seconds.
        deadline: of this invocation.
        workers: threads, each with one request at a time.
        shares: several invocations can be had at once.
    """

    settings: Settings
    run_id: str
    store: ObjectStore
    now: float
    committed: Committed
    deadline: Deadline
    fleet: Fleet = field(default_factory=Fleet)
    workers: int = 16
    shares: bool = False


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
    counting = _Stretches(ask, pieces, division)
    if division.shared and ask.shares:
        left = tuple(number for number in _numbers(division) if not counting.is_counted(number))
        if left:
            return Part(division.partitions, counting.counted(), left)
    for number in _numbers(division):
        if not counting.count(number):
            return Part(division.partitions, counting.counted())
    if counting.out_of_time:
        return Part(division.partitions, division.partitions)
    return join(ask.settings, ask.run_id, pieces, division)


def count_stretch(ask: Ask, number: int) -> bool:
    """Count one stretch as far as the deadline allows; true when it is at its end.

    Raises:
        InvalidInput: the discovery of this run has no such stretch.
    """
    pieces = Pieces(ask.settings, ask.run_id, ask.store)
    division = pieces.division()
    if division is None or number not in _numbers(division):
        known = division.stretches if division else 0
        raise InvalidInput("stretch", number, f"one of the {known} that discovery made of this run")
    return _Stretches(ask, pieces, division).count(number)


def _begin(ask: Ask, pieces: Pieces) -> Discovery | Part:
    dates = dates_of(ask.settings, ask.now)
    watch = _Watch(ask.deadline, shares=ask.shares)
    with Parallel(ask.workers) as parallel:
        search = Search(ask.settings, ask.store, parallel)
        prefixes = [one.prefix for one in search.partitions(dates)]
        watch.begin(len(prefixes))
        stretch = Stretch(prefixes, {})
        counted = _count(ask, parallel, watch, stretch, 0)
    end = _first_open(counted, 0)
    found = _found(ask.settings, stretch, counted, end)
    found.skip(search.unpartitioned)
    if end == len(prefixes):
        return found.discovery()
    ways = watch.ways(ask.fleet.at_once)
    division = pieces.divide(
        _piece(found, 0, end, {}),
        _divided(prefixes[end:], open_counts(counted, end), end, ways),
        shared=ways > 1,
    )
    return Part(division.partitions, end, tuple(_numbers(division)) if division.shared else ())


def _numbers(division: Division) -> range:
    """Those of the stretches that are left to be counted."""
    return range(1, division.stretches + 1)


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


class _Stretches:
    """Counts the stretches of a division, piece by piece."""

    def __init__(self, ask: Ask, pieces: Pieces, division: Division) -> None:
        self._ask = ask
        self._pieces = pieces
        self._plan = division
        self._watch = _Watch(ask.deadline)
        self._worked = False

    @property
    def out_of_time(self) -> bool:
        """Time is up, and some of it was made use of."""
        return self._worked and self._watch()

    def is_counted(self, number: int) -> bool:
        """A stretch is at its end."""
        _, last = self._pieces.last(self._plan, number)
        stretch = self._pieces.stretch(self._plan, number)
        return last is not None and last.end == len(stretch.prefixes)

    def count(self, number: int) -> bool:
        """Go on with a stretch; true when it is at its end."""
        stretch = self._pieces.stretch(self._plan, number)
        while True:
            many, last = self._pieces.last(self._plan, number)
            if last is not None and last.end == len(stretch.prefixes):
                return True
            if self.out_of_time:
                return False
            start, begun = (last.end, last.open) if last else (0, stretch.open)
            piece = self._count_on(Stretch(stretch.prefixes, begun), start)
            self._pieces.add(self._plan, number, many, piece)

    def counted(self) -> int:
        """How many partitions are counted in all."""
        last = [self._pieces.last(self._plan, n)[1] for n in range(self._plan.stretches + 1)]
        return sum(piece.end for piece in last if piece is not None)

    def _count_on(self, stretch: Stretch, start: int) -> Piece:
        self._worked = True
        with Parallel(self._ask.workers) as parallel:
            counted = _count(self._ask, parallel, self._watch, stretch, start)
        end = _first_open(counted, start)
        found = _found(self._ask.settings, stretch, counted, end, start)
        return _piece(found, start, end, open_counts(counted, end))


def _count(
    ask: Ask, parallel: Parallel, watch: _Watch, stretch: Stretch, start: int
) -> dict[int, Tally]:
    """The counts from a partition of a stretch on, as far as they come."""
    rests = rests_of(ask.settings, ask.store, ask.now, ask.run_id)
    count = Count(
        ask.settings, ask.store, ask.committed, ask.fleet, watch, rests=rests, now=ask.now
    )

    def one(number: int) -> tuple[int, Tally]:
        partition = partition_below(ask.settings, stretch.prefixes[number])
        _, tally = count((partition, stretch.open.get(number)))
        watch.ended(tally)
        return number, tally

    # What was begun is kept, also where there is no time for it.
    kept = max(stretch.open, default=-1)

    def numbers() -> Iterator[int]:
        for number in range(start, len(stretch.prefixes)):
            if watch() and number > kept:
                return
            yield number

    return dict(parallel.in_order(one, numbers()))


def _first_open(counted: Mapping[int, Tally], start: int) -> int:
    end = start
    while end in counted and counted[end].complete:
        end += 1
    return end


def _found(
    settings: Settings, stretch: Stretch, counted: Mapping[int, Tally], end: int, start: int = 0
) -> Found:
    found = Found(settings)
    found.add(
        (partition_below(settings, stretch.prefixes[number]), counted[number])
        for number in range(start, end)
    )
    return found


def _piece(found: Found, start: int, end: int, counts: dict[int, Tally]) -> Piece:
    return Piece(
        start,
        end,
        found.items,
        found.oversized,
        found.objects,
        found.lost,
        found.unpartitioned,
        counts,
        found.resting,
    )


class _Watch:
    """Tells when counting is to stop, by the deadline alone; thread safe.

    Attributes:
        wanted: partitions to be counted.
    """

    def __init__(self, deadline: Deadline, *, shares: bool = False) -> None:
        self._deadline = deadline
        self._whole = deadline.remaining_seconds()
        self._reserve = min(RESERVE_SECONDS, self._whole / 4)
        self._shares = shares
        self._done = 0
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._at_begin = self._whole
        self.wanted = 0

    def begin(self, wanted: int) -> None:
        """So many partitions are known now: what went before tells nothing of the pace."""
        self.wanted, self._at_begin = wanted, self._deadline.remaining_seconds()

    def __call__(self) -> bool:
        """Counting is to stop."""
        if self._over.is_set():
            return True
        left = self._deadline.remaining_seconds()
        if left < self._reserve or (self._shares and self._is_worth_sharing()):
            self._over.set()
        return self._over.is_set()

    def ended(self, tally: Tally) -> None:
        """A count has come so far."""
        if tally.complete:
            with self._lock:
                self._done += 1

    def ways(self, at_once: int | None) -> int:
        """Into how many stretches the rest is best divided; 1 for one after the other."""
        if not self._shares or math.isinf(self._whole):
            return 1
        most = MOST_AT_ONCE if at_once is None else max(1, min(MOST_AT_ONCE, at_once))
        left = self.wanted - self._done
        wanted = math.ceil(min(self._seconds_left() / STRETCH_SECONDS, most))
        return max(1, min(wanted, left))

    def _is_worth_sharing(self) -> bool:
        if math.isinf(self._whole) or self.wanted - self._done < 2:
            return False
        spent = self._spent()
        return spent >= _LOOK_SECONDS and self._seconds_left() > SHARE_SECONDS

    def _seconds_left(self) -> float:
        """What the rest would take here, at the pace so far."""
        return self._spent() / max(self._done, 1) * (self.wanted - self._done)

    def _spent(self) -> float:
        """By counting."""
        return self._at_begin - self._deadline.remaining_seconds()
