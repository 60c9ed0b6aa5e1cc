"""Named and drawn data sets in batches, and what became of them as a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import count, islice

from tests.foreign.drawn import drawn_set
from tests.foreign.readers import DuckDb
from tests.foreign.structures import SHAPES
from tests.foreign.tables import DataSet
from tests.foreign.trial import Tally, is_allowed, judged

EACH_SHAPE = 12
_TOGETHER = 60
# Of each batch: the others are drawn.
_NAMED = 20
# So many batches without a joined group say that none will come.
_MOST_BARREN = 20


def named_batch(number: int, seed: int = 0) -> Iterator[DataSet]:
    """The next named data sets, shape by shape and variant by variant."""
    shapes = list(SHAPES.values())
    first = number * _NAMED
    for at in range(first, first + _NAMED):
        variant, which = divmod(at, len(shapes))
        yield shapes[which].data_set(seed * 1_000_003 + variant)


def batch(number: int, seed: int = 0) -> list[DataSet]:
    """Named and drawn data sets; equal for equal arguments, in every process."""
    first = number * (_TOGETHER - _NAMED)
    drawn = [drawn_set(seed, at) for at in range(first, first + _TOGETHER - _NAMED)]
    return [*named_batch(number, seed), *drawn]


def added(tallies: Iterable[Mapping[str, Tally]]) -> dict[str, Tally]:
    """All tallies in one, by kind."""
    total: dict[str, Tally] = {}
    for one in tallies:
        for kind, tally in one.items():
            total.setdefault(kind, Tally()).add(tally)
    return total


def in_batches(sets: Iterable[DataSet]) -> dict[str, Tally]:
    """These data sets, judged."""
    rest, duck = iter(sets), DuckDb()
    batches = iter(lambda: list(islice(rest, _TOGETHER)), [])
    return added(judged(one, duck) for one in batches)


def until(groups: int, seed: int, part: tuple[int, int]) -> dict[str, Tally]:
    """Every so-and-so-many-th batch, until so many groups are joined."""
    first, step = part
    duck, total = DuckDb(), dict[str, Tally]()
    joined = barren = 0
    for number in count(first, step):
        found = judged(batch(number, seed), duck)
        total = added((total, found))
        more = sum(one.groups for one in found.values())
        joined, barren = joined + more, 0 if more else barren + 1
        if joined >= groups or barren >= _MOST_BARREN:
            return total
    raise AssertionError("there is always another batch")


def table(tallies: Mapping[str, Tally]) -> str:
    """A row a kind, in the order of their names, and the sum."""
    every = Tally()
    for one in tallies.values():
        every.add(one)
    lines = [_HEAD, *(_line(kind, tallies[kind]) for kind in sorted(tallies)), _line("all", every)]
    return "\n".join(lines) + "\n"


_COLUMNS = ("sets", "groups", "sources", "joined", "alone", "empty")
_FAULTS = ("wrong", "posed", "miscounted", "unexpected", "unread")
_HEADS = (*_COLUMNS, "left", "wrong", "posed", "miscount", "unmet", "unread")
_HEAD = f"{'kind':68}" + "".join(f"{name:>9}" for name in _HEADS) + "  left alone for"


def _line(kind: str, tally: Tally) -> str:
    left = sum(tally.left.values())
    figures = [getattr(tally, name) for name in _COLUMNS]
    figures += [left, *(getattr(tally, name) for name in _FAULTS)]
    reasons = ", ".join(f"{reason} {some}" for reason, some in Counter(tally.left).most_common())
    return f"{kind:68}" + "".join(f"{one:>9,}" for one in figures) + f"  {reasons}"


def failures(tallies: Mapping[str, Tally]) -> list[str]:
    """What must not be, in words."""
    return [
        f"{kind}: {text}"
        for kind, one in tallies.items()
        for text in one.shown
        if not is_allowed(text)
    ]
