"""Finds the partitions of a run and counts what is in them. Reads only."""

from __future__ import annotations

from collections.abc import Iterable

from compactor.discovery.counting import Committed, Count, Tally
from compactor.discovery.fleet import Fleet
from compactor.discovery.location_checks import (
    NamedLevels,
    check_places,
    refuse_named_levels,
    rests_of,
)
from compactor.discovery.parallel import Parallel
from compactor.discovery.search import Search, dates_of
from compactor.discovery.work_items import (
    Discovery,
    WorkItem,
    WorkLists,
    to_items_json,
    write_work,
)
from compactor.log.resting import NONE_AT_REST
from compactor.model import SHOWN_EXAMPLES, Partition, Skipped
from compactor.planning.partition_listing import Lists
from compactor.planning.surroundings import Surroundings
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings

__all__ = [
    "Committed",
    "Discovery",
    "WorkItem",
    "WorkLists",
    "discover",
    "to_items_json",
    "write_work",
]

# Each has one request at a time.
_THREADS = 16


def discover(
    settings: Settings,
    store: ObjectStore,
    now: float,
    *,
    committed: Committed,
) -> Discovery:
    """Find every partition that holds an object and is not at rest, in order.

    Args:
        settings: settings of the run.
        store: where the objects are; called from several threads concurrently.
        now: UNIX seconds; determines the days of a window that is relative to today.
        committed: consulted only for partitions that hold more than one worker may take;
            called from several threads concurrently.

    Raises:
        InvalidInput: a bucket does not exist or may not be read; the window is empty; the
            destination was made with another partition scheme; the source has outputs of a run;
            or the state lies in another state.
        IntegrityError: the log of what is in the destination is gone or elsewhere.
    """
    dates = dates_of(settings, now)
    rests = rests_of(settings, store, now, has_identity=check_places(settings, store))
    around = Surroundings(store, settings.source.root.bucket)
    count = Count(settings, store, committed, Fleet(), around=around, rests=rests)
    found = Found(settings)
    with Parallel(_THREADS) as parallel:
        search = Search(settings, store, parallel, around)
        wanted = ((partition, None) for partition in search.partitions(dates))
        found.add(parallel.in_order(count, wanted))
    found.skip(search.unpartitioned)
    return found.discovery()


def count_known(
    settings: Settings,
    store: ObjectStore,
    lists: Lists,
    partitions: Iterable[Partition],
    *,
    committed: Committed,
    fleet: Fleet,
) -> Discovery:
    """Count what is in known partitions, without searching for others.

    Args:
        settings: settings of the run.
        store: where the log is; called from several threads concurrently.
        lists: lists the partitions; likewise.
        partitions: the partitions, in order.
        committed: see :func:`discover`.
        fleet: the workers of the run.

    Raises:
        InvalidInput: see :func:`discover`.
        IntegrityError: see :func:`discover`.
    """
    check_places(settings, store)
    count = Count(settings, store, committed, fleet, lists=lists)
    found = Found(settings)
    with Parallel(_THREADS) as parallel:
        found.add(parallel.in_order(count, ((partition, None) for partition in partitions)))
    return found.discovery()


class Found:
    """Collects the counts of partitions, in order."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.items: list[WorkItem] = []
        self.oversized: list[WorkItem] = []
        self.lost = NamedLevels()
        self.unpartitioned = Skipped(0, 0)
        self.resting = NONE_AT_REST

    def add(self, counted: Iterable[tuple[Partition, Tally]]) -> None:
        """Add complete counts."""
        for partition, tally in counted:
            if tally.alone:
                self.skip(Skipped(tally.objects, tally.size, tally.examples))
                continue
            self.resting = self.resting.plus(tally.resting)
            self.lost = self.lost.plus(tally.lost)
            item = tally.work_item(partition)
            if item is not None:
                (self.oversized if tally.oversized else self.items).append(item)

    def skip(self, skipped: Skipped) -> None:
        """Add objects that are in no partition."""
        self.unpartitioned = self.unpartitioned.plus(skipped, SHOWN_EXAMPLES)

    @property
    def objects(self) -> int:
        """Number of objects in all partitions."""
        counted = sum(one.objects for items in (self.items, self.oversized) for one in items)
        return counted + self.resting.objects

    def discovery(self) -> Discovery:
        """Return everything that was discovered.

        Raises:
            InvalidInput: no source can be compacted without losing a column.
        """
        refuse_named_levels(self._settings, [self.lost], self.objects)
        return Discovery(tuple(self.items), tuple(self.oversized), self.unpartitioned, self.resting)
