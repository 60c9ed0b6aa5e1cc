"""What was listed before a run began, by inventory or events.

Most runs take LIST: what reads an inventory, or asks the table of what is pending, is imported for
those that name one.
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
    """The table of this name; its connections outlive an invocation."""
    from compactor.aws.registry import DynamoRegistry  # noqa: PLC0415 - see above

    return DynamoRegistry(table)


def open_earlier(
    settings: Settings,
    run_id: str,
    store: ObjectStore,
    now: float,
    at: RegistryAt = registry_at,
) -> EarlierListing | None:
    """What a worker is to take its partitions' objects from; None for LIST.

    Args:
        settings: of the run.
        run_id: of the run, whose discovery took an inventory.
        store: where the pages of that are.
        now: UNIX seconds; ages of what events named count from here.
        at: finds the table of a name.

    Raises:
        IntegrityError: the index of the inventory is damaged, or a later version wrote it.
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
    """What is pending in the stream of a run.

    Args:
        settings: of the run.
        now: UNIX seconds.
        at: finds the table of a name.
        left: also what earlier runs left under these very settings.
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
