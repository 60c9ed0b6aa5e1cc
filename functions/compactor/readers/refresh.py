"""Refresh: update the catalog so that a partition shows each of its current records once.

query the catalog -> look at log, sources and outputs -> decide -> store the list in a new prefix
-> query the catalog again -> switch the partitions -> record what was seen

Each partition is switched with one request, and nothing that readers read is ever overwritten. The
catalog has no conditional updates. So the switch is sent only if the partition is still as it was
before the look, and only within :data:`LIMIT_SECONDS` of it: far less than the grace period that
clean-up gives queries that still read what was shown before.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from compactor.errors import IntegrityError, InvalidInput, ObjectMissing
from compactor.model import Partition
from compactor.ports import Clock, ObjectStore
from compactor.readers.formats import descriptor_of
from compactor.readers.manifests import MANIFEST_NAME, encode_manifest, manifest_prefix
from compactor.readers.outcome import Outcome
from compactor.readers.partition_columns import NoColumn, PartitionColumns, keys_of
from compactor.readers.partition_view import look
from compactor.readers.reader_catalog import CatalogChange, CatalogEntry, ReaderCatalog, Values
from compactor.readers.shown_location import SHOWN, SWITCH, Shows, location_of, names_in, shows_of
from compactor.readers.states import Decision, Held, Shown, decide
from compactor.readers.switch_records import SwitchRecord, claim_marker, leave_switch
from compactor.readers.table_creation import require_alike, require_table
from compactor.settings.settings import Settings

#: Maximum time from the look at a partition to its switch, seconds.
LIMIT_SECONDS = 300.0
# The number of partitions that one request switches.
_BATCH = 100


@dataclass(frozen=True, slots=True)
class Refreshing:
    """The context of a refresh.

    Attributes:
        settings: of the runs; they name a table.
        catalog: of that table.
    """

    settings: Settings
    store: ObjectStore
    clock: Clock
    catalog: ReaderCatalog


@dataclass(slots=True)
class _Work:
    """A partition being refreshed."""

    outcome: Outcome
    partition: Partition
    values: Values
    began: float = 0.0
    entry: CatalogEntry | None = None
    held: Held = field(default_factory=Held)
    change: CatalogChange | None = None
    switch: str = ""
    location: str = ""


def refresh(paths: Sequence[str], work: Refreshing) -> list[Outcome]:
    """Refresh some partitions of the table.

    A failure of one partition does not affect the others; its outcome says why.

    Raises:
        InvalidInput: the table cannot be switched, or another one reads the destination.
        TransientStoreError: the catalog did not answer.
    """
    claim_marker(work.settings, work.store)
    done: list[Outcome] = []
    for start in range(0, len(paths), _BATCH):
        done += _refresh_some(paths[start : start + _BATCH], work)
    return done


def _refresh_some(paths: Sequence[str], work: Refreshing) -> list[Outcome]:
    outcomes = [Outcome(path) for path in paths]
    known = list(_named(outcomes, work))
    entries = work.catalog.entries([one.values for one in known])
    for one in known:
        one.entry = entries.get(one.values)
        try:
            _prepare(one, work)
        except (IntegrityError, InvalidInput, ObjectMissing) as error:
            one.outcome.fault = str(error)
            one.outcome.is_refused = isinstance(error, NoColumn)
    _switch([one for one in known if one.change is not None and not one.outcome.fault], work)
    return outcomes


def _named(outcomes: Sequence[Outcome], work: Refreshing) -> Iterator[_Work]:
    columns = PartitionColumns(work.settings)
    for one in outcomes:
        try:
            partition = work.settings.partition_at(one.path)
            yield _Work(one, partition, columns.values(one.path))
        except InvalidInput as error:
            one.fault = str(error)


def _prepare(one: _Work, work: Refreshing) -> None:
    """Look at a partition, decide what it should show, and store its list if it needs one."""
    settings, now = work.settings, work.clock.now()
    one.began = now
    one.held = held = look(settings, one.partition, work.store, now)
    shows = None if one.entry is None else shows_of(one.entry, settings, one.partition)
    fresh = is_fresh(settings, one.outcome.path, held, now)
    exact = settings.reader_mode == "exact"
    decision = decide(held, _current(shows), fresh=fresh, exact=exact)
    one.outcome.unread = held.unread
    if decision is None:
        return
    before = _before(shows, one, work)
    one.outcome.invisible = _invisible(held, shows, before) if exact else 0
    one.outcome.shows, one.outcome.objects = decision.shown.value, len(decision.names)
    if shows is None or _differs(shows, before, decision):
        _order(one, decision, work)
    else:
        _note(one, shows.switch, shows.location, work)


def _note(one: _Work, switch: str, location: str, work: Refreshing) -> None:
    """Record that the catalog was seen to show this location."""
    now = work.clock.now()
    record = SwitchRecord(path=one.outcome.path, switch=switch, location=location, at=now)
    leave_switch(work.settings.state, one.partition, record, work.store)


def is_fresh(settings: Settings, path: str, held: Held, now: float) -> bool:
    """Return True while a partition may still show its sources, although outputs hold some.

    The period that its path names is not over, and no output is so old that clean-up may have
    started on its sources.

    Args:
        settings: of the runs.
        path: of the partition.
        held: what was found in it.
        now: UNIX seconds.
    """
    ends = PartitionColumns(settings).ends(path)
    # S3 dates a multipart object by the start of its upload, which is before its commit.
    oldest = min((one.last_modified for one in held.outputs), default=now)
    return ends is not None and now < ends and now - oldest < settings.retention_seconds


def _current(shows: Shows | None) -> Shown | None:
    """Return what is shown. Another writer's state counts as a list, so it never becomes raw."""
    if shows is None:
        return None
    return shows.shown or Shown.LISTED


