"""The first step of every run: probe the store, find the partitions, write the work lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container
from dataclasses import dataclass
from typing import Generic, TypeVar

from compactor.clock import NoDeadline
from compactor.discovery.discover import count_known
from compactor.discovery.fleet import Fleet
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
from compactor.log.log import CommitLog
from compactor.model import Partition
from compactor.ports import Deadline, ObjectStore
from compactor.probe.probe import REMEMBERED_SECONDS, traits_for
from compactor.registry.streams import identity_of
from compactor.runs.event_listing import RegistryAt, open_pending, registry_at
from compactor.settings.settings import Settings
from compactor.sinks.merged_tables import lags

_Store = TypeVar("_Store", bound=ObjectStore)


_READ_BACK = (
    "this store does not check the CRC32 of an upload: each output is read back and compared after"
    " it is published, and can be read until then"
)


@dataclass(frozen=True, slots=True)
class Begun(Generic[_Store]):
    """A run that has begun: what was found, the work lists, and the store to use.

    Attributes:
        found: what discovery found; only counts if it took several invocations.
        spark: True if the Spark job has work: oversized partitions, or a table that lags.
    """

    found: Discovery | Joined
    lists: WorkLists
    store: _Store
    spark: bool = False

    def in_full(self) -> Discovery:
        """Return what was found in full, reading the work lists if necessary."""
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
    """Find the partitions, probe the store's guarantees, and write the work lists.

    Args:
        settings: the run's settings.
        run_id: the run's id.
        store: the store of sources, destination and state.
        now: UNIX seconds.
        fleet: the workers; by default those that were measured.
        deadline: this call's deadline; none by default. A discovery that does not finish before it
            stores what it has found.
        at: returns the registry in the table of a name.

    Returns:
        The run that has begun; or a part of the discovery, if this must be called again.

    Raises:
        InvalidInput: the input is invalid, or the store does not give the guarantees that a run
            needs. Nothing was written, except possibly the probe's record and parts of the
            discovery.
        TransientStoreError: the store did not answer.
    """
    asked_before = Counter(store.requests.snapshot())
    fleet = fleet or Fleet()
    until = deadline or NoDeadline()
    committed = committed_in(settings, store)
    ask = Ask(settings, run_id, store, now, committed, until, fleet)
    found: Discovery | Joined | Part
    if settings.takes_events:
        store, warnings = asked_store(settings, store, now)
        found = find_pending(settings, store, now, fleet, at)
    else:
        found = discover_on(ask)
        store, warnings = asked_store(settings, store, now)
    if isinstance(found, Part):
        return found
    asked = Counter(store.requests.snapshot()) - asked_before
    # The lists written next: two of work items, unless they exist already, and two others.
    asked["PUT"] += 2 if isinstance(found, Joined) else 4
    if isinstance(found, Joined):
        lists = write_rest(found, settings, run_id, store, warnings, requests=asked)
    else:
        lists = write_work(found, settings, run_id, store, warnings, requests=asked)
    spark = bool(lists.oversized_count) or (bool(settings.upsert_key) and lags(settings, store))
    return _with_columns(Begun(found, lists, store, spark), settings)


def _with_columns(begun: Begun[_Store], settings: Settings) -> Begun[_Store]:
    """Settle the columns of outputs that hold rows, before several workers begin.

    Raises:
        InvalidInput: the given schema is invalid, or no superset of the pinned one.
        TransientStoreError: the store did not answer.
    """
    if not (settings.converts and begun.lists.item_count + begun.lists.oversized_count):
        return begun
    from compactor.rows.sample import pin_columns  # noqa: PLC0415 - only runs with rows import Arrow

    def partitions() -> list[Partition]:
        found = begun.in_full()
        return [item.partition for item in (*found.items, *found.oversized)]

    pin_columns(settings, begun.store, partitions)
    return begun


def find_pending(
    settings: Settings,
    store: ObjectStore,
    now: float,
    fleet: Fleet | None = None,
    at: RegistryAt = registry_at,
    *,
    writes: bool = True,
) -> Discovery:
    """Find the partitions that events named, with what is pending in each.

    Args:
        settings: the run's settings.
        store: the store of sources, destination and state.
        now: UNIX seconds.
        fleet: the workers; by default those that were measured.
        at: returns the registry in the table of a name.
        writes: claim the stream for this source if it is new.

    Raises:
        InvalidInput: see :func:`discover`; or the stream belongs to another source.
        IntegrityError: see :func:`discover`.
        TransientStoreError: the registry did not answer.
    """
    listing = open_pending(settings, now, at, left=False)
    if writes:
        listing.registry.claim(identity_of(settings), now)
    committed, partitions = committed_in(settings, store), listing.partitions()
    return count_known(
        settings, store, listing, partitions, committed=committed, fleet=fleet or Fleet()
    )


def asked_store(settings: Settings, store: _Store, now: float) -> tuple[_Store, tuple[str, ...]]:
    """Probe the store; return it with what was found, and the warnings for the run's report.

    Raises:
        InvalidInput: the store does not give the guarantees that the run needs.
    """
    with blaming("s3_state_uri", settings):
        traits = traits_for(settings.state, store, now, remembered_seconds=REMEMBERED_SECONDS)
    warnings = () if traits.checks_crc32 else (_READ_BACK,)
    return store.with_traits(traits), warnings


def committed_in(settings: Settings, store: ObjectStore) -> Callable[[Partition], Container[bytes]]:
    """Return a function that loads the identities of a partition's committed sources."""

    def committed(partition: Partition) -> Container[bytes]:
        return CommitLog(store, settings, partition).load().committed

    return committed
