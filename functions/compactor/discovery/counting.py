"""How much one partition holds, no further than it takes to know that it is oversized.

A partition is listed once. What its commits name does not count towards what one worker may take,
but its log is read only when it holds more than that; so the identities of what was counted are
kept where there is a log at all. A count can stop between two pages;
it resumes after the last key.
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
from compactor.planning.surroundings import Surroundings
from compactor.ports import ObjectStore, SummedPage
from compactor.settings.object_rules import ObjectRules
from compactor.settings.settings import Settings

#: Gives the identities of the sources that a partition's commits name.
Committed = Callable[[Partition], Container[bytes]]

# Only of partitions with more objects it is asked whether they have a log: those with fewer would
# cost a LIST more each, and these are kept as they were listed meanwhile.
_KEPT_OBJECTS = 16_000
_IDENTITY_BYTES = 16


class Tally(msgspec.Struct, omit_defaults=True):
    """How far a partition is counted, and what that gave.

    Attributes:
        objects: counted so far; with ``against_log`` only those that no commit names.
        size: their bytes.
        seconds: that one worker would take for them.
        after: the last key listed; a count that was stopped resumes after it.
        complete: nothing is left to be counted.
        oversized: more than one worker may take.
        against_log: the partition's log is read before its objects are listed.
        alone: no partition at all, for its keys would be too long; its objects are left alone.
        lost: sources in levels below the partition that name a column.
        examples: keys of what is left alone.
        resting: the partition, where it was found at rest.
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
        """Something of it was counted."""
        return self.complete or bool(self.after) or self.against_log

    def work_item(self, partition: Partition) -> WorkItem | None:
        """What is to be done about the partition; None when it is empty, or at rest.

        Even a partition with every object committed is a work item until a worker has seen that
        no commit waits for its output.
        """
        if self.alone or self.resting.partitions or not (self.objects or self.against_log):
            return None
        return WorkItem(partition.path, partition.bucket, partition.prefix, self.objects, self.size)