def _before(shows: Shows | None, one: _Work, work: Refreshing) -> Collection[tuple[str, str]]:
    """Return the list that is shown; empty if it is missing or damaged."""
    if shows is None or shows.shown is not Shown.LISTED:
        return ()
    try:
        return names_in(shows, work.settings, one.partition, work.store)
    except IntegrityError:
        return ()


def _invisible(held: Held, shows: Shows | None, before: Collection[tuple[str, str]]) -> int:
    """Return the number of objects whose records no query has seen so far.

    New outputs are not counted: their sources are in the previous list until deleted.
    """
    if shows is None or shows.shown is Shown.RAW:
        return 0
    return sum((one.bucket, one.key) not in before for one in held.loose)


def _differs(shows: Shows, before: Collection[tuple[str, str]], decision: Decision) -> bool:
    if shows.shown is not decision.shown:
        return True
    return decision.shown is Shown.LISTED and set(before) != set(decision.names)


def _order(one: _Work, decision: Decision, work: Refreshing) -> None:
    """Store the list, if any, and set the change to make in the catalog."""
    settings, partition = work.settings, one.partition
    table = require_table(settings, partition, one.held, work.catalog, work.store)
    values = PartitionColumns(settings).values(partition.path, keys_of(table))
    if values != one.values:
        # The table names this level's column differently, so another partition, or none, was
        # queried before.
        one.values, one.entry = values, work.catalog.entries([values]).get(values)
        return _prepare(one, work)
    require_alike(table, settings, one.held, work.store)
    one.switch = uuid.uuid4().hex
    if decision.shown is Shown.LISTED:
        bucket, prefix = manifest_prefix(settings, partition, one.switch)
        body = encode_manifest(decision.names)
        work.store.create(bucket, prefix + MANIFEST_NAME, body, content_type="text/plain")
    one.location = location_of(decision.shown, settings, partition, one.switch)
    kept = dict(one.entry.parameters) if one.entry is not None else {}
    one.change = CatalogChange(
        one.values,
        descriptor_of(table["StorageDescriptor"], decision.shown, one.location),
        {**kept, SWITCH: one.switch, SHOWN: decision.shown.value},
        new=one.entry is None,
    )
    return None


def _switch(ready: Sequence[_Work], work: Refreshing) -> None:
    if not ready:
        return
    entries = work.catalog.entries([one.values for one in ready])
    now = work.clock.now()
    sent: list[_Work] = []
    for one in ready:
        if entries.get(one.values) != one.entry:
            one.outcome.fault = "another refresh was first; the next one looks again"
        elif now - one.began > LIMIT_SECONDS:
            one.outcome.fault = f"it took more than {LIMIT_SECONDS:g} s; the next one looks again"
        else:
            sent.append(one)
    refused = work.catalog.change([one.change for one in sent if one.change is not None])
    for one in sent:
        one.outcome.fault = refused.get(one.values, "")
        if not one.outcome.fault:
            one.outcome.switched = True
            _note(one, one.switch, one.location, work)
