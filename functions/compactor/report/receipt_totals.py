"""Sums receipts as they are read; of very many partitions, only some receipts are kept."""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Self

import msgspec

from compactor.discovery.estimate import after_receipt
from compactor.log.entries import NOTHING
from compactor.log.left_alone import LeftAlone, added_up
from compactor.log.size_counts import SizeCounts
from compactor.model import Skipped
from compactor.readers.outcome import Outcomes
from compactor.runs.partition_receipts import Counts, Receipt

#: How many partitions a report shows individually: failed ones first, then the largest.
SHOWN_PARTITIONS = 5_000
#: How many quarantined sources it names, over all these partitions.
SHOWN_SOURCES = 10_000
_SHOWN_PLACES = 5


class GatheredState(msgspec.Struct):
    """A :class:`Gathered` as a document, for the next call.

    Attributes:
        kept: receipts that may be shown individually, as (failed, bytes, number, receipt).
    """

    totals: Counts
    partitions: int
    failed: int
    skipped: dict[str, Skipped]
    left_alone: dict[str, LeftAlone]
    overwritten: Skipped
    requests: dict[str, int]
    kept: list[tuple[bool, int, int, Receipt]]
    shown: Outcomes = msgspec.field(default_factory=Outcomes)
    sizes: SizeCounts = msgspec.field(default_factory=SizeCounts)
    after: dict[str, int] = {}
    rejects: list[str] = []


@dataclass(slots=True)
class Gathered:
    """Totals of a run's partitions, of bounded size.

    Attributes:
        partitions: number of partitions that were added.
        failed: number of these that did not finish.
        requests: of all partitions, by kind.
        outcomes: what query engines see of them.
        sizes: of what was compacted, before and after.
        after: requests that they made after their receipts, by kind.
        rejects: the first prefixes with records that are in no output.
    """

    totals: Counts = field(default_factory=Counts)
    partitions: int = 0
    failed: int = 0
    skipped: dict[str, Skipped] = field(default_factory=dict)
    left_alone: dict[str, LeftAlone] = field(default_factory=dict)
    overwritten: Skipped = NOTHING
    requests: Counter[str] = field(default_factory=Counter)
    _kept: list[tuple[bool, int, int, Receipt]] = field(default_factory=list)
    outcomes: Outcomes = field(default_factory=Outcomes)
    sizes: SizeCounts = field(default_factory=SizeCounts)
    after: Counter[str] = field(default_factory=Counter)
    rejects: list[str] = field(default_factory=list)

    def add(self, receipt: Receipt) -> None:
        """Add the receipt of one partition."""
        add_counts(self.totals, receipt.counts)
        counts = receipt.counts
        self.requests.update(counts.requests)
        if counts.calls:
            self.after += after_receipt(committed=bool(counts.objects_in or counts.quarantined))
        self.overwritten = self.overwritten.plus(receipt.overwritten)
        self.sizes = self.sizes.plus(receipt.sizes)
        for reason, skipped in receipt.skipped.items():
            self.skipped[reason] = self.skipped.get(reason, Skipped(0, 0)).plus(skipped)
        if receipt.left_alone:
            self.left_alone = added_up([self.left_alone, receipt.left_alone])
        if receipt.shown is not None:
            self.outcomes.add(receipt.shown)
        if receipt.rejects:
            self.rejects = [*self.rejects, receipt.rejects][:_SHOWN_PLACES]
        has_failed = receipt.status != "done"
        # The number breaks ties, in favour of earlier receipts.
        one = (has_failed, receipt.counts.bytes_in, -self.partitions, receipt)
        if len(self._kept) < SHOWN_PARTITIONS:
            heapq.heappush(self._kept, one)
        else:
            heapq.heappushpop(self._kept, one)
        self.partitions += 1
        self.failed += has_failed

    def state(self) -> GatheredState:
        """Return everything gathered so far."""
        return GatheredState(
            self.totals,
            self.partitions,
            self.failed,
            self.skipped,
            self.left_alone,
            self.overwritten,
            dict(self.requests),
            self._kept,
            self.outcomes,
            self.sizes,
            dict(self.after),
            self.rejects,
        )

    @classmethod
    def from_state(cls, given: GatheredState) -> Self:
        """Restore what an earlier call gathered."""
        return cls(
            given.totals,
            given.partitions,
            given.failed,
            given.skipped,
            given.left_alone,
            given.overwritten,
            Counter(given.requests),
            given.kept,
            given.shown,
            given.sizes,
            Counter(given.after),
            given.rejects,
        )

    def total(self) -> Counts:
        """Sums over all partitions."""
        return replace(self.totals, requests=dict(self.requests))

    @property
    def warnings(self) -> list[str]:
        """A line for each thing that query engines do not see correctly."""
        return self.outcomes.warnings

    def shown(self) -> list[Receipt]:
        """Return the receipts to show individually, in the order in which they were added."""
        found = [one for *_, one in sorted(self._kept, key=lambda kept: -kept[2])]
        shown, left = [], SHOWN_SOURCES
        for one in found:
            shown.append(replace(one, quarantined=one.quarantined[:left]))
            left -= len(shown[-1].quarantined)
        return shown


def add_counts(total: Counts, one: Counts) -> None:
    """Add all summed fields; counts by kind are added elsewhere."""
    for name in _SUMMED:
        setattr(total, name, getattr(total, name) + getattr(one, name))


_SUMMED = tuple(name for name in Counts.__slots__ if name != "requests")
