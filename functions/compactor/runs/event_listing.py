"""Opens the listing of the objects that events named."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from compactor.outputs.detection import decided_by
from compactor.registry.pending_listing import EventListing
from compactor.registry.registry_ports import Registry
from compactor.registry.streams import table_and_stream
from compactor.settings.settings import Settings

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
