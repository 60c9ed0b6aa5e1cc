"""The objects that events announced: their listing, and what became of them in a run.

The commit log is authoritative. If a process dies before marking objects, or marks them wrongly,
the next run sees the same objects and finds them in the log.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from compactor.log.state import LogState
from compactor.model import SkipReason
from compactor.outputs.detection import decided_by
from compactor.partition.inputs import PartitionRun
from compactor.planning.key_rules import KeyRules
from compactor.planning.markers import Roots
from compactor.registry.items import LEFT_PASSING, Item, ItemState, Mark
from compactor.registry.pending_listing import EventListing, Marked
from compactor.registry.registry_ports import Registry
from compactor.registry.streams import table_and_stream
from compactor.settings.settings import Settings
from compactor.settings.windows import named_level

RegistryAt = Callable[[str], Registry]


@cache
def registry_at(table: str) -> Registry:
    """Return the registry in the DynamoDB table of this name; cached with its connections."""
    from compactor.aws.registry import DynamoRegistry  # noqa: PLC0415 - most runs use LIST

    return DynamoRegistry(table)


def event_listing(
    settings: Settings, now: float, at: RegistryAt = registry_at
) -> EventListing | None:
    """Open the listing that a worker takes its partitions' objects from; None for LIST.

    Args:
        settings: the run's settings.
        now: UNIX seconds; ages of the objects are measured at this time.
        at: returns the registry in the table of a name.
    """
    return open_pending(settings, now, at) if settings.takes_events else None


def open_pending(
    settings: Settings, now: float, at: RegistryAt = registry_at, *, left: bool = True
) -> EventListing:
    """Open the listing of objects pending in the run's stream.

    Args:
        settings: the run's settings.
        now: UNIX seconds.
        at: returns the registry in the table of a name.
        left: include objects that earlier runs left alone under the same settings.
    """
    table, stream = table_and_stream(settings)
    root = settings.source.root
    return EventListing(
        at(table),
        stream,
        (root.bucket, root.prefix),
        now,
        left=left or settings.retry_quarantined,
        decided_by=decided_by(settings),
    )


def mark_registered(run: PartitionRun, state: LogState, roots: Roots) -> Marked:
    """Mark a partition's pending objects with their outcome, if the listing comes from events.

    Does nothing while commits are unpublished: the objects must stay pending, so that the next run
    visits the partition.

    Args:
        run: the partition's run.
        state: its log.
        roots: prefixes that a table or registry owns.

    Raises:
        TransientStoreError: the registry did not answer; commits are not affected.
        InvalidInput: access to the registry is denied.
    """
    listing = run.listing
    if listing is None or state.unpublished:
        return Marked()
    judge = _Judge(run, state, listing, roots)
    return listing.settle(run.partition, judge, run.clock.now())


class _Judge:
    """Decides how a registered item is marked; None leaves it as it is."""

    def __init__(
        self,
        run: PartitionRun,
        state: LogState,
        listing: EventListing,
        roots: Roots,
    ) -> None:
        self._state = state
        self._listing = listing
        self._by_key = KeyRules(run.settings, roots)
        self._decided_by = decided_by(run.settings)

    def __call__(self, item: Item) -> Mark | None:
        identity = item.source.identity
        if identity in self._state.committed:
            return Mark(item, ItemState.COMPACTED)
        if self._state.committed.has_key_of(identity):
            return Mark(item, ItemState.OVERWRITTEN)
        if self._listing.is_gone(item.source):
            return Mark(item, ItemState.GONE)
        reason = self._reason(item, identity)
        if reason:
            return Mark(item, ItemState.LEFT, reason=f"{reason}@{self._decided_by}")
        return _pending(item)

    def _reason(self, item: Item, identity: bytes) -> str:
        if identity in self._state.passing:
            return LEFT_PASSING
        if identity in self._state.quarantined:
            return "quarantined"
        if not item.size:
            return "empty"
        source = item.source
        deeper = named_level(source.key, len(item.partition.prefix))
        return self._by_key(source) or (SkipReason.DEEPER_LEVEL if deeper else "")


def _pending(item: Item) -> Mark | None:
    return None if item.state is ItemState.PENDING else Mark(item, ItemState.PENDING)
