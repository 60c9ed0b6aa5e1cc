"""What a run would take of the listed objects, and about what that costs. Pure.

``compactor plan`` knows both better: it makes the listings of its run.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

from compactor.limits import USUAL
from compactor.money import KEYS_PER_LIST, Holding, RunWork
from compactor.money.estimate import PARTITION_SECONDS, of_functions, of_numbers, speed_for
from compactor.scanning.layouts import Layout
from compactor.scanning.listing import Counts, Listed, target_of
from compactor.scanning.proposals import Proposal
from compactor.settings.settings import Settings


class Coverage:
    """The objects of one layout that a run takes, by the shares of the sample.

    Attributes:
        proposals: for their formats.
        families: all objects by the proposal that matches them; None for those of names of which
            no object was read.
        taken: what a run takes, by storage class.
        partitions: number of those with such objects.
        outputs: approximate number.
    """

    def __init__(self, listed: Listed, layout: Layout, proposals: Sequence[Proposal]) -> None:
        self.proposals = proposals
        self.families = defaultdict[Proposal | None, Counts](Counts)
        self.taken = defaultdict[str, Counts](Counts)
        classes = defaultdict[tuple[Proposal, str], Counts](Counts)
        packs = defaultdict[tuple[str, str], Counts](Counts)
        root = len(listed.root.prefix) + sum(len(level) + 1 for level in layout.root)
        for place, counts in listed.places.items():
            partition = layout.partition_of.get(place.directory)
            if partition is None:
                continue
            key = place.directory[root:] + place.name.replace("*", "x")
            proposal = next((one for one in proposals if one.matches(key)), None)
            self.families[proposal].add(counts)
            if proposal is not None and proposal.share:
                classes[proposal, place.storage_class].add(counts)
                packs[partition, place.name].add(counts)
        for (proposal, name), counts in classes.items():
            self.taken[name].add(counts, proposal.share)
        self.partitions = len({partition for partition, _ in packs})
        self.outputs = sum(
            one.large + math.ceil((one.bytes - one.large_bytes) / target_of(name))
            for (_, name), one in packs.items()
        )

    def work(self, settings: Settings) -> RunWork:
        """Return the approximate use of AWS by a run of the state machine."""
        total = Counts()
        for one in self.taken.values():
            total.add(one)
        if not total.objects:
            return RunWork()
        read, size = total.objects - total.large, total.bytes - total.large_bytes
        parts = size / USUAL.part_bytes + total.large_bytes / USUAL.copy_part_bytes
        requests = of_numbers(self.partitions, self.outputs, read, parts)
        # Of the log, and of the sources.
        requests["LIST"] += self.partitions
        requests["LIST"] += max(self.partitions, -(-total.objects // KEYS_PER_LIST))
        speed = speed_for(self.proposals[0].example, settings)
        seconds = PARTITION_SECONDS * self.partitions + speed.seconds(read, size)
        functions = of_functions(self.partitions, seconds, settings)
        return RunWork(dict(requests)) + functions


def holdings_of(coverages: Sequence[Coverage]) -> tuple[tuple[Holding, ...], tuple[Holding, ...]]:
    """Return what runs would compact by storage class, and the outputs in its place."""
    taken = defaultdict[str, Counts](Counts)
    for name, counts in (item for one in coverages for item in one.taken.items()):
        taken[name].add(counts)
    sources = tuple(
        Holding(name, one.objects, one.bytes, one.small, one.small_bytes)
        for name, one in sorted(taken.items())
        if one.objects
    )
    outputs = sum(one.outputs for one in coverages)
    size = sum(one.bytes for one in sources)
    return sources, (Holding.alike(outputs, size // outputs),) if sources else ()
