"""What one run over one partition needs, what it did, and the time and tries that it has left."""

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
from compactor.planning.dialects import Dialects
from compactor.planning.partition_listing import EarlierListing
from compactor.ports import Clock, Deadline, ObjectStore
from compactor.runs.resume_point import BEGIN, Own, Place
from compactor.settings.settings import Settings

if TYPE_CHECKING:
    from compactor.readers.reader_catalog import ReaderCatalog


class PartitionResult(msgspec.Struct):
    """What one call did.

    Attributes:
        done: False when time ran out with work left: call again.
        skipped: what was left alone, by reason, but for what this run itself did before.
        conflicts: groups given up because another run committed their sources first.
        changed: groups given up because a source changed while it was read.
        repaired: commits of earlier runs that this one published or replaced, and outputs whose
            copied parts were wrong.
        unread: sources that are left alone for this run alone, by identity.
        marked: registered objects of which it was noted that a commit names them.
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
        """Count what was left alone."""
        if more.objects:
            self.skipped[reason] = self.skipped.get(reason, Skipped(0, 0)).plus(more)

    def leave_out(self, own: Own) -> None:
        """Count no source as skipped that earlier calls of this very run dealt with."""
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
    """What a call is paid for beside its requests; nothing outside Lambda.

    Attributes:
        memory_gb: of the function.
        share: of the invocation that is this partition's.
    """

    memory_gb: float = 0.0
    share: float = 0.0


NOT_LAMBDA = Paid()


@dataclass(frozen=True, slots=True)
class PartitionRun:
    """Everything one partition's run needs.

    Attributes:
        reserve_seconds: with less than this left, or less than the longest group took, no
            new group is started.
        on_group: called after each published group.
        seen: what the partitions before, in this very process, have shown of the state.
        listing: what was listed before, until a source shows that it is out of date; None to ask
            the store.
        place: how far earlier calls of this run came.
        readers: the catalog of the table that query engines read, where the settings name one.
        paid: what the call costs beside its requests.
        dialects: what the partitions before found decided of CSV sources.
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
    listing: EarlierListing | None = None
    place: Place = BEGIN
    readers: Callable[[str], ReaderCatalog] = open_readers
    paid: Paid = NOT_LAMBDA
    dialects: Dialects | None = None

    @property
    def listed_at(self) -> float:
        """When it became known which objects there are, UNIX seconds: ages count from then."""
        return self.clock.now() if self.listing is None else self.listing.as_of

    @property
    def log(self) -> CommitLog:
        """The partition's commit log."""
        return CommitLog(self.store, self.settings, self.partition, self.seen)

    @property
    def destination(self) -> Destination:
        """Where this partition's outputs go."""
        bucket, prefix = layout.output_prefix(self.settings, self.partition)
        return Destination(bucket, prefix)


# A source may change while it is read, or another run may be first; then plan again.
MAX_REPLANS = 20


class Attempts:
    """The time and the tries that a call has left.

    Args:
        run: whose deadline counts.
    """

    def __init__(self, run: PartitionRun) -> None:
        self._run = run
        self._longest_seconds = 0.0
        self._is_cut_short = False
        self._setbacks = 0

    def out_of_time(self) -> bool:
        """True when no further group should be started."""
        if self._is_cut_short:
            return True
        needed = self._run.reserve_seconds + 1.5 * self._longest_seconds
        return self._run.deadline.remaining_seconds() < needed

    def cut_short(self) -> None:
        """Start no further group: the last one did not fit the time."""
        self._is_cut_short = True

    def took(self, seconds: float) -> None:
        """Note how long a group took from its first GET to its publication."""
        self._longest_seconds = max(self._longest_seconds, seconds)

    def published(self) -> None:
        """A group was published: earlier setbacks no longer count."""
        self._setbacks = 0

    def set_back(self, error: Exception) -> None:
        """Count a plan that came to nothing.

        Raises:
            TransientStoreError: too many did since the last group was published.
        """
        self._setbacks += 1
        if self._setbacks > MAX_REPLANS:
            raise TransientStoreError(f"planned {MAX_REPLANS} times, last: {error}") from error
