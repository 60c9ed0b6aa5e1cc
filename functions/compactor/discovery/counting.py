"""Counts what one partition holds, until the end or until it is known to be oversized.

A partition is listed once. Committed sources do not count towards the limit of one worker, but the
log is only read once the limit is exceeded. Until then, the identities of the counted sources are
kept if there is a log at all. A count can stop between two pages, and resumes after the last key.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Container, Iterator, Sequence, Sized
from functools import partial

import msgspec

from compactor import layout
from compactor.discovery.fleet import Fleet
from compactor.discovery.location_checks import NamedLevels, in_named_levels
from compactor.discovery.search import skipped_of
from compactor.discovery.speed import speed_for
from compactor.discovery.work_items import WorkItem, blaming
from compactor.errors import TransientStoreError
from compactor.fingerprint import Fingerprint
from compactor.log.resting import NONE_AT_REST, Resting, Rests
from compactor.model import SHOWN_EXAMPLES, Partition, Skipped, SkipReason, SourceObject
from compactor.planning.partition_listing import Lists
from compactor.planning.surroundings import Surroundings
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings

#: Returns the identities of a partition's committed sources.
Committed = Callable[[Partition], Container[bytes]]

# Only for partitions with more objects, a LIST finds out whether there is a log. Up to this number,
# listed pages are kept as they are.
_KEPT_OBJECTS = 16_000
_IDENTITY_BYTES = 16


class Tally(msgspec.Struct, omit_defaults=True):
    """The count of a partition so far.

    Attributes:
        objects: objects counted; with ``against_log``, only those that no commit names.
        size: their bytes.
        seconds: time that one worker would take for them.
        after: the last key listed; a stopped count resumes after it.
        complete: the count has ended.
        oversized: the partition is for Spark.
        against_log: committed sources are not counted.
        alone: the prefix is not a partition, because keys of its outputs or commits would be too
            long. Its objects are left alone.
        lost: sources in levels below the partition that name a column.
        examples: keys of objects that are left alone.
        resting: the partition, if it is at rest.
    """

    objects: int = 0
    size: int = 0
    seconds: float = 0.0
    after: str = ""
    complete: bool = False
    oversized: bool = False
    against_log: bool = False
    alone: bool = False
    lost: NamedLevels = NamedLevels()
    examples: tuple[str, ...] = ()
    resting: Resting = NONE_AT_REST

    @property
    def begun(self) -> bool:
        """True if the count has begun."""
        return self.complete or bool(self.after) or self.against_log

    def work_item(self, partition: Partition) -> WorkItem | None:
        """Return the partition's work item; None if it is empty or at rest.

        A partition whose objects are all committed remains a work item until a worker has seen
        that all its commits are published.
        """
        if self.alone or self.resting.partitions or not (self.objects or self.against_log):
            return None
        return WorkItem(partition.path, partition.bucket, partition.prefix, self.objects, self.size)


class Count:
    """Counts one partition per call; thread safe.

    Args:
        settings: settings of the run.
        store: where the log and, by default, the objects are.
        committed: called for partitions that hold more than one worker may take.
        fleet: the workers.
        stop: returns True when counts are to stop between two pages.
        around: surroundings in the source's bucket; by default, nothing is known of them yet.
        rests: finds partitions at rest; None if there cannot be any.
        lists: lists the objects, if not the store.
    """

    def __init__(
        self,
        settings: Settings,
        store: ObjectStore,
        committed: Committed,
        fleet: Fleet,
        stop: Callable[[], bool] = lambda: False,
        *,
        around: Surroundings | None = None,
        rests: Rests | None = None,
        lists: Lists | None = None,
    ) -> None:
        self.settings = settings
        self.store = store
        self.lists = lists or store
        self.committed = committed
        self.processors = fleet.processors
        self.stop = stop
        self.rests = rests
        self._longest_path = layout.longest_path(settings)
        self._above = (around or Surroundings(store, settings.source.root.bucket)).above

    def __call__(self, asked: tuple[Partition, Tally | None]) -> tuple[Partition, Tally]:
        """Count a partition, or resume its count."""
        partition, tally = asked
        tally = tally or Tally()
        if tally.complete or self.stop():
            return partition, tally
        if len(partition.path.encode()) > self._longest_path:
            return partition, _LeftAlone(self, partition, tally).count()
        # With events, the worker finds the owner, because it must mark the pending objects.
        owner = None if self.settings.takes_events else self._above(partition.prefix)
        if owner is not None:
            return partition, self._owned(partition, tally, owner)
        counting = _Counting(self, partition, tally)
        while not counting.count():
            counting = _Counting(self, partition, Tally(against_log=True))
        if counting.tally.complete:
            counting.tally.resting = counting.resting()
            of_spark = self.settings.all_on_spark or self.is_oversized(counting.tally)
            counting.tally.oversized |= of_spark
        return partition, counting.tally

    def _owned(self, partition: Partition, tally: Tally, reason: SkipReason) -> Tally:
        """Count a partition that a table or registry owns, and so has no work item."""
        tally = _LeftAlone(self, partition, tally).count()
        tally.alone = False
        if tally.complete and tally.objects:
            left = Skipped(tally.objects, tally.size, tally.examples)
            tally.resting = Resting(1, tally.objects, tally.size, {reason.value: left})
        return tally

    def is_oversized(self, tally: Tally) -> bool:
        """Return True if a partition holds more than one worker may take."""
        settings = self.settings
        if settings.engine == "worker":
            return False
        too_many = tally.objects > settings.limits.lambda_max_objects
        return too_many or tally.seconds > settings.lambda_max_seconds


class _LeftAlone:
    """Sums up objects below a prefix whose outputs or commits would have too long keys for S3."""

    def __init__(self, count: Count, partition: Partition, tally: Tally) -> None:
        self._count = count
        self._partition = partition
        self._tally = tally

    def count(self) -> Tally:
        tally, partition = self._tally, self._partition
        tally.alone = True
        skipped = Skipped(tally.objects, tally.size, tally.examples)
        with blaming("s3_source_uri", self._count.settings):
            for page in self._count.lists.list_objects(
                partition.bucket, partition.prefix, start_after=tally.after
            ):
                skipped = skipped.plus(skipped_of(page), SHOWN_EXAMPLES)
                tally.after = page[-1].key if page else tally.after
                # An empty page comes after the last key: the count has ended anyway.
                if page and self._count.stop():
                    break
            else:
                tally.complete = True
        tally.objects, tally.size, tally.examples = skipped.objects, skipped.bytes, skipped.examples
        return tally


class _Counting:
    """The count of one partition."""

    def __init__(self, count: Count, partition: Partition, tally: Tally) -> None:
        self._count = count
        self._partition = partition
        self._known = count.committed(partition) if tally.against_log else None
        # Only the sums of what an earlier invocation counted are known.
        self._seen = _Seen(partial(_has_log, count, partition), forgotten=bool(tally.after))
        # A resumed count saw only a part of the listing, so it cannot confirm rest.
        rests = None if tally.after else count.rests
        self._record = rests.record(partition) if rests else None
        self._listed = Fingerprint() if self._record else None
        self.tally = tally

    def count(self) -> bool:
        """Continue the count; return False if it must restart against the log."""
        try:
            with blaming("s3_source_uri", self._count.settings):
                for page in self._pages():
                    self._add(page)
                    if self._count.is_oversized(self.tally):
                        if not self._counts_fresh():
                            return False
                        if self._count.is_oversized(self.tally):
                            self.tally.oversized = self.tally.complete = True
                            return True
                    # An empty page comes after the last key: the count has ended anyway.
                    if page and self._count.stop():
                        return True
        except TransientStoreError:
            # If time ran out during the last page, keep what was counted before it.
            if not self._count.stop():
                raise
            return True
        self.tally.complete = True
        return True

    def _pages(self) -> Iterator[Sequence[SourceObject]]:
        tally, partition = self.tally, self._partition
        return self._count.lists.list_objects(
            partition.bucket, partition.prefix, start_after=tally.after
        )

    def resting(self) -> Resting:
        """Return the partition if this call counted all of it and found it at rest."""
        rests, record, listed = self._count.rests, self._record, self._listed
        if rests is None or record is None or listed is None or self.tally.oversized:
            return NONE_AT_REST
        return rests.confirmed(record, self._partition, listed.seen) or NONE_AT_REST

    def _add(self, page: Sequence[SourceObject]) -> None:
        if not page:
            return
        tally = self.tally
        if self._listed is not None:
            self._listed.add(page)
        counted = page
        if self._known is None:
            self._seen.add(page)
        else:
            counted = [one for one in page if one.identity not in self._known]
        size = sum(one.size for one in counted)
        tally.lost = tally.lost.plus(
            in_named_levels(self._count.settings, self._partition, counted)
        )
        tally.objects += len(counted)
        tally.size += size
        if counted:
            # An estimate: neighbours nearly always have the same format.
            speed = speed_for(counted[0].key, self._count.settings).on(self._count.processors)
            tally.seconds += speed.seconds(len(counted), size)
        tally.after = page[-1].key

    def _counts_fresh(self) -> bool:
        """Remove committed sources from the count; return False if it must restart for that."""
        if self._known is not None:
            return True
        tally, known = self.tally, self._count.committed(self._partition)
        if isinstance(known, Sized) and not len(known):
            # Nothing is committed. The partition's worker will see any commit made meanwhile.
            self._known = known
            return True
        fresh = self._seen.fresh(known)
        if fresh is None:
            return False
        objects, size = fresh
        tally.seconds *= objects / tally.objects
        tally.objects, tally.size, tally.against_log = objects, size, True
        self._known = known
        return True


class _Seen:
    """Identities and sizes of what was counted, to be compared with the log if needed."""

    def __init__(self, has_log: Callable[[], bool], *, forgotten: bool) -> None:
        self._has_log = has_log
        self._logged: bool | None = False if forgotten else None
        self._pages: list[Sequence[SourceObject]] = []
        self._objects = 0
        self._identities = bytearray()
        self._sizes = array("Q")

    def add(self, page: Sequence[SourceObject]) -> None:
        """Add a page. The first are kept in full, later ones packed, and none without a log."""
        if self._logged is False:
            return
        self._pages.append(page)
        self._objects += len(page)
        if self._objects <= _KEPT_OBJECTS:
            return
        if self._logged is None:
            self._logged = self._has_log()
        if self._logged:
            self._pack()
        self._pages.clear()

    def fresh(self, known: Container[bytes]) -> tuple[int, int] | None:
        """Return the number and bytes of sources not in ``known``; None if they were not kept."""
        if self._logged is False:
            return None
        self._pack()
        objects = size = 0
        for number, one in enumerate(self._sizes):
            at = number * _IDENTITY_BYTES
            if bytes(self._identities[at : at + _IDENTITY_BYTES]) not in known:
                objects += 1
                size += one
        return objects, size

    def _pack(self) -> None:
        for page in self._pages:
            for one in page:
                self._identities += one.identity
                self._sizes.append(one.size)
        self._pages.clear()


def _has_log(count: Count, partition: Partition) -> bool:
    place = layout.commits_prefix(count.settings, partition)
    with blaming("s3_state_uri", count.settings):
        return any(count.store.list_objects(*place))
