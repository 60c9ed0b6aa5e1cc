"""What is asked of a worker, and what it answers; both fit into a message between processes."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Self

import msgspec

from compactor.cleaning import clean_up_receipts
from compactor.cleaning.clean_partition import CleanUpRun, record_clean_up
from compactor.cleaning.clean_up_receipts import CleanUpReceipt
from compactor.discovery.work_items import WorkItem
from compactor.layout import partition_at
from compactor.log.process_cache import SeenState
from compactor.model import Partition
from compactor.planning.partition_listing import EarlierListing
from compactor.ports import Clock, Deadline, ObjectStore
from compactor.runs.partition_receipts import Counts, Receipt
from compactor.runs.prior_listing import RegistryAt, open_earlier, registry_at
from compactor.runs.run_partition import PartitionRun, record_partition
from compactor.settings.settings import Settings

DONE, MORE, FAILED = "done", "more", "failed"


class Task(StrEnum):
    """What is to be done with a partition."""

    COMPACT = "compact"
    CLEAN_UP = "clean_up"


class Order(msgspec.Struct, frozen=True):
    """One call of a worker.

    Attributes:
        before: counts of the run's earlier calls for the partition; clean-up reads its own.
    """

    task: Task
    path: str
    bucket: str
    prefix: str
    before: Counts = msgspec.field(default_factory=Counts)

    @classmethod
    def to_compact(cls, item: WorkItem, before: Counts) -> Self:
        """Compact the partition of a work item."""
        return cls(Task.COMPACT, item.path, item.bucket, item.prefix, before)

    @classmethod
    def to_clean_up(cls, path: str, settings: Settings) -> Self:
        """Clean up the partition with this path."""
        partition = partition_at(settings, path)
        return cls(Task.CLEAN_UP, path, partition.bucket, partition.prefix)

    @property
    def partition(self) -> Partition:
        """The partition it is about."""
        return Partition(self.bucket, self.prefix, self.path)

    def following(self, answer: Answer) -> Order:
        """The next call for the partition."""
        counts = answer.compacted.counts if answer.compacted else self.before
        return msgspec.structs.replace(self, before=counts)


class Answer(msgspec.Struct, frozen=True):
    """How a call ended.

    Attributes:
        status: ``done``, ``more`` (time ran out) or ``failed``.
        error, cause: class name and text of what ended a failed call.
        compacted: the receipt of a call that compacted, unless it failed.
        cleaned: the receipt of a call that cleaned up, unless it failed.
        cleaned_before: what that receipt said before the call.
    """

    status: str
    error: str = ""
    cause: str = ""
    compacted: Receipt | None = None
    cleaned: CleanUpReceipt | None = None
    cleaned_before: CleanUpReceipt | None = None

    @classmethod
    def of(cls, error: BaseException) -> Self:
        """The answer of a call that ended so."""
        return cls(FAILED, type(error).__name__, str(error))


@dataclass(frozen=True)
class Desk:
    """Where orders are carried out, one at a time: what a process has at hand for them.

    Attributes:
        seen: what the orders before have shown of the state.
        at: finds the table of what events named.
    """

    settings: Settings
    store: ObjectStore
    clock: Clock
    run_id: str
    seen: SeenState = field(default_factory=SeenState)
    at: RegistryAt = registry_at

    @cached_property
    def _inventory(self) -> EarlierListing | None:
        """What discovery took from an inventory, for all orders of this process."""
        return self._open()

    @property
    def listing(self) -> EarlierListing | None:
        """What an order takes its objects from; None for LIST."""
        return self._open() if self.settings.listing_kind == "events" else self._inventory

    def _open(self) -> EarlierListing | None:
        return open_earlier(self.settings, self.run_id, self.store, self.clock.now(), self.at)

    def carry_out(self, order: Order, deadline: Deadline) -> Answer:
        """Do what is asked as far as time allows, and leave a receipt on S3.

        Raises:
            Exception: whatever ended it, after the receipt says so.
        """
        if order.task is Task.COMPACT:
            return self._compact(order, deadline)
        return self._clean_up(order, deadline)

    def _compact(self, order: Order, deadline: Deadline) -> Answer:
        run = PartitionRun(
            partition=order.partition,
            settings=self.settings,
            store=self.store,
            clock=self.clock,
            deadline=deadline,
            run_id=self.run_id,
            seen=self.seen,
            listing=self.listing,
        )
        # The verb adds to the counts it is given.
        before = msgspec.convert(msgspec.to_builtins(order.before), Counts)
        receipt = record_partition(run, before)
        return Answer(receipt.status, compacted=receipt)

    def _clean_up(self, order: Order, deadline: Deadline) -> Answer:
        run = CleanUpRun(
            path=order.path,
            settings=self.settings,
            store=self.store,
            clock=self.clock,
            deadline=deadline,
            run_id=self.run_id,
            seen=self.seen,
        )
        # From S3, because a call that failed half way answered nothing.
        before = clean_up_receipts.earlier(self.settings, self.run_id, run.partition, self.store)
        receipt = record_clean_up(run, before)
        return Answer(receipt.status, cleaned=receipt, cleaned_before=before)