class Count:
    """Counts partitions, each call one; thread safe.

    Args:
        settings: of the run.
        store: where the objects are.
        committed: asked of partitions that hold more than one worker may take.
        fleet: the workers.
        stop: true when a count is to stop between two pages.
        around: of the source's bucket; by default nothing is known of it yet.
        rests: knows which partitions are at rest; None where none can be.
        now: UNIX seconds, for quiet hours; None where they are not needed.
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
        now: float | None = None,
    ) -> None:
        self.settings = settings
        self._now = now
        self.store = store
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
        reason = self._rule_against(partition)
        if reason is not None:
            return partition, self._left_by_rule(partition, tally, reason)
        counting = _Counting(self, partition, tally)
        while not counting.count():
            counting = _Counting(self, partition, Tally(against_log=True))
        if counting.tally.complete:
            counting.tally.resting = counting.resting()
            # Rows are written by Spark alone, however few they are.
            counting.tally.oversized |= self.settings.columnar or self.is_oversized(counting.tally)
        return partition, counting.tally

    def _rule_against(self, partition: Partition) -> SkipReason | None:
        """Why nothing of a partition may be taken; None where some of it may."""
        # With events the worker looks, which notes what becomes of what is pending.
        owner = None if self.settings.listing_kind == "events" else self._above(partition.prefix)
        if owner is not None or not self.settings.policies:
            return owner
        one = ObjectRules(self.settings.rules, partition.bucket, partition.prefix).one
        if one is None:
            return None
        if one.rule.leave:
            return SkipReason.RULE
        return SkipReason.QUIET if self._now is not None and one.is_quiet(self._now) else None

    def _left_by_rule(self, partition: Partition, tally: Tally, reason: SkipReason) -> Tally:
        """Counted, and no work for anybody."""
        tally = _LeftAlone(self, partition, tally).count()
        tally.alone = False
        if tally.complete and tally.objects:
            left = Skipped(tally.objects, tally.size, tally.examples)
            tally.resting = Resting(1, tally.objects, tally.size, {reason.value: left})
        return tally

    def is_oversized(self, tally: Tally) -> bool:
        """More than one worker may take."""
        too_many = tally.objects > self.settings.limits.lambda_max_objects
        return too_many or tally.seconds > self.settings.lambda_max_seconds


class _LeftAlone:
    """Sums up what lies where outputs or commits would have keys that S3 does not take."""

    def __init__(self, count: Count, partition: Partition, tally: Tally) -> None:
        self._count = count
        self._partition = partition
        self._tally = tally

    def count(self) -> Tally:
        tally, partition = self._tally, self._partition
        tally.alone = True
        skipped = Skipped(tally.objects, tally.size, tally.examples)
        with blaming("s3_source_uri", self._count.settings):
            for page in self._count.store.list_objects(
                partition.bucket, partition.prefix, start_after=tally.after
            ):
                skipped = skipped.plus(skipped_of(page), SHOWN_EXAMPLES)
                tally.after = page[-1].key if page else tally.after
                # After the last key comes an empty page; then nothing is left.
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
        # What an earlier invocation counted is known by its sum alone.
        self._seen = _Seen(partial(_has_log, count, partition), forgotten=bool(tally.after))
        # So is what it listed: a count that was resumed never confirms that a partition is at rest.
        rests = None if tally.after else count.rests
        self._record = rests.record(partition) if rests else None
        self._listed = Fingerprint() if self._record else None
        self.tally = tally

    def count(self) -> bool:
        """List on, as far as it takes; false when the count must restart, against the log."""
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
                    # After the last key comes an empty page; then nothing is left.
                    if page and self._count.stop():
                        return True
        except TransientStoreError:
            # What was counted so far is not lost for the last page that the time was too short for.
            if not self._count.stop():
                raise
            return True
        self.tally.complete = True
        return True

    def _pages(self) -> Iterator[Sequence[SourceObject]]:
        tally, partition = self.tally, self._partition
        return self._count.store.list_objects(
            partition.bucket, partition.prefix, start_after=tally.after
        )

    def resting(self) -> Resting:
        """The partition, where all of it was counted here, and it is at rest."""
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
        size = _size(counted)
        tally.lost = tally.lost.plus(self._in_named_levels(page, counted))
        tally.objects += len(counted)
        tally.size += size
        if counted:
            # Neighbours are of a kind, nearly always; it is an estimate.
            speed = speed_for(counted[0].key).on(self._count.processors)
            tally.seconds += speed.seconds(len(counted), size)
        tally.after = page[-1].key

    def _in_named_levels(
        self, page: Sequence[SourceObject], counted: Sequence[SourceObject]
    ) -> NamedLevels:
        below = len(self._partition.prefix)
        if isinstance(page, SummedPage) and not any(
            p.find("=", below) >= 0 for p in page.parents()
        ):
            return NamedLevels()
        return in_named_levels(self._count.settings, self._partition, counted)

    def _counts_fresh(self) -> bool:
        """Take what commits name out of the count; false when it is not known any more."""
        if self._known is not None:
            return True
        tally, known = self.tally, self._count.committed(self._partition)
        if isinstance(known, Sized) and not len(known):
            # What may come into the log meanwhile is for the partition's worker to see.
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
    """What was counted, for the case that the log is to be asked about it."""

    def __init__(self, has_log: Callable[[], bool], *, forgotten: bool) -> None:
        self._has_log = has_log
        self._logged: bool | None = False if forgotten else None
        self._pages: list[Sequence[SourceObject]] = []
        self._objects = 0
        self._identities = bytearray()
        self._sizes = array("Q")

    def add(self, page: Sequence[SourceObject]) -> None:
        """One more page; kept in full, then as identities and sizes, or, without a log, not."""
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
        """How many of them are not known, and their bytes; None where they were not kept."""
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


def _size(page: Sequence[SourceObject]) -> int:
    if isinstance(page, SummedPage):
        return page.total_size()
    return sum(one.size for one in page)
