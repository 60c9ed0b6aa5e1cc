"""Reconcile: register by LIST what no event told of.

Events get lost: notifications that were switched off for an hour, messages that outlived their
queue, objects from before the first notification. What LIST shows, and neither a commit log nor the
table knows, is registered as if its event had come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, groupby, islice

from compactor.discovery.parallel import Parallel
from compactor.discovery.work import blaming
from compactor.log.log import CommitLog
from compactor.model import Partition, SourceObject
from compactor.outputs.detection import decided_by
from compactor.planning.plan import key_rules
from compactor.ports import ObjectStore
from compactor.registry.items import Item
from compactor.registry.streams import PartitionScheme, identity_of
from compactor.runs.earlier import RegistryAt, open_pending, registry_at
from compactor.settings.settings import Settings
from compactor.settings.windows import matches

#: The event of a younger object may still be on its way.
GRACE_SECONDS = 900.0
_REGISTERED_AT_ONCE = 1_000


@dataclass(slots=True)
class Reconciled:
    """What was found.

    Attributes:
        objects: that LIST shows, of partitions.
        compacted: of these, that a commit names, or that were left alone for good.
        known: that the table has.
        registered: that no event had told of.
        younger: left for the next time.
        complete: False where time ran out.
    """

    objects: int = 0
    compacted: int = 0
    known: int = 0
    registered: int = 0
    younger: int = 0
    complete: bool = True

    def add(self, other: Reconciled) -> None:
        """Add up."""
        self.objects += other.objects
        self.compacted += other.compacted
        self.known += other.known
        self.registered += other.registered
        self.younger += other.younger
        self.complete = self.complete and other.complete


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """Everything that is needed.

    Attributes:
        settings: of a run of the stream.
        store: where the objects are; called from several threads at once.
        now: UNIX seconds.
        at: finds the table of a name.
        workers: threads, each with one request at a time.
        stop: true when time runs out.
        grace_seconds: younger objects are left for the next time.
    """

    settings: Settings
    store: ObjectStore
    now: float
    at: RegistryAt = registry_at
    workers: int = 16
    stop: Callable[[], bool] = lambda: False
    grace_seconds: float = GRACE_SECONDS


def reconcile(given: Reconciliation) -> Reconciled:
    """Register what LIST shows, and nobody knows. Safe to run again, and beside runs.

    Raises:
        InvalidInput: a bucket may not be read, or the stream is that of another source.
        IntegrityError: a commit log is not what it was.
        TransientStoreError: the store or the table did not answer.
    """
    listing = open_pending(given.settings, given.now, given.at)
    listing.registry.claim(identity_of(given.settings), given.now)
    total = Reconciled()
    with Parallel(given.workers) as parallel:
        for found in parallel.in_order(partial(_below, given), _prefixes(given)):
            total.add(found)
    return total


def _prefixes(given: Reconciliation) -> Iterator[str]:
    """The prefixes one level below the source; itself where that is one partition."""
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


def _below(given: Reconciliation, prefix: str) -> Reconciled:
    """What is below a prefix, partition by partition: their keys lie together."""
    scheme = PartitionScheme(given.settings)
    bucket = given.settings.source.root.bucket
    pages = given.store.list_objects(bucket, prefix)
    objects = chain.from_iterable(pages)
    total = Reconciled()
    for partition, found in groupby(objects, key=lambda one: scheme.partition(bucket, one.key)):
        if given.stop():
            total.complete = False
            return total
        if partition is not None:
            total.add(_OfPartition(given, partition).reconcile(found))
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
        self._committed = state.committed
        self._left = state.left_alone(decided_by(settings))
        self._rules = key_rules(settings, partition)
        self._listing = open_pending(settings, given.now, given.at)

    def reconcile(self, objects: Iterable[SourceObject]) -> Reconciled:
        found = self._found
        unknown = (self._item(one) for one in objects if self._is_of_interest(one))
        while items := list(islice(unknown, _REGISTERED_AT_ONCE)):
            registered = self._listing.registry.register(self._listing.stream, items)
            for _, error in registered.failed:
                raise error
            found.known += registered.known
            found.registered += len(registered.new)
            self._wake(items, registered.new)
        return found

    def _is_of_interest(self, one: SourceObject) -> bool:
        found = self._found
        found.objects += 1
        if one.identity in self._committed or one.identity in self._left:
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

    def _wake(self, items: Sequence[Item], new: Sequence[Item]) -> None:
        """Also for what was known: whoever registered it may have died before doing so."""
        registry, stream = self._listing.registry, self._listing.stream
        registry.touch(stream, self._partition.path, max(one.time for one in items))
        if new:
            registry.arrived(stream, len(new), sum(one.size for one in new))
