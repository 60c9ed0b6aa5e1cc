"""The first step of every run: ask the store, find the partitions, write their lists."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from compactor.conditions import traits_of, warnings_of
from compactor.discovery.discover import Discovery, discover
from compactor.discovery.fleet import Fleet
from compactor.discovery.work import WorkLists, blaming, write_work
from compactor.inventory.listing import InventoryListing, ListedStore
from compactor.inventory.pages import RunShelf
from compactor.inventory.taking import take_inventory
from compactor.log.log import CommitLog
from compactor.model import Partition
from compactor.ports import ObjectStore
from compactor.probe.probe import ensure_asked
from compactor.settings.settings import CleanUpMode, Settings

_Store = TypeVar("_Store", bound=ObjectStore)


@dataclass(frozen=True, slots=True)
class Begun(Generic[_Store]):
    """A run that has begun: what there is to do, where that is written, and the store to use."""

    found: Discovery
    lists: WorkLists
    store: _Store


def begin(
    settings: Settings, run_id: str, store: _Store, now: float, fleet: Fleet | None = None
) -> Begun[_Store]:
    """Find the partitions, make certain that the store can be trusted, and write the work lists.

    Args:
        settings: of the run.
        run_id: of the run.
        store: where sources, destination and state are.
        now: UNIX seconds.
        fleet: the workers; those that were measured by default.

    Raises:
        InvalidInput: the input is at fault, or the store does not honour what a run stands on;
            nothing was written but, perhaps, the record of the probe.
        TransientStoreError: the store did not answer.
    """
    fleet = fleet or Fleet()
    if settings.listing == "inventory":
        # Before the first pages are written.
        store, warnings = asked_store(settings, store, now)
        shelf = RunShelf(settings, run_id, store)
        found = find_listed(settings, store, take_inventory(settings, store, shelf), fleet)
    else:
        found = discover(settings, store, now, committed=committed_in(settings, store), fleet=fleet)
        store, warnings = asked_store(settings, store, now)
    warnings = (*warnings, *fleet.warnings(settings))
    return Begun(found, write_work(found, settings, run_id, store, warnings), store)


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
