"""Sums receipts as they are read; of very many partitions, only some receipts are kept."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from compactor.log.counts import LeftAlone, SizeCounts, added_up
from compactor.model import Skipped, add_skipped
from compactor.money.estimate import after_receipt
from compactor.partition.receipts import Counts, Receipt, add_covered
from compactor.readers.outcome import Outcomes

#: How many partitions a report shows individually: failed ones first, then the largest.
SHOWN_PARTITIONS = 5_000
#: How many quarantined sources it names, over all these partitions.
SHOWN_SOURCES = 10_000
_SHOWN_PLACES = 5


@dataclass(slots=True)
class Gathered:
    """Totals of a run's partitions, of bounded size; a document for the next call, too.

    Attributes:
        partitions: number of partitions that were added.
        failed: number of these that did not finish.
        requests: of all partitions, by kind.
        kept: receipts that may be shown individually, as (failed, bytes, number, receipt).
        outcomes: what query engines see of them.
        sizes: of what was compacted, before and after.
        after: requests that they made after their receipts, by kind.
        dead_letters: the first prefixes with dead-letter records.
        oversized: paths of partitions with more than one worker takes, left for lack of Spark.
        spark: paths of the partitions that Spark took, or should have.
        has_spark: the run has an engine for Spark.
    """

    totals: Counts = field(default_factory=Counts)
    partitions: int = 0
    failed: int = 0
    skipped: dict[str, Skipped] = field(default_factory=dict)
    left_alone: dict[str, LeftAlone] = field(default_factory=dict)
    requests: dict[str, int] = field(default_factory=dict)
    kept: list[tuple[bool, int, int, Receipt]] = field(default_factory=list)
    outcomes: Outcomes = field(default_factory=Outcomes)
    sizes: SizeCounts = field(default_factory=SizeCounts)
    after: dict[str, int] = field(default_factory=dict)
    dead_letters: list[str] = field(default_factory=list)
    oversized: list[str] = field(default_factory=list)
    spark: list[str] = field(default_factory=list)
    has_spark: bool = False

    def add(self, receipt: Receipt) -> None:
        """Add the receipt of one partition."""
        add_counts(self.totals, receipt.counts)
        counts = receipt.counts
        _add_requests(self.requests, counts.requests)
        add_covered(self.totals.covered, counts.covered)
        if counts.calls:
            has_committed = bool(counts.objects_in or counts.quarantined)
            _add_requests(self.after, after_receipt(committed=has_committed))
        self.sizes = self.sizes.plus(receipt.sizes)
        add_skipped(self.skipped, receipt.skipped)
        if receipt.left_alone:
            self.left_alone = added_up([self.left_alone, receipt.left_alone])
        if receipt.shown is not None:
            self.outcomes.add(receipt.shown)
        if receipt.dead_letters:
            self.dead_letters = [*self.dead_letters, receipt.dead_letters][:_SHOWN_PLACES]
        self._note_size(receipt)
        has_failed = receipt.status != "done"
        # The number breaks ties, in favour of earlier receipts.
        one = (has_failed, receipt.counts.bytes_in, -self.partitions, receipt)
        if len(self.kept) < SHOWN_PARTITIONS:
            heapq.heappush(self.kept, one)
        else:
            heapq.heappushpop(self.kept, one)
        self.partitions += 1
        self.failed += has_failed

    def _note_size(self, receipt: Receipt) -> None:
        if receipt.by_spark or (receipt.oversized and self.has_spark):
            self.spark.append(receipt.path)
        elif receipt.oversized:
            self.oversized.append(receipt.path)

    def total(self) -> Counts:
        """Sums over all partitions."""
        return replace(self.totals, requests=dict(self.requests))

    def shown(self) -> list[Receipt]:
        """Return the receipts to show individually, in the order in which they were added."""
        found = [one for *_, one in sorted(self.kept, key=lambda kept: -kept[2])]
        shown, left = [], SHOWN_SOURCES
        for one in found:
            shown.append(replace(one, quarantined=one.quarantined[:left]))
            left -= len(shown[-1].quarantined)
        return shown


def _add_requests(total: dict[str, int], more: Mapping[str, int]) -> None:
    for kind, count in more.items():
        total[kind] = total.get(kind, 0) + count


def add_counts(total: Counts, one: Counts) -> None:
    """Add all summed fields; counts by kind are added elsewhere."""
    for name in _SUMMED:
        setattr(total, name, getattr(total, name) + getattr(one, name))


_SUMMED = tuple(name for name in Counts.__slots__ if name not in ("requests", "covered"))
