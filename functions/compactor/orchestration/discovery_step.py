"""The first step of every run: ask the store, find the partitions, write their lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container
from dataclasses import dataclass, replace
from typing import Generic, TypeVar, cast

from compactor.catalogs.opening import open_inventory
from compactor.clock import NoDeadline
from compactor.conditions import traits_of, warnings_of
from compactor.discovery.discover import count_known, discover
from compactor.discovery.fleet import Fleet
from compactor.discovery.rejected import with_rejected
from compactor.discovery.resume import Ask, Part, discover_on
from compactor.discovery.work_items import (
    Discovery,
    Joined,
    WorkLists,
    blaming,
    read_items,
    write_rest,
    write_work,
)
from compactor.inventory.inventory_listing import InventoriedStore, InventoryListing
from compactor.inventory.pages import RunShelf
from compactor.inventory.taking import take_on
from compactor.log.log import CommitLog
from compactor.model import Partition
from compactor.planning.partition_listing import ListedStore
from compactor.ports import Deadline, ObjectStore
from compactor.probe.probe import ensure_asked
from compactor.registry.streams import identity_of
from compactor.runs.prior_listing import RegistryAt, open_pending, registry_at
from compactor.settings.settings import CleanUpMode, Settings
from compactor.sinks.merged_tables import lags

_Store = TypeVar("_Store", bound=ObjectStore)


@dataclass(frozen=True, slots=True)
class Begun(Generic[_Store]):
    """A run that has begun: what there is to do, where that is written, and the store to use.

    Attributes:
        found: in numbers alone where several invocations found it.
        spark: there is something for the Spark job: partitions, or what its table lacks.
    """

    found: Discovery | Joined
    lists: WorkLists
    store: _Store
    spark: bool = False

    def in_full(self) -> Discovery:
        """What was found, read from the lists where it has to be."""
        if isinstance(self.found, Discovery):
            return self.found
        bucket, lists = self.lists.bucket, (self.lists.items_key, self.lists.oversized_key)
        items, oversized = (read_items(bucket, key, self.store) for key in lists)
        return Discovery(items, oversized, self.found.unpartitioned, self.found.resting)


def begin(
    settings: Settings,
    run_id: str,
    store: _Store,
    now: float,
    fleet: Fleet | None = None,
    *,
    deadline: Deadline | None = None,
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
        at: finds the table of what events named.

    Returns:
        What is to be done; or a part of the discovery, after which this is to be called again.

    Raises:
        InvalidInput: the input is at fault, or the store does not honour what a run stands on;
            nothing was written but, perhaps, the record of the probe and parts of the discovery.
        TransientStoreError: the store did not answer.
    """
    asked_before = Counter(store.requests.snapshot())
    fleet = fleet or Fleet()
    until = deadline or NoDeadline()
    committed = committed_in(settings, store)
    ask = Ask(settings, run_id, store, now, committed, until, fleet)
    found: Discovery | Joined | Part
    if settings.listing_kind == "inventory":
        # Before the first pages are written.
        store, warnings = asked_store(settings, store, now)
        shelf = RunShelf(settings, run_id, store)
        listing = take_on(settings, store, shelf, until, opens=open_inventory)
        found = Part(0, 0) if listing is None else discover_on(_as_listed(ask, store, listing))
    elif settings.listing_kind == "events":
        store, warnings = asked_store(settings, store, now)
        found = find_pending(settings, store, now, fleet, at)
    else:
        found = discover_on(ask)
        store, warnings = asked_store(settings, store, now)
    if isinstance(found, Part):
        return found
    if isinstance(found, Discovery):
        found = with_rejected(found, settings, store)
    warnings = (*warnings, *fleet.warnings(settings))
    asked = Counter(store.requests.snapshot()) - asked_before
    # The lists that are written now: of work items both, of what is beside them both.
    asked["PUT"] += 2 if isinstance(found, Joined) else 4
    if isinstance(found, Joined):
        lists = write_rest(found, settings, run_id, store, warnings, requests=asked)
    else:
        lists = write_work(found, settings, run_id, store, warnings, requests=asked)
    spark = bool(lists.oversized_count) or (bool(settings.upsert_key) and lags(settings, store))
    return Begun(found, lists, store, spark)


def _as_listed(ask: Ask, store: ObjectStore, listing: InventoryListing) -> Ask:
    """The same of a source that is listed already; its time is that of the run."""
    return replace(
        ask, store=cast(ObjectStore, InventoriedStore(store, listing)), now=listing.as_of
    )


def find_listed(
    settings: Settings, store: ObjectStore, listing: InventoryListing, fleet: Fleet | None = None
) -> Discovery:
    """Find the partitions as an inventory has them; its time is that of the run.

    Raises:
        InvalidInput: as :func:`discover` does.
        IntegrityError: likewise, or a page of the listing is gone.
    """
    committed = committed_in(settings, store)
    listed = cast(ObjectStore, InventoriedStore(store, listing))
    return discover(settings, listed, listing.as_of, committed=committed, fleet=fleet)


def find_pending(
    settings: Settings,
    store: ObjectStore,
    now: float,
    fleet: Fleet | None = None,
    at: RegistryAt = registry_at,
    *,
    writes: bool = True,
) -> Discovery:
    """The partitions that events named, with what is pending in each.

    Args:
        settings: of the run.
        store: where everything else is.
        now: UNIX seconds.
        fleet: the workers; those that were measured by default.
        at: finds the table of a name.
        writes: a stream that is not known yet becomes that of this source.

    Raises:
        InvalidInput: as :func:`discover` does; or the stream is that of another source.
        IntegrityError: likewise.
        TransientStoreError: the table did not answer.
    """
    listing = open_pending(settings, now, at, left=False)
    if writes:
        listing.registry.claim(identity_of(settings), now)
    listed = cast(ObjectStore, ListedStore(store, listing))
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
