"""Whether sources may still be read through the readers' table, for clean-up.

The catalog is queried rather than our own records. A source may be deleted only once the catalog
has shown the partition without that source for the grace period: by then, every query that was
planned earlier has finished reading.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from math import floor

from compactor.errors import IntegrityError
from compactor.model import Partition, SourceObject
from compactor.ports import Clock, ObjectStore
from compactor.readers.partition_columns import PartitionColumns
from compactor.readers.reader_catalog import ReaderCatalog
from compactor.readers.shown_location import Shows, names_in, shows_of
from compactor.readers.states import Shown
from compactor.readers.switch_records import ReadersMarker, read_marker, read_switch
from compactor.settings.settings import Settings

OpenReaders = Callable[[str], ReaderCatalog]


@dataclass(frozen=True, slots=True)
class Asked:
    """The catalog's answer for one partition, and since when it is known to apply.

    Attributes:
        shows: None if the catalog does not have the partition.
        names: bucket and key of the objects in the list that it shows; empty without a list.
        since: nothing else has been shown since this time, in UNIX seconds of the store's clock;
            None if not known yet.
        at: when the catalog was asked: the earlier of the store's time and ours.
    """

    shows: Shows | None
    names: Collection[tuple[str, str]] = ()
    since: float | None = None
    at: float = 0.0

    def has_stood(self, grace: float) -> bool:
        """Return True once only outputs or a list have been shown for ``grace`` seconds."""
        if self.shows is None or self.since is None or self.shows.shown is Shown.RAW:
            return False
        return self.at - floor(self.since) >= grace

    def may_be_read(self, sources: Sequence[SourceObject], grace: float) -> bool:
        """Return True while any of these sources may be read.

        Args:
            sources: the sources to check.
            grace: how long a query that was planned earlier may take, seconds.
        """
        if not self.has_stood(grace):
            return True
        return any((one.bucket, one.key) in self.names for one in sources)


@dataclass(slots=True)
class ReaderGate:
    """Whether readers still need the sources of one partition, for its clean-up.

    Attributes:
        open: opens the catalog of a table.
    """

    open: OpenReaders
    _marker: ReadersMarker | None = None
    _looked: bool = False
    _asked: Asked | None = None

    def holds(
        self,
        sources: Sequence[SourceObject],
        settings: Settings,
        partition: Partition,
        store: ObjectStore,
        clock: Clock,
    ) -> bool:
        """Return True while one of these sources may be read through the table.

        Args:
            sources: of a commit whose output is readable.
            settings: of the clean-up; they need not name the table, because the state does.
            partition: of the sources.
            store: where sources and state are.
            clock: ours.

        Raises:
            IntegrityError: the partition was changed by hand, or its list is gone or damaged.
            InvalidInput: querying the catalog is not permitted.
            TransientStoreError: the catalog did not answer.
        """
        if not self._looked:
            self._marker, self._looked = read_marker(settings.state, store), True
        marker = self._marker
        if marker is None:
            return False
        if self._asked is None:
            catalog = self.open(marker.table)
            self._asked = ask(catalog, marker.divided(settings), partition, store, clock)
        shows = self._asked.shows
        if shows is not None and shows.shown is None:
            raise IntegrityError(
                f"{marker.table} shows {shows.location} for {partition.path}, which no refresh"
                " left: compactor table refresh puts it right"
            )
        return self._asked.may_be_read(sources, marker.grace_seconds)

    def reason(self) -> str:
        """Why sources are kept, for messages; empty before :meth:`holds` has returned True."""
        marker, asked = self._marker, self._asked
        if marker is None or asked is None:
            return ""
        if asked.shows is None or asked.shows.shown is Shown.RAW:
            return f"{marker.table} shows them still: compactor table refresh switches it"
        if asked.since is None:
            return (
                f"there is no record of when {marker.table} was switched to"
                f" {asked.shows.location}: the next run over the partition, or compactor table"
                " refresh, writes one"
            )
        grace = marker.grace_seconds
        if not asked.has_stood(grace):
            return (
                f"{grace:,} seconds have not passed since {marker.table} was switched, and a query"
                " that was planned before may read them"
            )
        return f"the list that {marker.table} shows has them"

    @property
    def has_none(self) -> bool:
        """True once it is known that no table reads the destination."""
        return self._looked and self._marker is None


def ask(
    catalog: ReaderCatalog,
    settings: Settings,
    partition: Partition,
    store: ObjectStore,
    clock: Clock,
) -> Asked:
    """Query what the catalog shows for a partition, and since when.

    Args:
        catalog: of the table.
        settings: they define the table's partitions.
        partition: the partition.
        store: where lists and switch records are.
        clock: ours.

    Raises:
        IntegrityError: the list that the partition shows is gone or damaged.
    """
    entries = catalog.entries([PartitionColumns(settings).values(partition.path)]).values()
    every = [shows_of(entry, settings, partition) for entry in entries]
    # If no entry shows the partition itself, its location was changed by hand.
    shows = next((one for one in every if one.shown is not None), next(iter(every), None))
    if shows is None or shows.shown in (None, Shown.RAW):
        return Asked(shows)
    record = read_switch(settings.state, partition, shows.switch, store)
    if record is None:
        # The writer that switched it died before recording it; the next refresh will.
        return Asked(shows)
    if record.location != shows.location:
        return Asked(Shows(None, shows.switch, shows.location))
    head = store.head(*settings.layout.switch(partition, shows.switch))
    if head is None:
        return Asked(shows)
    now = clock.now()
    at = now if head.answered_at is None else min(now, head.answered_at)
    listed = shows.shown is Shown.LISTED
    names = names_in(shows, settings, partition, store) if listed else ()
    return Asked(shows, names, head.last_modified, at)
