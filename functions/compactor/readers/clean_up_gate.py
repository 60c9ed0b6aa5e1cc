"""What clean-up must know of the readers' table: which sources may still be read.

The catalog is asked, not what we remember of it. A source goes only once the catalog has been seen
for the grace's time to show a partition in which nothing names it: a query that was planned before
has read it by then.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from math import floor

from compactor import layout
from compactor.errors import IntegrityError
from compactor.model import Partition, SourceObject
from compactor.ports import Clock, ObjectStore
from compactor.readers.partition_columns import PartitionColumns
from compactor.readers.reader_catalog import ReaderCatalog
from compactor.readers.shown_location import Shows, names_in, shows_of
from compactor.readers.states import Shown
from compactor.readers.switch_records import (
    ReadersMarker,
    SwitchRecord,
    leave_switch,
    read_marker,
    read_switch,
)
from compactor.settings.settings import Settings

OpenReaders = Callable[[str], ReaderCatalog]


@dataclass(frozen=True, slots=True)
class Asked:
    """What the catalog said of one partition, and since when.

    Attributes:
        shows: None where the catalog does not know the partition.
        names: bucket and key of the objects in the list that it shows; empty without one.
        since: nothing else was shown, UNIX seconds of the store's clock; None where that is not
            known yet.
        at: the earlier of the store's time and ours, when it was asked.
    """

    shows: Shows | None
    names: Collection[tuple[str, str]] = ()
    since: float | None = None
    at: float = 0.0

    def has_stood(self, grace: float) -> bool:
        """True once outputs or a list are known to be all that was shown for so many seconds."""
        if self.shows is None or self.since is None or self.shows.shown is Shown.RAW:
            return False
        return self.at - floor(self.since) >= grace

    def may_be_read(self, sources: Sequence[SourceObject], grace: float) -> bool:
        """True while one of these sources may be read.

        Args:
            sources: some.
            grace: how long a query may go on that was planned before, seconds.
        """
        if not self.has_stood(grace):
            return True
        return any((one.bucket, one.key) in self.names for one in sources)


@dataclass(slots=True)
class ReaderGate:
    """Whether readers hold sources back, for the clean-up of one partition.

    Attributes:
        open: the catalog of a table.
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
        """True while one of these sources may be read by the table.

        Args:
            sources: of a commit whose output is readable.
            settings: of the clean-up; the table need not be among them, the state knows it.
            partition: of the sources.
            store: where everything is.
            clock: ours.

        Raises:
            IntegrityError: the partition was changed by hand, or its list is not what it was.
            InvalidInput: the catalog may not be asked.
            TransientStoreError: it did not answer.
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
        """Why sources are held back, for a person; empty before :meth:`holds` has said so."""
        marker, asked = self._marker, self._asked
        if marker is None or asked is None:
            return ""
        if asked.shows is None or asked.shows.shown is Shown.RAW:
            return f"{marker.table} shows them still: compactor table refresh switches it"
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
    *,
    notes: bool = True,
) -> Asked:
    """What a catalog says of a partition, and since when it is known to.

    Args:
        catalog: of the table.
        settings: by which its partitions are known.
        partition: which.
        store: where lists and records are.
        clock: ours.
        notes: record what is not recorded yet.

    Raises:
        IntegrityError: the list that it shows is gone or damaged.
    """
    entries = catalog.entries(PartitionColumns(settings).candidates(partition.path)).values()
    every = [shows_of(entry, settings, partition) for entry in entries]
    # Where none shows the partition itself, its location was changed by hand.
    shows = next((one for one in every if one.shown is not None), next(iter(every), None))
    if shows is None or shows.shown in (None, Shown.RAW):
        return Asked(shows)
    record = read_switch(settings.state, partition, shows.switch, store)
    if record is None:
        # The writer that switched it died before it was recorded: from now on it is.
        seen = SwitchRecord(
            path=partition.path, switch=shows.switch, location=shows.location, at=clock.now()
        )
        if notes:
            leave_switch(settings.state, partition, seen, store)
        return Asked(shows)
    if record.location != shows.location:
        return Asked(Shows(None, shows.switch, shows.location))
    head = store.head(*layout.switch_key(settings.state, partition, shows.switch))
    if head is None:
        return Asked(shows)
    now = clock.now()
    at = now if head.answered_at is None else min(now, head.answered_at)
    listed = shows.shown is Shown.LISTED
    names = names_in(shows, settings, partition, store) if listed else ()
    return Asked(shows, names, head.last_modified, at)
