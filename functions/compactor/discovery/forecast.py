"""Plans one partition window by window, as a worker would now. Reads only."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

import msgspec

from compactor.log.identity import outputs_among
from compactor.model import (
    CompactionPlan,
    Listing,
    ObjectGroup,
    Partition,
    Skipped,
    SkipReason,
    add_skipped,
)
from compactor.planning.partition_listing import ListAfter, Onward, listing_of, take_listing
from compactor.planning.plan import Knowledge, plan
from compactor.planning.surroundings import Surroundings
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings

_BY_AGE = frozenset({SkipReason.TOO_YOUNG, SkipReason.OPEN_PARTITION})
_NOTHING = Skipped(0, 0)


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
        lists: returns what lists a partition; by LIST by default.

    Attributes:
        waiting: objects of the last planned partition that are left because of their age, or None.
        beyond: the first of its objects that Spark takes, as they are more than a worker takes.
    """

    def __init__(
        self,
        settings: Settings,
        store: ObjectStore,
        known: Knowledge,
        lists: Callable[[Partition], ListAfter] | None = None,
    ) -> None:
        self._settings = settings
        self._store = store
        self._lists = lists or partial(listing_of, store)
        self._known = known
        self._no_outputs: set[bytes] = set()
        self._skipped: dict[SkipReason, Skipped] = {}
        self.waiting: Waiting | None = None
        self.beyond = _NOTHING

    def of(self, partition: Partition, now: float) -> CompactionPlan:
        """Return the groups of all windows that a worker takes, in order, and what is left alone.

        A run may split groups further once it reads the sources: their content can have another
        format than their keys indicate, or be unreadable.
        """
        groups: list[ObjectGroup] = []
        self._skipped, self.waiting, self.beyond = {}, None, _NOTHING
        taken = _NOTHING
        start_after, onward = "", Onward(self._lists(partition))
        surroundings = Surroundings(self._store, partition.bucket)
        # Terminates, because each window starts after the previous one.
        while True:
            listing = take_listing(
                onward,
                partition,
                self._known.committed,
                start_after,
                limits=self._settings.limits,
            )
            partial = self._settings.takes_events
            roots = surroundings.around(listing, start_after, partial=partial)
            known = msgspec.structs.replace(self._known, roots=roots)
            planned = self._window(listing, known, now)
            sources = sum(len(group.sources) for group in planned)
            more = Skipped(sources, sum(group.size for group in planned))
            taken = taken.plus(more)
            if planned and self._settings.is_oversized(taken.objects, taken.bytes):
                self.beyond = more
                return CompactionPlan(partition, tuple(groups), self._skipped)
            groups += planned
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
            own = Skipped(len(found), size, (first,))
            add_skipped(self._skipped, {SkipReason.OWN_STATE: own})
            left = (one for one in listing.objects if one.identity not in found)
            listing = replace(listing, objects=tuple(left))
        add_skipped(self._skipped, decision.skipped)
        if not decision.skipped.keys().isdisjoint(_BY_AGE):
            self.waiting = Waiting.of((self.waiting, self._waiting(listing, now)))
        return decision.groups

    def _waiting(self, listing: Listing, now: float) -> Waiting:
        settings = self._settings
        arrived = [one.last_modified for one in listing.objects]
        young = [at for at in arrived if at > now - settings.settle_seconds]
        longest = settings.open_partition_seconds
        return Waiting(min(young or arrived), listing.newest, listing.newest + longest, now)
