"""The first step of every run: probe the store, find the partitions, write the work list."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Generic, TypeVar

from compactor.discovery.discover import discover, discover_pending
from compactor.discovery.location_checks import blaming
from compactor.discovery.work_list import Discovery, write_work
from compactor.partition.events import RegistryAt, open_pending, registry_at
from compactor.ports import Deadline, ObjectStore
from compactor.probe.probe import REMEMBERED_SECONDS, traits_for
from compactor.registry.streams import identity_of
from compactor.settings.settings import Settings
from compactor.sinks.merged_tables import lags

_Store = TypeVar("_Store", bound=ObjectStore)

# Requests of write_work.
_LISTS = Counter(PUT=3)
_READ_BACK = (
    "this store does not check the CRC32 of an upload: each output is read back and compared after"
    " it is published, and can be read until then"
)


@dataclass(frozen=True, slots=True)
class Begun(Generic[_Store]):
    """A run that has begun.

    Attributes:
        found: its partitions, as in its work list.
        store: the store to use.
        lags: the run's table lacks outputs of earlier runs, which Spark merges.
    """

    found: Discovery
    store: _Store
    lags: bool = False


def begin(
    settings: Settings,
    run_id: str,
    store: _Store,
    now: float,
    *,
    deadline: Deadline | None = None,
    at: RegistryAt = registry_at,
) -> Begun[_Store]:
    """Find the partitions, probe the store's guarantees, and write the work list.

    Args:
        settings: the run's settings.
        run_id: the run's id.
        store: the store of sources, destination and state.
        now: UNIX seconds.
        deadline: this call's deadline; none by default.
        at: returns the registry in the table of a name.

    Raises:
        InvalidInput: the input is invalid, the source has more prefixes than one call can list, or
            the store does not give the guarantees that a run needs. Nothing was written, except
            possibly the probe's record.
        TransientStoreError: the store did not answer.
    """
    asked_before = Counter(store.requests.snapshot())
    if settings.takes_events:
        store, warnings = asked_store(settings, store, now)
        found = find_pending(settings, store, now, at)
    else:
        found = discover(settings, store, now, deadline)
        store, warnings = asked_store(settings, store, now)
    asked = Counter(store.requests.snapshot()) - asked_before + _LISTS
    write_work(found, settings, run_id, store, warnings, requests=asked)
    if settings.converts and found.partitions:
        from compactor.rows.sample import pin_columns  # noqa: PLC0415 - only runs with rows import Arrow

        # Before several workers begin.
        pin_columns(settings, store, lambda: found.partitions)
    return Begun(found, store, bool(settings.upsert_key) and lags(settings, store))


def find_pending(
    settings: Settings,
    store: ObjectStore,
    now: float,
    at: RegistryAt = registry_at,
    *,
    writes: bool = True,
) -> Discovery:
    """Find the partitions that events named in which an object is pending.

    Args:
        settings: the run's settings.
        store: the store of sources, destination and state.
        now: UNIX seconds.
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
    return discover_pending(settings, store, listing.of, listing.partitions())


def asked_store(settings: Settings, store: _Store, now: float) -> tuple[_Store, tuple[str, ...]]:
    """Probe the store; return it with what was found, and the warnings for the run's report.

    Raises:
        InvalidInput: the store does not give the guarantees that the run needs.
    """
    with blaming("s3_state_uri", settings):
        traits = traits_for(settings.state, store, now, remembered_seconds=REMEMBERED_SECONDS)
    warnings = () if traits.checks_crc32 else (_READ_BACK,)
    return store.with_traits(traits), warnings
