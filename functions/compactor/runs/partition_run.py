"""The input and result of one partition's run, and the time and retries it has left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from compactor import layout
from compactor.catalogs.readers import open_readers
from compactor.destination import Destination
from compactor.errors import TransientStoreError
from compactor.log.entries import Commit
from compactor.log.log import CommitLog
from compactor.log.process_cache import SeenState
from compactor.model import Partition, Quarantined, Skipped, SkipReason
from compactor.ports import Clock, Deadline, ObjectStore
from compactor.registry.pending_listing import EventListing
from compactor.runs.resume_point import BEGIN, Own, Place
from compactor.settings.settings import Settings
from compactor.settings.tables import require_readable_key

if TYPE_CHECKING:
    from compactor.readers.reader_catalog import ReaderCatalog


class PartitionResult(msgspec.Struct):
    """What one call did.

    Attributes:
        done: False if time ran out with work left, so that another call is needed.
        skipped: sources left alone, by reason, without those that earlier calls of this run
            dealt with.
        conflicts: groups given up because another run committed their sources first.
        changed: groups given up because a source changed while it was read.
        repaired: commits of earlier runs that this one published or replaced, and outputs whose
            copied parts were wrong.
        unread: sources left alone in this run only, by identity.
        marked: registered objects marked as compacted.
    """

    done: bool = True
    groups: int = 0
    conflicts: int = 0
    changed: int = 0
    repaired: int = 0
    skipped: dict[SkipReason, Skipped] = msgspec.field(default_factory=dict)
    unread: dict[bytes, Quarantined] = msgspec.field(default_factory=dict)
    marked: int = 0

    def skip(self, reason: SkipReason, more: Skipped) -> None:
        """Add to the skipped sources of a reason."""
        if more.objects:
            self.skipped[reason] = self.skipped.get(reason, Skipped(0, 0)).plus(more)

    def leave_out(self, own: Own) -> None:
        """Subtract sources that earlier calls of this run dealt with from the skipped ones."""
        for reason, dealt_with in (
            (SkipReason.COMMITTED, own.committed),
            (SkipReason.COMMITTED, own.again),
            (SkipReason.QUARANTINED, own.quarantined),
        ):
            if reason in self.skipped:
                left = self.skipped.pop(reason).less(dealt_with)
                if left.objects > 0:
                    self.skipped[reason] = left


class Paid(msgspec.Struct, frozen=True):
    """What a call costs apart from its requests; nothing outside Lambda.

    Attributes:
        memory_gb: memory of the Lambda function.
        share: this partition's share of the invocation, 0 to 1.
    """

    memory_gb: float = 0.0
    share: float = 0.0


NOT_LAMBDA = Paid()


@dataclass(frozen=True, slots=True)
class PartitionRun:
    """The input of one partition's run.

    Attributes:
        reserve_seconds: no new group is started with less than this left, plus 1.5 times what
            the longest group took.
        on_group: called after each published group.
        seen: what earlier partitions in this process learned about the state.
        listing: the objects that events named, trusted until a source shows that it is out of
            date; None to list the store.
        place: how far earlier calls of this run came.
        readers: opens the catalog of the readers' table, if the settings name one.
        paid: what the call costs apart from its requests.
    """

    partition: Partition
    settings: Settings
    store: ObjectStore
    clock: Clock
    deadline: Deadline
    run_id: str
    reserve_seconds: float = 30.0
    on_group: Callable[[Commit], None] = lambda commit: None
    seen: SeenState = field(default_factory=SeenState)
    listing: EventListing | None = None
    place: Place = BEGIN
    readers: Callable[[str], ReaderCatalog] = open_readers
    paid: Paid = NOT_LAMBDA

    @property
    def listed_at(self) -> float:
        """When the objects were listed, in UNIX seconds; their ages are measured at this time."""
        return self.clock.now() if self.listing is None else self.listing.at

    @property
    def log(self) -> CommitLog:
        """The partition's commit log."""
        return CommitLog(self.store, self.settings, self.partition, self.seen)

    @property
    def destination(self) -> Destination:
        """Where this partition's outputs go.

        Raises:
            InvalidInput: readers of the run's table would not find outputs with such keys.
        """
        bucket, prefix = layout.output_prefix(self.settings, self.partition)
        table = self.settings.table_address
        if table is not None and not self.settings.upsert_key:
            require_readable_key(table, "s3_source_uri", prefix)
        return Destination(bucket, prefix)


# A group is planned again if a source changes while it is read, or another run commits first.
MAX_REPLANS = 20


class Attempts:
    """The time and retries that a call has left.

    Args:
        run: provides the deadline.
    """

    def __init__(self, run: PartitionRun) -> None:
        self._run = run
        self._longest_seconds = 0.0
        self._is_cut_short = False
        self._setbacks = 0

    def out_of_time(self) -> bool:
        """Return True if no further group should be started."""
        if self._is_cut_short:
            return True
        needed = self._run.reserve_seconds + 1.5 * self._longest_seconds
        return self._run.deadline.remaining_seconds() < needed

    def cut_short(self) -> None:
        """Start no further group, because the last one did not fit into the time left."""
        self._is_cut_short = True

    def took(self, seconds: float) -> None:
        """Record how many seconds a group took from its first GET to its publication."""
        self._longest_seconds = max(self._longest_seconds, seconds)

    def published(self) -> None:
        """Reset the count of setbacks, because a group was published."""
        self._setbacks = 0

    def set_back(self, error: Exception) -> None:
        """Count a plan that had to be abandoned.

        Raises:
            TransientStoreError: more than ``MAX_REPLANS`` were abandoned since the last published
                group.
        """
        self._setbacks += 1
        if self._setbacks > MAX_REPLANS:
            raise TransientStoreError(f"planned {MAX_REPLANS} times, last: {error}") from error
