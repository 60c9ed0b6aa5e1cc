"""Reconcile: register by LIST, or by an inventory, what no event named.

Events get lost: notifications that were switched off for an hour, messages that outlived their
queue, objects from before the first notification. What is listed, and neither a commit log nor the
table knows, is registered as if its event had come.

The source is gone through in the order of its keys. A call that has to stop says after which
key the next one goes on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, groupby, islice
from typing import cast

from compactor.discovery.parallel import Parallel
from compactor.discovery.work_items import blaming
from compactor.inventory.inventory_listing import InventoriedStore, InventoryListing
from compactor.log.log import CommitLog
from compactor.model import Partition, SourceObject
from compactor.outputs.detection import decided_by
from compactor.planning.dialects import Dialects
from compactor.planning.key_rules import KeyRules
from compactor.ports import ObjectStore
from compactor.registry.items import Item
from compactor.registry.streams import PartitionScheme, identity_of
from compactor.runs.prior_listing import RegistryAt, open_pending, registry_at
from compactor.settings.settings import Settings
from compactor.settings.windows import matches

#: The event of a younger object may still be on its way.
GRACE_SECONDS = 900.0
# Objects of a partition between two looks at the time.
_BATCH = 1_000


@dataclass(slots=True)
class Reconciled:
    """What was found.

    Attributes:
        objects: that are listed, of partitions.
        compacted: of these, that a commit names and that were not put again after the newest one,
            or that were left alone for good.
        known: that the table has.
        registered: that no event had named.
        younger: left for the next time.
        complete: False where the call had to stop.
        start_after: the key after which the next call resumes; empty where this one came to the
            end.
    """

    objects: int = 0
    compacted: int = 0
    known: int = 0
    registered: int = 0
    younger: int = 0
    complete: bool = True
    start_after: str = ""

    def add(self, other: Reconciled) -> None:
        """Add up.

        What lies after a place that was not done is done again; it is registered by then.
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
    """Everything that is needed.

    Attributes:
        settings: of a run of the stream.
        store: where the objects are; called from several threads concurrently.
        now: UNIX seconds.
        at: finds the table of a name.
        workers: threads, each with one request at a time.
        stop: true when time runs out; something is compared in any case.
        grace_seconds: younger objects are left for the next time.
        start_after: only keys after this one.
        inventory: lists the source; None for LIST.
        on_compared: called with how many objects more were compared, by any thread.
    """

    settings: Settings
    store: ObjectStore
    now: float
    at: RegistryAt = registry_at
    workers: int = 16
    stop: Callable[[], bool] = lambda: False
    grace_seconds: float = GRACE_SECONDS
    start_after: str = ""
    inventory: InventoryListing | None = None
    on_compared: Callable[[int], None] = lambda count: None

    @property
    def lists(self) -> ObjectStore:
        """What lists the objects."""
        if self.inventory is None:
            return self.store
        return cast(ObjectStore, InventoriedStore(self.store, self.inventory))


class _Time:
    """Runs out when a call has to stop, but not before something is compared."""

    def __init__(self, given: Reconciliation) -> None:
        self._given = given
        self._compared = False

    def is_up(self) -> bool:
        return self._compared and self._given.stop()

    def compared(self, count: int) -> None:
        self._compared = True
        self._given.on_compared(count)


def reconcile(given: Reconciliation) -> Reconciled:
    """Register what is listed, and not known. Safe to run again, and beside runs.

    Raises:
        InvalidInput: a bucket may not be read, or the stream is that of another source.
        IntegrityError: a commit log, or a page of the inventory, is not what it was.
        TransientStoreError: the store or the table did not answer.
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
    """Prefixes in the order of keys, and None where they are not gone through to the end."""
    for prefix in _prefixes(given):
        if prefix <= given.start_after and not given.start_after.startswith(prefix):
            continue
        if given.stop():
            yield None
            return
        yield prefix


def _prefixes(given: Reconciliation) -> Iterator[str]:
    """The prefixes one level below the source; itself where that is one partition."""
    source = given.settings.source
    if not PartitionScheme(given.settings).levels:
        yield source.root.prefix
        return
    with blaming("s3_source_uri", given.settings):
        for page in given.lists.list_level(source.root.bucket, source.root.prefix):
            for prefix in page.prefixes:
                level = prefix[len(source.root.prefix) : -1]
                if not source.pattern or matches(source.pattern[0], level):
                    yield prefix


def _below(given: Reconciliation, prefix: str | None) -> Reconciled:
    """What is below a prefix, partition by partition: their keys lie together."""
    total = Reconciled()
    if prefix is None or given.stop():
        total.complete = False
        return total
    scheme = PartitionScheme(given.settings)
    bucket = given.settings.source.root.bucket
    after = given.start_after if given.start_after.startswith(prefix) else ""
    pages = given.lists.list_objects(bucket, prefix, start_after=after)
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
        # Read before the objects are: what is committed meanwhile is only registered in vain.
        state = CommitLog(given.store, settings, partition).load()
        self._committed, self._written_at = state.committed, state.written_at
        version = partial(Dialects(settings, given.store).version, partition.prefix)
        self._left = state.left_alone(decided_by(settings), version)
        self._rules = KeyRules(settings, partition)
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
        self._wake(items, registered.new)

    def _is_of_interest(self, one: SourceObject) -> bool:
        found = self._found
        found.objects += 1
        if self._is_compacted(one) or one.identity in self._left:
            found.compacted += 1
            return False
        if one.last_modified > self._given.now - self._given.grace_seconds:
            found.younger += 1
            return False
        return self._rules(one) is None

    def _is_compacted(self, one: SourceObject) -> bool:
        """Whether it is in an output; what was put again since is a run's to look at."""
        return one.identity in self._committed and one.last_modified <= self._written_at

    def _item(self, one: SourceObject) -> Item:
        name = one.key[len(self._partition.prefix) :]
        return Item(
            self._partition,
            name,
            one.etag,
            one.size,
            one.last_modified,
            registered=self._given.now,
            past=self._given.inventory is not None,
        )

    def _wake(self, items: Sequence[Item], new: Sequence[Item]) -> None:
        """Also for what was known: its registration may have died before doing so."""
        registry, stream = self._listing.registry, self._listing.stream
        registry.touch(stream, self._partition.path, max(one.time for one in items))
        if new:
            registry.arrived(stream, len(new), sum(one.size for one in new))
