"""Reconcile: registers objects that no event named, found by LIST.

Events get lost: notifications were switched off for an hour, messages exceeded the queue's
retention, or objects existed before the first notification. A listed object that is neither in a
commit log nor in the registry is registered as if its event had arrived.

The source is compared in key order. A call that has to stop returns the key after which the next
call resumes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, groupby, islice

from compactor.discovery.location_checks import blaming
from compactor.discovery.parallel import Parallel
from compactor.log.log import CommitLog
from compactor.model import Partition, SourceObject
from compactor.outputs.detection import decided_by
from compactor.partition.events import RegistryAt, open_pending, registry_at
from compactor.planning.key_rules import KeyRules
from compactor.ports import ObjectStore
from compactor.registry.items import Item
from compactor.registry.streams import PartitionScheme, identity_of
from compactor.settings.settings import Settings
from compactor.settings.windows import matches

#: The event of a younger object may still be in flight.
GRACE_SECONDS = 900.0
# Objects of a partition to compare between two checks of the time.
_BATCH = 1_000


@dataclass(slots=True)
class Reconciled:
    """What a reconciliation found.

    Attributes:
        objects: listed objects that belong to a partition.
        compacted: those whose key a commit names, or that were left alone for good.
        known: those already in the registry.
        registered: those that no event had named, now registered.
        younger: those too young, left for the next reconciliation.
        complete: False if the call had to stop.
        start_after: the key after which the next call resumes; empty if this one is complete.
    """

    objects: int = 0
    compacted: int = 0
    known: int = 0
    registered: int = 0
    younger: int = 0
    complete: bool = True
    start_after: str = ""

    def add(self, other: Reconciled) -> None:
        """Add the counts of a later part of the source.

        After an incomplete part only ``registered`` is added: the next call compares the later
        parts again, and then finds these objects in the registry.
        """
        self.registered += other.registered
        if not self.complete:
            return
        self.objects += other.objects
        self.compacted += other.compacted
        self.known += other.known
        self.younger += other.younger
        self.complete = other.complete
        self.start_after = other.start_after or self.start_after


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """The input of one reconciliation.

    Attributes:
        settings: the settings of a run of the stream.
        store: the store of the objects; called from several threads concurrently.
        now: UNIX seconds.
        at: returns the registry in the table of a name.
        workers: number of threads, each with one request at a time.
        stop: returns True when time runs out; ignored until something has been compared.
        grace_seconds: younger objects are left for the next reconciliation.
        start_after: compare only keys after this one.
        on_compared: called by any thread with the number of objects just compared.
    """

    settings: Settings
    store: ObjectStore
    now: float
    at: RegistryAt = registry_at
    workers: int = 16
    stop: Callable[[], bool] = lambda: False
    grace_seconds: float = GRACE_SECONDS
    start_after: str = ""
    on_compared: Callable[[int], None] = lambda count: None


class _Time:
    """The time of a call, which does not run out before something has been compared."""

    def __init__(self, given: Reconciliation) -> None:
        self._given = given
        self._compared = False

    def is_up(self) -> bool:
        return self._compared and self._given.stop()

    def compared(self, count: int) -> None:
        self._compared = True
        self._given.on_compared(count)


def reconcile(given: Reconciliation) -> Reconciled:
    """Register listed objects that are not known. Idempotent, and safe alongside runs.

    Raises:
        InvalidInput: a bucket cannot be read, or the stream belongs to another source.
        IntegrityError: a commit log is damaged.
        TransientStoreError: the store or the registry did not answer.
    """
    time = _Time(given)
    given = replace(given, stop=time.is_up, on_compared=time.compared)
    listing = open_pending(given.settings, given.now, given.at)
    listing.registry.claim(identity_of(given.settings), given.now)
    total = Reconciled(start_after=given.start_after)
    with Parallel(given.workers) as parallel:
        for found in parallel.in_order(partial(_below, given), _units(given)):
            total.add(found)
    if total.complete:
        total.start_after = ""
    return total


def _units(given: Reconciliation) -> Iterator[str | None]:
    """Yield prefixes in key order, then None if time ran out before the last one."""
    for prefix in _prefixes(given):
        if prefix <= given.start_after and not given.start_after.startswith(prefix):
            continue
        if given.stop():
            yield None
            return
        yield prefix


def _prefixes(given: Reconciliation) -> Iterator[str]:
    """Yield the prefixes one level below the source, or the source's if it is one partition."""
    source = given.settings.source
    if not PartitionScheme(given.settings).levels:
        yield source.root.prefix
        return
    with blaming("s3_source_uri", given.settings):
        for page in given.store.list_level(source.root.bucket, source.root.prefix):
            for prefix in page.prefixes:
                level = prefix[len(source.root.prefix) : -1]
                if not source.pattern or matches(source.pattern[0], level):
                    yield prefix


def _below(given: Reconciliation, prefix: str | None) -> Reconciled:
    """Reconcile the partitions below a prefix, one after the other; their keys are contiguous."""
    total = Reconciled()
    if prefix is None or given.stop():
        total.complete = False
        return total
    scheme = PartitionScheme(given.settings)
    bucket = given.settings.source.root.bucket
    after = given.start_after if given.start_after.startswith(prefix) else ""
    pages = given.store.list_objects(bucket, prefix, start_after=after)
    objects = chain.from_iterable(pages)
    for partition, found in groupby(objects, key=lambda one: scheme.partition(bucket, one.key)):
        if given.stop():
            total.complete = False
        elif partition is not None:
            total.add(_OfPartition(given, partition).reconcile(found))
        else:
            total.start_after = deque(found, maxlen=1).pop().key
        if not total.complete:
            return total
    return total


class _OfPartition:
    """Reconciles one partition."""

    def __init__(self, given: Reconciliation, partition: Partition) -> None:
        self._given = given
        self._partition = partition
        self._found = Reconciled()
        settings = given.settings
        # Loaded before the objects are listed: objects committed in between are registered
        # needlessly, but none is missed.
        state = CommitLog(given.store, settings, partition).load()
        self._committed = state.committed
        self._left = state.left_alone(decided_by(settings))
        self._rules = KeyRules(settings)
        self._listing = open_pending(settings, given.now, given.at)

    def reconcile(self, objects: Iterator[SourceObject]) -> Reconciled:
        found = self._found
        while some := list(islice(objects, _BATCH)):
            self._register([self._item(one) for one in some if self._is_of_interest(one)])
            found.start_after = some[-1].key
            self._given.on_compared(len(some))
            if len(some) == _BATCH and self._given.stop():
                found.complete = False
                break
        return found

    def _register(self, items: Sequence[Item]) -> None:
        if not items:
            return
        registered = self._listing.registry.register(self._listing.stream, items)
        for _, error in registered.failed:
            raise error
        self._found.known += registered.known
        self._found.registered += len(registered.new)
        # Known objects need it, too: a crash may have prevented it after their registration.
        newest = max(one.time for one in items)
        self._listing.registry.touch(self._listing.stream, self._partition.path, newest)

    def _is_of_interest(self, one: SourceObject) -> bool:
        found = self._found
        found.objects += 1
        # What was put over a compacted object is left alone, too.
        if self._committed.has_key_of(one.identity) or one.identity in self._left:
            found.compacted += 1
            return False
        if one.last_modified > self._given.now - self._given.grace_seconds:
            found.younger += 1
            return False
        return self._rules(one) is None

    def _item(self, one: SourceObject) -> Item:
        name = one.key[len(self._partition.prefix) :]
        return Item(
            self._partition,
            name,
            one.etag,
            one.size,
            one.last_modified,
            registered=self._given.now,
        )
