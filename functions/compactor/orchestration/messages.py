"""Orders to a worker and its answers, both serializable for messages between processes."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

import msgspec

from compactor.cleaning import clean_up_receipts
from compactor.cleaning.clean_partition import CleanUpRun, record_clean_up
from compactor.cleaning.clean_up_receipts import CleanUpReceipt
from compactor.cleaning.due import CleanUpFacts
from compactor.log.identity import StateIdentity
from compactor.model import Partition
from compactor.partition.events import RegistryAt, event_listing, registry_at
from compactor.partition.inputs import PartitionRun
from compactor.partition.receipts import Counts, Receipt
from compactor.partition.run import compact_partition
from compactor.ports import Clock, Deadline, ObjectStore
from compactor.settings.settings import Settings

DONE, MORE, FAILED = "done", "more", "failed"


class Task(StrEnum):
    """What a worker does with a partition."""

    COMPACT = "compact"
    CLEAN_UP = "clean_up"


class Order(msgspec.Struct, frozen=True):
    """One call of a worker.

    Attributes:
        before: counts of the run's earlier calls for the partition; not used by clean-up, which
            reads its own receipt.
    """

    task: Task
    path: str
    bucket: str
    prefix: str
    before: Counts = msgspec.field(default_factory=Counts)

    @classmethod
    def to_compact(cls, partition: Partition, before: Counts) -> Self:
        """Return an order to compact a partition."""
        return cls(Task.COMPACT, partition.path, partition.bucket, partition.prefix, before)

    @classmethod
    def to_clean_up(cls, path: str, settings: Settings) -> Self:
        """Return an order to clean up the partition with this path."""
        partition = settings.partition_at(path)
        return cls(Task.CLEAN_UP, path, partition.bucket, partition.prefix)

    @property
    def partition(self) -> Partition:
        """The partition to work on."""
        return Partition(self.bucket, self.prefix, self.path)

    def following(self, answer: Answer) -> Order:
        """Return the order for the next call, given the answer to this one."""
        counts = answer.compacted.counts if answer.compacted else self.before
        return msgspec.structs.replace(self, before=counts)


class Answer(msgspec.Struct, frozen=True):
    """How a call ended.

    Attributes:
        status: ``done``, ``more`` (time ran out) or ``failed``.
        error, cause: class name and text of the error that ended a failed call.
        compacted: the receipt of a compaction call, unless it failed.
        cleaned: the receipt of a clean-up call, unless it failed.
        cleaned_before: the clean-up receipt as it was before the call.
    """

    status: str
    error: str = ""
    cause: str = ""
    compacted: Receipt | None = None
    cleaned: CleanUpReceipt | None = None
    cleaned_before: CleanUpReceipt | None = None

    @classmethod
    def of(cls, error: BaseException) -> Self:
        """Return the answer for a call that ended with this error."""
        return cls(FAILED, type(error).__name__, str(error))


@dataclass(frozen=True)
class Desk:
    """Carries out orders one at a time, with the store and caches of one process.

    Attributes:
        identity: that of the run's state; read at most once by default.
        facts: what earlier clean-ups of the run have found out.
        at: returns the registry in the table of a name.
    """

    settings: Settings
    store: ObjectStore
    clock: Clock
    run_id: str
    identity: StateIdentity | None = None
    facts: CleanUpFacts = field(default_factory=CleanUpFacts)
    at: RegistryAt = registry_at

    def __post_init__(self) -> None:
        if self.identity is None:
            object.__setattr__(self, "identity", StateIdentity(self.settings, self.store))

    def carry_out(self, order: Order, deadline: Deadline) -> Answer:
        """Carry out an order as far as time allows, and write a receipt to S3.

        Raises:
            Exception: any error that ended the call, after it was recorded in the receipt.
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
            identity=self.identity,
            listing=event_listing(self.settings, self.clock.now(), self.at),
        )
        # compact_partition modifies the counts it is given.
        before = msgspec.convert(msgspec.to_builtins(order.before), Counts)
        receipt = compact_partition(run, before)
        return Answer(receipt.status, compacted=receipt)

    def _clean_up(self, order: Order, deadline: Deadline) -> Answer:
        run = CleanUpRun(
            path=order.path,
            settings=self.settings,
            store=self.store,
            clock=self.clock,
            deadline=deadline,
            run_id=self.run_id,
            facts=self.facts,
        )
        # Read from S3, because a call that failed half-way returned no receipt.
        before = clean_up_receipts.earlier(self.settings, self.run_id, run.partition, self.store)
        receipt = record_clean_up(run, before)
        return Answer(receipt.status, cleaned=receipt, cleaned_before=before)
