"""What readers see of a partition now, and would see after a refresh. Read-only."""

from __future__ import annotations

from dataclasses import dataclass

from compactor.model import Partition
from compactor.ports import Clock, ObjectStore
from compactor.readers.clean_up_gate import ask
from compactor.readers.partition_view import look
from compactor.readers.reader_catalog import ReaderCatalog
from compactor.readers.refresh import is_fresh
from compactor.readers.states import Shown, decide
from compactor.settings.settings import Settings


@dataclass(frozen=True, slots=True)
class Showing:
    """What one partition shows.

    Attributes:
        shows: ``raw``, ``compacted`` or ``listed``; ``unknown`` if no refresh left it so, empty if
            the catalog does not have the partition.
        wanted: what a refresh would change it to; empty if nothing.
        objects: in the list that it shows.
        invisible: sources whose records no query sees before a refresh.
        seconds: how long it has shown this at least; None if not known.
    """

    path: str
    shows: str
    wanted: str
    objects: int = 0
    invisible: int = 0
    seconds: float | None = None


def showing(
    catalog: ReaderCatalog,
    settings: Settings,
    partition: Partition,
    store: ObjectStore,
    clock: Clock,
) -> Showing:
    """Return what a partition shows.

    Raises:
        IntegrityError: its log is incomplete, or its list is gone.
        InvalidInput: querying the catalog is not permitted.
        TransientStoreError: the catalog did not answer.
    """
    now = clock.now()
    asked = ask(catalog, settings, partition, store, clock)
    held = look(settings, partition, store, now)
    current = None if asked.shows is None else asked.shows.shown or Shown.LISTED
    decision = decide(
        held,
        current,
        fresh=is_fresh(settings, partition.path, held, now),
        exact=settings.reader_mode == "exact",
    )
    if asked.shows is None:
        shows, invisible = "", len(held.loose)
    else:
        shows = "unknown" if asked.shows.shown is None else asked.shows.shown.value
        invisible = sum((one.bucket, one.key) not in asked.names for one in held.loose)
    return Showing(
        partition.path,
        shows,
        "" if decision is None else decision.shown.value,
        len(asked.names),
        0 if shows == Shown.RAW else invisible,
        None if asked.since is None else max(0.0, asked.at - asked.since),
    )
