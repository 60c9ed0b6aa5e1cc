"""The first step of every run: ask the store, find the partitions, write their lists."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from compactor.clock import NoDeadline
from compactor.conditions import traits_of, warnings_of
from compactor.discovery.discover import count_known, discover
from compactor.discovery.divided import Ask, Part, discover_on
from compactor.discovery.fleet import Fleet
from compactor.discovery.work import (
    Discovery,
    Joined,
    WorkLists,
    blaming,
    read_items,
    write_rest,
    write_work,
)
from compactor.inventory.listing import InventoryListing, ListedStore
from compactor.inventory.pages import RunShelf
from compactor.inventory.taking import take_inventory
from compactor.log.log import CommitLog
from compactor.model import Partition
from compactor.ports import Deadline, ObjectStore
from compactor.probe.probe import ensure_asked
from compactor.registry.listing import PendingStore
from compactor.registry.streams import identity_of
from compactor.runs.earlier import RegistryAt, open_pending, registry_at
from compactor.settings.settings import CleanUpMode, Settings

_Store = TypeVar("_Store", bound=ObjectStore)


@dataclass(frozen=True, slots=True)
class Begun(Generic[_Store]):
    """A run that has begun: what there is to do, where that is written, and the store to use.

    Attributes:
        found: in numbers alone where several invocations found it.
    """

    found: Discovery | Joined
    lists: WorkLists
    store: _Store

    def in_full(self) -> Discovery:
        """What was found, read from the lists where it has to be."""
        if isinstance(self.found, Discovery):
            return self.found
        bucket, lists = self.lists.bucket, (self.lists.items_key, self.lists.oversized_key)
        items, oversized = (read_items(bucket, key, self.store) for key in lists)
        return Discovery(items, oversized, self.found.unpartitioned)


def begin(
    settings: Settings,
    run_id: str,
    store: _Store,
    now: float,
    fleet: Fleet | None = None,
    *,
    deadline: Deadline | None = None,
    shares: bool = False,
    at: RegistryAt = registry_at,
) -> Begun[_Store] | Part:
    """Find the partitions, make certain that the store can be trusted, and write the work lists.

    Args:
        settings: of the run.
        run_id: of the run.
        store: where sources, destination and state are.
        now: UNIX seconds.
        fleet: the workers; those that were measured by default.
        deadline: of this call, which never comes by default; before it, a discovery that is not
            at its end stores what it found.
        shares: several calls may go on with that at the same time.
        at: finds the table of what events told.

    Returns:
        What is to be done; or a part of the discovery, after which this is to be called again.

    Raises:
        InvalidInput: the input is at fault, or the store does not honour what a run stands on;
            nothing was written but, perhaps, the record of the probe and parts of the discovery.
        TransientStoreError: the store did not answer.
    """
    fleet = fleet or Fleet()
    found: Discovery | Joined | Part
    if settings.listing == "inventory":
        # Before the first pages are written.
        store, warnings = asked_store(settings, store, now)
        shelf = RunShelf(settings, run_id, store)
        found = find_listed(settings, store, take_inventory(settings, store, shelf), fleet)
    elif settings.listing == "events":
        store, warnings = asked_store(settings, store, now)
        found = find_pending(settings, store, now, fleet, at)
    else:
        committed, until = committed_in(settings, store), deadline or NoDeadline()
        ask = Ask(settings, run_id, store, now, committed, until, fleet, shares=shares)
        found = discover_on(ask)
        store, warnings = asked_store(settings, store, now)
    if isinstance(found, Part):
        return found
    warnings = (*warnings, *fleet.warnings(settings))
    if isinstance(found, Joined):
        lists = write_rest(found, settings, run_id, store, warnings)
    else:
        lists = write_work(found, settings, run_id, store, warnings)
    return Begun(found, lists, store)


def find_listed(
    settings: Settings, store: ObjectStore, listing: InventoryListing, fleet: Fleet | None = None
) -> Discovery:
    """Find the partitions as an inventory has them; its time is that of the run.

    Raises:
        InvalidInput: as :func:`discover` does.
        IntegrityError: likewise, or a page of the listing is gone.
    """
    committed = committed_in(settings, store)
    listed = cast(ObjectStore, ListedStore(store, listing))
    return discover(settings, listed, listing.as_of, committed=committed, fleet=fleet)


def find_pending(
    settings: Settings,
    store: ObjectStore,
    now: float,
    fleet: Fleet | None = None,
    at: RegistryAt = registry_at,
) -> Discovery:
    """The partitions of which events told, with what is pending in each.

    Raises:
        InvalidInput: as :func:`discover` does; or the stream is that of another source.
        IntegrityError: likewise.
        TransientStoreError: the table did not answer.
    """
    listing = open_pending(settings, now, at, left=False)
    listing.registry.claim(identity_of(settings), now)
    listed = cast(ObjectStore, PendingStore(store, listing))
    committed = committed_in(settings, store)
    return count_known(settings, listed, listing.partitions(), committed=committed, fleet=fleet)


def asked_store(settings: Settings, store: _Store, now: float) -> tuple[_Store, tuple[str, ...]]:
    """The store for a run that begins, and what its report must warn of.

    Raises:
        InvalidInput: the store does not honour what the run stands on.
    """
    deletes = settings.clean_up is CleanUpMode.DELETE
    with blaming("s3_state_uri", settings):
        findings = ensure_asked(settings.state, store, now, deletes=deletes)
    return store.with_traits(traits_of(findings)), warnings_of(findings)


def committed_in(settings: Settings, store: ObjectStore) -> Callable[[Partition], Container[bytes]]:
    """What discovery asks of a partition: the identities of the sources that its log names."""

    def committed(partition: Partition) -> Container[bytes]:
        return CommitLog(store, settings, partition).load().committed

    return committed
