"""Plans one partition window by window, as a worker would now. Reads only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import inf
from typing import Self

import msgspec

from compactor.log.identity import outputs_among
from compactor.model import CompactionPlan, Listing, ObjectGroup, Partition, Skipped, SkipReason
from compactor.planning.partition_listing import Lists, Onward, take_listing
from compactor.planning.plan import Knowledge, plan
from compactor.planning.surroundings import Surroundings
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings

_BY_AGE = frozenset({SkipReason.TOO_YOUNG, SkipReason.OPEN_PARTITION})


@dataclass(frozen=True, slots=True)
class Waiting:
    """Objects that are left alone only because of their age. All times are UNIX seconds.

    Attributes:
        oldest: arrival of the first object younger than ``settle_seconds``; of the first of all
            objects if there is none.
        newest: arrival of the last object in their partitions.
        ready_at: when a run can take all of them, unless more arrive.
        now: time of the forecast.
    """

    oldest: float
    newest: float
    ready_at: float
    now: float

    @classmethod
    def of(cls, given: Iterable[Self | None]) -> Self | None:
        """Combine several partitions; None if no objects wait."""
        found = [one for one in given if one is not None]
        if not found:
            return None
        return cls(
            min(one.oldest for one in found),
            max(one.newest for one in found),
            max(one.ready_at for one in found),
            max(one.now for one in found),
        )


class Forecast:
    """Plans a partition without working on it.

    Args:
        settings: settings of the run.
        store: where sources and outputs are.
        known: what its log says about its sources.
        written_at: time of the newest commit by the store's clock; UNIX seconds.
        lists: lists the partition, if not the store.

    Attributes:
        waiting: objects of the last planned partition that are left because of their age, or None.
    """

    def __init__(
        self,
        settings: Settings,
        store: ObjectStore,
        known: Knowledge,
        written_at: float = inf,
        lists: Lists | None = None,
    ) -> None:
        self._settings = settings
        self._store = store
        self._lists = lists or store
        self._known = known
        self._written_at = written_at
        self._no_outputs: set[bytes] = set()
        self._skipped: dict[SkipReason, Skipped] = {}
        self.waiting: Waiting | None = None

    def of(self, partition: Partition, now: float) -> CompactionPlan:
        """Return the groups of all windows in order, and what is left alone.

        A run may split groups further once it reads the sources: their content can have another
        format than their keys indicate, or be unreadable.
        """
        groups: list[ObjectGroup] = []
        self._skipped, self.waiting = {}, None
        start_after, lists = "", Onward(self._lists)
        surroundings = Surroundings(self._store, partition.bucket)
        # Terminates, because each window starts after the previous one.
        while True:
            listing = take_listing(
                lists,
                partition,
                self._known.committed,
                start_after,
                written_at=self._written_at,
                limits=self._settings.limits,
            )
            if listing.returned:
                keys = tuple(one.key for one in listing.returned[:1])
                size = sum(one.size for one in listing.returned)
                self._skip(SkipReason.AGAIN, Skipped(len(listing.returned), size, keys))
            partial = self._settings.takes_events
            roots = surroundings.around(listing, start_after, partial=partial)
            known = msgspec.structs.replace(self._known, roots=roots)
            groups += self._window(listing, known, now)
            if listing.complete:
                return CompactionPlan(partition, tuple(groups), self._skipped)
            start_after = listing.last_key

    def _window(self, listing: Listing, known: Knowledge, now: float) -> tuple[ObjectGroup, ...]:
        while True:
            decision = plan(listing, self._settings, known, now)
            found = {
                one.identity: one
                for group in decision.groups
                for one in outputs_among(group.sources, self._store, self._no_outputs)
            }
            if not found:
                break
            first = next(iter(found.values())).key
            size = sum(one.size for one in found.values())
            self._skip(SkipReason.OWN_STATE, Skipped(len(found), size, (first,)))
            left = (one for one in listing.objects if one.identity not in found)
            listing = replace(listing, objects=tuple(left))
        for reason, one in decision.skipped.items():
            self._skip(reason, one)
        if not decision.skipped.keys().isdisjoint(_BY_AGE):
            self.waiting = Waiting.of((self.waiting, self._waiting(listing, now)))
        return decision.groups

    def _waiting(self, listing: Listing, now: float) -> Waiting:
        settings = self._settings
        arrived = [one.last_modified for one in listing.objects]
        young = [at for at in arrived if at > now - settings.settle_seconds]
        longest = max(settings.settle_seconds, settings.open_partition_seconds)
        return Waiting(min(young or arrived), listing.newest, listing.newest + longest, now)

    def _skip(self, reason: SkipReason, skipped: Skipped) -> None:
        self._skipped[reason] = self._skipped.get(reason, Skipped(0, 0)).plus(skipped)
