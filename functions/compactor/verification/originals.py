"""What one reader saw in all sources of a commit, summed up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain

from compactor.errors import IntegrityError, UnreadableSource
from compactor.ports import SourceBody
from compactor.second_reading import (
    NotReadable,
    Reading,
    Seen,
    Tally,
    plain_pieces,
    read,
    tally,
)

#: How much of a source is used to choose its reader.
JUDGED_BYTES = 1 << 20


@dataclass(slots=True)
class Originals:
    """What one reader saw in all sources of a commit.

    Attributes:
        tallies: for each source with content, by number: its records without the first row, and
            that row.
        firsts: how often each first row occurs.
        unfinished: by number, how a source ends within something, or why it cannot be read this
            way.
    """

    tallies: dict[int, tuple[Tally, tuple[str, ...] | None]] = field(default_factory=dict)
    firsts: Counter[tuple[str, ...]] = field(default_factory=Counter)
    unfinished: dict[int, str] = field(default_factory=dict)

    def add(self, number: int, seen: Seen) -> None:
        """Add what was seen in another source."""
        first = seen.first
        if first is not None:
            self.firsts[first] += 1
        self.tallies[number] = (seen.records, first)
        if seen.open_end or seen.fault:
            self.unfinished[number] = seen.open_end or seen.fault

    @property
    def seen(self) -> list[Seen]:
        """One for each first row, or two if the row occurs more than once."""
        repeated = chain.from_iterable((one,) * min(n, 2) for one, n in self.firsts.items())
        return [Seen(first=one) for one in repeated]

    def total(self, header: tuple[str, ...] | None) -> Tally:
        """Return the tally of all records, leaving out first rows equal to this header."""
        total = Tally()
        for records, _ in self.tallies.values():
            total = total.plus(records)
        for first, times in self.firsts.items():
            if first != header:
                total = total.plus(tally([first]), times)
        return total


def head_of(pieces: Iterator[bytes]) -> bytes:
    """Consume and return at least the first megabyte, or all there is."""
    held: list[bytes] = []
    size = 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size >= JUDGED_BYTES:
            break
    return b"".join(held)


def seen_in(body: SourceBody, reading: Reading) -> Seen | None:
    """Return what a reader sees in a source; None if it changed, is gone or cannot be read."""
    if body.content is not None:
        stored = iter((body.content,))
    elif body.chunks is not None and body.error is None:
        stored = body.chunks()
    else:
        return None
    try:
        return read(reading, plain_pieces(stored))
    except (IntegrityError, NotReadable, UnreadableSource):
        return None
