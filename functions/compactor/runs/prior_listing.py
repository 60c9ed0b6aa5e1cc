"""Opens the listing that was made before a run began, from an inventory or events.

Most runs use LIST, so the inventory reader and the registry client are imported only when needed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from compactor.outputs.detection import decided_by
from compactor.planning.partition_listing import EarlierListing
from compactor.ports import ObjectStore
from compactor.registry.pending_listing import EventListing
from compactor.registry.registry_ports import Registry
from compactor.registry.streams import table_and_stream
from compactor.settings.settings import Settings

RegistryAt = Callable[[str], Registry]


@cache
def registry_at(table: str) -> Registry:
    """Return the registry in the DynamoDB table of this name; cached with its connections."""
    from compactor.aws.registry import DynamoRegistry  # noqa: PLC0415 - see above

    return DynamoRegistry(table)


def open_earlier(
    settings: Settings,
    run_id: str,
    store: ObjectStore,
    now: float,
    at: RegistryAt = registry_at,
) -> EarlierListing | None:
    """Open the listing that a worker takes its partitions' objects from; None for LIST.

    Args:
        settings: the run's settings.
        run_id: the run whose discovery took the inventory.
        store: the store with the inventory's pages.
        now: UNIX seconds; ages of objects named by events are measured at this time.
        at: returns the registry in the table of a name.

    Raises:
        IntegrityError: the index of the inventory is damaged, or a later version of this program
            wrote it.
    """
    if settings.listing_kind == "events":
        return open_pending(settings, now, at)
    if settings.listing_kind != "inventory":
        return None
    from compactor.inventory.inventory_listing import open_listing  # noqa: PLC0415 - see above

    return open_listing(settings, run_id, store)


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
