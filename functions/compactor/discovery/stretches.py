"""The stretches of one division, counted piece by piece."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from compactor.discovery.counting import Committed, Count, Tally
from compactor.discovery.discover import Found
from compactor.discovery.fleet import Fleet
from compactor.discovery.parallel import Parallel
from compactor.discovery.pieces import Division, Piece, Pieces, Stretch, open_counts
from compactor.discovery.places import NamedLevels, rests_of
from compactor.discovery.search import partition_below
from compactor.discovery.watch import Watch
from compactor.model import Skipped
from compactor.ports import Deadline, ObjectStore
from compactor.settings.settings import Settings


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


class Stretches:
    """Counts the stretches of a division, piece by piece.

    Args:
        ask: what for.
        pieces: where what was found is stored.
        division: the stretches.
        leaves: partitions that keep others waiting can be left, to be divided.
    """

    def __init__(
        self, ask: Ask, pieces: Pieces, division: Division, *, leaves: bool = False
    ) -> None:
        self._ask = ask
        self._pieces = pieces
        self.division = division
        self._watch = Watch(ask.deadline, leaves=leaves, workers=ask.workers)
        self._worked = False

    @property
    def out_of_time(self) -> bool:
        """Time is up, and some of it was made use of."""
        return self._worked and self._watch()

    @property
    def numbers(self) -> range:
        """Those of the stretches that are left to be counted."""
        return range(1, self.division.stretches + 1)

    def is_counted(self, number: int) -> bool:
        """A stretch is at its end, but for what was left."""
        return self._is_counted(number, self.stretch(number))

    def count(self, number: int) -> bool:
        """Go on with a stretch; true when it is at its end, but for what was left."""
        stretch = self.stretch(number)
        while not self._is_counted(number, stretch):
            if self.out_of_time:
                return False
            many, start, begun = self._state(number, stretch)
            piece = self._count_on(Stretch(stretch.prefixes, begun), start)
            self._pieces.add(self.division, number, many, piece)
        return True

    def counted(self) -> int:
        """How many partitions are counted in all."""
        numbers = range(self.division.stretches + 1)
        last = [self._pieces.last(self.division, number)[1] for number in numbers]
        return sum(piece.end for piece in last if piece is not None)

    def stretch(self, number: int) -> Stretch:
        """A stretch, as it was divided."""
        return self._pieces.stretch(self.division, number)

    def open(self, number: int) -> tuple[Stretch, Mapping[int, Tally]]:
        """A stretch, and the counts that are in none of its pieces' lists."""
        stretch = self.stretch(number)
        return stretch, self._state(number, stretch)[2]

    def counts(self, number: int) -> Iterator[tuple[str, Tally]]:
        """All of a stretch of ranges, each with the prefix of its partition."""
        stretch, begun = self.open(number)
        of_pieces = (
            one for piece in self._pieces.of(self.division, number) for one in piece.counts
        )
        yield from zip(stretch.prefixes, of_pieces, strict=False)
        yield from ((stretch.prefixes[at], tally) for at, tally in begun.items())

    def close(self, number: int, counts: Mapping[int, Tally]) -> None:
        """Store the last piece of a stretch, with the counts that were left in it."""
        stretch = self.stretch(number)
        many, start, begun = self._state(number, stretch)
        end = len(stretch.prefixes)
        whole = Stretch(stretch.prefixes, {**begun, **counts})
        piece = found_piece(self._ask.settings, whole, whole.open, start, end)
        self._pieces.add(self.division, number, many, piece)

    def _state(self, number: int, stretch: Stretch) -> tuple[int, int, dict[int, Tally]]:
        """How many pieces there are, where the last one ends, and what is begun behind that."""
        many, last = self._pieces.last(self.division, number)
        return (many, last.end, last.open) if last else (many, 0, stretch.open)

    def _is_counted(self, number: int, stretch: Stretch) -> bool:
        _, start, begun = self._state(number, stretch)
        open_ = [begun.get(number, Tally()) for number in range(start, len(stretch.prefixes))]
        # Where all are complete, a piece has to say so.
        return all(one.ended for one in open_) and (not open_ or any(one.left for one in open_))

    def _count_on(self, stretch: Stretch, start: int) -> Piece:
        self._worked = True
        self._watch.begin(len(stretch.prefixes) - start)
        with Parallel(self._ask.workers) as parallel:
            counted = count_some(self._ask, parallel, self._watch, stretch, start)
        end = first_open(counted, start)
        if self.division.ranges:
            counts = [counted[number] for number in range(start, end)]
            return ranges_piece(start, end, counts, open_counts(counted, end))
        return found_piece(self._ask.settings, stretch, counted, start, end)


def count_some(
    ask: Ask, parallel: Parallel, watch: Watch, stretch: Stretch, start: int
) -> dict[int, Tally]:
    """The counts from a partition of a stretch on, as far as they come."""
    rests = rests_of(ask.settings, ask.store, ask.now, ask.run_id)
    count = Count(
        ask.settings,
        ask.store,
        ask.committed,
        ask.fleet,
        watch,
        rests=rests,
        leaves=watch.leaves,
        now=ask.now,
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


def first_open(counted: Mapping[int, Tally], start: int) -> int:
    """The first number from ``start`` on that is not counted to its end."""
    end = start
    while end in counted and counted[end].complete:
        end += 1
    return end


def found_piece(
    settings: Settings, stretch: Stretch, counted: Mapping[int, Tally], start: int, end: int
) -> Piece:
    """What was found in the partitions of a stretch from ``start`` to ``end``."""
    found = found_in(settings, stretch, counted, start, end)
    return Piece(
        start,
        end,
        found.items,
        found.oversized,
        found.objects,
        found.lost,
        found.unpartitioned,
        open_counts(counted, end),
        found.resting,
    )


def found_in(
    settings: Settings, stretch: Stretch, counted: Mapping[int, Tally], start: int, end: int
) -> Found:
    """The same, to be added to."""
    found = Found(settings)
    found.add(
        (partition_below(settings, stretch.prefixes[number]), counted[number])
        for number in range(start, end)
    )
    return found


def ranges_piece(start: int, end: int, counts: list[Tally], begun: dict[int, Tally]) -> Piece:
    """What was found in ranges from ``start`` to ``end``."""
    return Piece(start, end, [], [], 0, NamedLevels(), Skipped(0, 0), begun, counts=counts)
