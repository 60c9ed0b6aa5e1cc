"""Does one order: rewrite and compare each partition, then delete what was replaced."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from compactor.errors import IntegrityError, InvalidInput, TableConflict
from compactor.failures import first_line
from compactor.settings.tables import DELTA
from compactor_tables.maintenance_receipts import (
    DONE,
    FAILED,
    GAVE_WAY,
    LEFT,
    ROLLED_BACK,
    MaintenanceReceipt,
    RewrittenPartition,
)
from compactor_tables.orders import (
    CHECKPOINT,
    DELETES,
    EXPIRE,
    LEAST_KEEP_SECONDS,
    LEAST_ORPHAN_SECONDS,
    MANIFESTS,
    ORPHANS,
    REWRITE,
    Order,
    PartitionOrder,
)
from compactor_tables.table_engine import Rewritten, StepDone, Tables

_DAY = 86_400
# After this many consecutive failures, the cause is probably not the partition.
_MOST_FAILURES = 3


class RowsDiffer(IntegrityError):
    """A rewrite's rows differ from those that it replaced.

    Args:
        partition: the record of the partition.
    """

    def __init__(self, partition: RewrittenPartition) -> None:
        super().__init__(f"{partition.name or 'the table'}: {partition.why}")
        self.partition = partition


class _TimeIsUp(Exception):
    """Time is up: no further partition or step is started."""


@dataclass(slots=True)
class Maintenance:
    """The work on one order.

    Args:
        order: to be done.
        table: the order's table.
        receipt: of this order, as an earlier job left it.
        save: stores the receipt; called after each partition and each step.
        say: receives progress lines.
        now: UNIX seconds.
        require_ours: raises once another run has the table, or this run's lease has ended; called
            before each partition and each step.
    """

    order: Order
    table: Tables
    receipt: MaintenanceReceipt
    save: Callable[[MaintenanceReceipt], None]
    say: Callable[[str], None]
    now: Callable[[], float] = time.time
    require_ours: Callable[[], None] = lambda: None
    _failures: int = field(default=0, init=False)

    def run(self) -> MaintenanceReceipt:
        """Do the order, and return the receipt; errors are recorded in it."""
        receipt = self.receipt
        receipt.error = receipt.cause = ""
        earlier, began = receipt.seconds, time.monotonic()
        try:
            require_floors(self.order)
            self._work()
            receipt.status = "done" if receipt.is_sound else "failed"
        except _TimeIsUp:
            receipt.status = "more"
        except Exception as error:
            receipt.status = "failed"
            receipt.error, receipt.cause = type(error).__name__, first_line(error)
        receipt.seconds = earlier + time.monotonic() - began
        self.save(receipt)
        return receipt

    def _work(self) -> None:
        self.require_ours()
        steps = {REWRITE, DELETES} & set(self.order.steps)
        if steps and self.order.partitions and self.order.verify_rows:
            self.table.require_rows()
        if REWRITE in steps:
            self._rewrite_all()
        if self.receipt.of(ROLLED_BACK, FAILED):
            # The old data is kept until the failure has been looked into.
            return
        if DELETES in steps:
            self._all_deletes()
        self._other_steps()
        self.receipt.at = self.table.version()

    def _rewrite_all(self) -> None:
        read, total = 0, sum(one.files for one in self.order.partitions)
        for one in self.order.partitions:
            read += one.files
            if self._is_done(one.name):
                continue
            self._require_turn()
            record = self._rewrite(one)
            self._keep(record)
            name = one.name or "the table"
            self.say(f"{read:,} of {total:,} files read; {name}: {_line(record)}")
            if record.status == ROLLED_BACK or self._failures >= _MOST_FAILURES:
                break

    def _is_done(self, name: str) -> bool:
        """Return whether an earlier job finished this partition."""
        return any(one.name == name for one in self.receipt.of(DONE, ROLLED_BACK))

    def _keep(self, record: RewrittenPartition) -> None:
        kept = [one for one in self.receipt.partitions if one.name != record.name]
        self.receipt.partitions = [*kept, record]
        self.save(self.receipt)

    def _rewrite(self, partition: PartitionOrder) -> RewrittenPartition:
        record = RewrittenPartition(name=partition.name, status=DONE)
        began = time.monotonic()
        try:
            self._do(partition, record)
            self._failures = 0
        except TableConflict as error:
            record.status, record.why = GAVE_WAY, str(error)
        except RowsDiffer as error:
            self._keep(error.partition)
            raise
        except Exception as error:
            record.status, record.why = FAILED, f"{type(error).__name__}: {first_line(error)}"
            self._failures += 1
        record.seconds = time.monotonic() - began
        return record

    def _do(self, partition: PartitionOrder, record: RewrittenPartition) -> None:
        order, what = self.order, f"{REWRITE} {partition.name}"
        found = self.table.done(what, order)
        if found is None:
            record.why = self.table.unfit(partition, order)
            found = None if record.why else self.table.rewrite(partition, order, what)
        if found is None:
            record.status, record.why = LEFT, record.why or "nothing to rewrite"
            return
        record.before, record.after = found.before, found.after
        self.receipt.undo = self.receipt.undo or found.before
        record.files, record.bytes = found.files, found.bytes
        record.into, record.into_bytes = found.into, found.into_bytes
        record.rows = found.rows
        if order.verify_rows and found.rows is None:
            self._compare(partition, found, record)

    def _compare(
        self, partition: PartitionOrder, found: Rewritten, record: RewrittenPartition
    ) -> None:
        before, after = self.table.rows_of(partition, found)
        record.rows = before.rows
        if before != after:
            record.why = _difference(before.rows, after.rows)
            self._take_back(found.before, found.after, record)

    def _take_back(self, before: str, after: str, record: RewrittenPartition) -> None:
        """Roll a rewrite back.

        Raises:
            RowsDiffer: others committed since, so that only the operator can roll back.
        """
        if self.table.take_back(before, after, f"{self.order.run_id}:roll back {record.name}"):
            record.status = ROLLED_BACK
            return
        record.status = FAILED
        record.why += (
            f". Others committed since, so the rewrite stands, as version {after}: stop them, go"
            f" back to version {before}, and do their later commits again"
        )
        raise RowsDiffer(record)

    def _all_deletes(self) -> None:
        """Apply or compact the deletes of all partitions whose rewrite did not give way."""
        open_ones = {one.name for one in self.receipt.of(GAVE_WAY)}
        for one in self.order.partitions:
            what = f"{DELETES} {one.name}"
            if one.name in open_ones or what in self.receipt.steps:
                continue
            self._require_turn()
            self.receipt.steps[what] = line = self._deletes(one, what)
            self.save(self.receipt)
            self.say(f"{what}: {line}")
            if self.receipt.of(ROLLED_BACK):
                return

    def _deletes(self, partition: PartitionOrder, what: str) -> str:
        try:
            found = self.table.deletes(partition, self.order, what)
        except TableConflict as error:
            return f"{GAVE_WAY}: {error}"
        if self.order.verify_rows and found.after:
            before = self.table.rows_at(partition, found.before)
            after = self.table.rows_at(partition, found.after)
            if before != after:
                record = RewrittenPartition(name=partition.name, status=DONE)
                record.before, record.after = found.before, found.after
                record.why = _difference(before.rows, after.rows)
                self._keep(record)
                self._take_back(found.before, found.after, record)
                return f"{ROLLED_BACK}: {record.why}"
        return found.line

    def _other_steps(self) -> None:
        order, table = self.order, self.table
        steps: dict[str, Callable[[], StepDone]] = {
            MANIFESTS: lambda: table.manifests(order),
            CHECKPOINT: lambda: table.checkpoint(order),
            EXPIRE: lambda: table.expire(order, self.now()),
            ORPHANS: lambda: table.orphans(order, self.now()),
        }
        for name, step in steps.items():
            if self.receipt.of(ROLLED_BACK, FAILED):
                return
            if name in order.steps and name not in self.receipt.steps:
                self._require_turn()
                self._step(name, step)

    def _step(self, name: str, step: Callable[[], StepDone]) -> None:
        try:
            found = step()
        except TableConflict as error:
            found = StepDone(f"{GAVE_WAY}: {error}")
        self.receipt.steps[name] = found.line
        self.receipt.expired += found.expired
        self.receipt.deleted_files += found.deleted_files
        self.receipt.deleted_bytes += found.deleted_bytes
        self.save(self.receipt)
        self.say(f"{name}: {found.line}")

    def _require_turn(self) -> None:
        self.require_ours()
        if self.order.until is not None and self.now() >= self.order.until:
            raise _TimeIsUp


def require_floors(order: Order) -> None:
    """Refuse to delete what may still be read or written, unless the order has ``below_floor``.

    Raises:
        InvalidInput: the order's retention of old versions, or of orphans, is too short.
    """
    if order.below_floor:
        return
    floors = []
    if EXPIRE in order.steps or (ORPHANS in order.steps and order.address.kind == DELTA):
        floors.append(("keep_seconds", order.keep_seconds, LEAST_KEEP_SECONDS))
    if ORPHANS in order.steps:
        floors.append(("orphan_seconds", order.orphan_seconds, LEAST_ORPHAN_SECONDS))
    for name, value, floor in floors:
        if value < floor:
            accepted = f"{floor:g} ({floor / _DAY:g} days) at least, or below_floor true as well"
            raise InvalidInput(name, value, accepted)


def _difference(before: int, after: int) -> str:
    if before != after:
        return f"{before:,} rows became {after:,}"
    return f"{before:,} rows stayed as many, and are not the same"


def _line(record: RewrittenPartition) -> str:
    if record.status != DONE:
        return f"{record.status}: {record.why}"
    rows = "" if record.rows is None else f", {record.rows:,} rows compared"
    return f"{record.files:,} files to {record.into:,}{rows}, {record.seconds:.1f} s"
