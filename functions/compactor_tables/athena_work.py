"""Carries out an order by Athena, statement by statement, and compares the rows of each rewrite.

The receipt has the position, so calls are idempotent: a repeated call records no answer twice, and
returns the same statement; a run that was stopped and started again goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import dropwhile, takewhile
from typing import Any

import msgspec
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Operation, Snapshot, ancestors_of

from compactor.ports import Clock, ObjectStore
from compactor.settings.uris import S3Uri
from compactor.sizes import TIB
from compactor.table_formats.file_io import place_of
from compactor_tables.athena import (
    COUNT,
    OPTIMIZE,
    PROPERTIES,
    VACUUM,
    QueryEnd,
    Statement,
    kept_seconds,
    query_end,
    sql,
    statements,
    token,
    wanted_properties,
)
from compactor_tables.maintenance_receipts import (
    DONE,
    FAILED,
    GAVE_WAY,
    LEFT,
    MaintenanceReceipt,
    Position,
    RewrittenPartition,
    read_receipt,
    write_receipt,
)
from compactor_tables.orders import Order
from compactor_tables.outcomes import MORE

QUERY, ENDED = "query", "done"
# Number of expired snapshots that are looked for after VACUUM.
_WATCHED = 20
_LONGEST_REASON = 500


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """The next step of an order.

    Attributes:
        status: ``query``: send ``sql``; ``done``: the receipt has the result of the order.
        work: argument of the next call.
        sql: text of the statement.
        token: of the request.
        database: of the query.
        attempt: of the state machine, which counts them.
    """

    status: str
    work: Position
    sql: str = ""
    token: str = ""
    database: str = ""
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class AthenaWork:
    """Carries out one order by Athena.

    Attributes:
        state: where the receipt lies.
        table: returns the table's present metadata.
        counts: returns the row counts that a query answered with.
        dollars_per_tib: Athena's price for scanned data.
    """

    order: Order
    store: ObjectStore
    state: S3Uri
    table: Callable[[], TableMetadata]
    counts: Callable[[str], Sequence[str]]
    clock: Clock
    dollars_per_tib: float

    def advance(self, work: Position | None, answer: Mapping[str, Any] | None) -> Step:
        """Record an answer, and return the next step.

        Args:
            work: of the previous step; None at the beginning.
            answer: the result of its query, or the error that was caught; None at the beginning.

        Raises:
            IntegrityError: the table's metadata, or the receipt, is damaged.
            InvalidInput: the table no longer exists, or may not be read.
        """
        table, order = self.table(), self.order
        todo = statements(order, _types(table))
        receipt = read_receipt(self.state, order.run_id, order.table, self.store)
        receipt = receipt or MaintenanceReceipt(
            table=order.table, run_id=order.run_id, engine=order.engine
        )
        position = receipt.position
        if position is None:
            position = self._seek(0, todo, table, receipt)
        elif position == work and answer is not None:
            self._record(work, todo[work.number], query_end(answer), table, receipt)
            position = self._seek(work.number + 1, todo, table, receipt)
        receipt.at, receipt.position = _current(table), position
        step = self._step(position, todo, receipt)
        write_receipt(receipt, self.state, self.store)
        return step

    def _seek(
        self,
        number: int,
        todo: Sequence[Statement],
        table: TableMetadata,
        receipt: MaintenanceReceipt,
    ) -> Position:
        """Return the position of the first statement from a number on that is to be sent."""
        until = self.order.until
        while number < len(todo):
            statement = todo[number]
            if statement.kind != COUNT and until is not None and self.clock.now() >= until:
                receipt.steps["time"] = "the time that the rule leaves is over"
                break
            if not self._is_passed_over(statement, table, receipt):
                return self._position(number, statement, table)
            number += 1
        return Position(len(todo))

    def _is_passed_over(
        self, statement: Statement, table: TableMetadata, receipt: MaintenanceReceipt
    ) -> bool:
        """Return whether a statement is skipped; the reason is recorded in the receipt."""
        if statement.kind == OPTIMIZE and statement.unfit:
            receipt.partitions.append(
                RewrittenPartition(name=statement.partition, status=LEFT, why=statement.unfit)
            )
            return True
        if statement.kind == COUNT:
            partition = receipt.of_name(statement.partition)
            return partition is None or partition.status != DONE
        if statement.kind == PROPERTIES:
            return wanted_properties(self.order).items() <= table.properties.items()
        if statement.kind == VACUUM and not receipt.is_sound:
            receipt.steps[VACUUM] = "left: nothing goes where something failed"
            return True
        return False

    def _position(self, number: int, statement: Statement, table: TableMetadata) -> Position:
        position = Position(number, _current(table))
        if statement.kind != VACUUM:
            return position
        due = self._due(table)[:_WATCHED]
        return msgspec.structs.replace(
            position,
            due=tuple(f"{one.snapshot_id}" for one in due),
            watched=due[0].manifest_list if due else "",
        )

    def _due(self, table: TableMetadata) -> list[Snapshot]:
        """Return the snapshots that VACUUM is to remove, oldest first."""
        before = (self.clock.now() - kept_seconds(self.order)) * 1_000
        stays = {table.current_snapshot_id, *(one.snapshot_id for one in table.refs.values())}
        ordered = sorted(table.snapshots, key=lambda one: one.timestamp_ms)
        old = ordered[: max(0, len(ordered) - self.order.keep_versions)]
        return [one for one in old if one.timestamp_ms < before and one.snapshot_id not in stays]

    def _step(
        self, position: Position, todo: Sequence[Statement], receipt: MaintenanceReceipt
    ) -> Step:
        if position.number == len(todo):
            receipt.status = self._status(receipt)
            return Step(status=ENDED, work=position)
        # The text must not depend on when it is sent, because a token stands for one text.
        statement = todo[position.number]
        partition = receipt.of_name(statement.partition)
        versions = (partition.before, partition.after) if partition else ("", "")
        return Step(
            status=QUERY,
            work=position,
            sql=sql(statement, self.order, versions),
            token=token(self.order, position.number),
            database=self.order.address.name[0],
        )

    def _status(self, receipt: MaintenanceReceipt) -> str:
        if not receipt.is_sound:
            return FAILED
        names = {one.name for one in receipt.partitions}
        is_whole = all(one.name in names for one in self.order.partitions)
        return DONE if is_whole and "time" not in receipt.steps else MORE

    def _record(
        self,
        position: Position,
        statement: Statement,
        end: QueryEnd,
        table: TableMetadata,
        receipt: MaintenanceReceipt,
    ) -> None:
        """Record the result of a statement in the receipt."""
        receipt.seconds += end.seconds
        receipt.scanned_bytes += end.scanned
        receipt.dollars += end.billed_bytes / TIB * self.dollars_per_tib
        fault = "" if end.state == "SUCCEEDED" else (end.reason or end.state)[:_LONGEST_REASON]
        if statement.kind == OPTIMIZE:
            partition = _rewritten(position, statement, end, fault, table)
            receipt.partitions.append(partition)
            receipt.undo = receipt.undo or partition.before
        elif statement.kind == COUNT:
            rewritten = receipt.of_name(statement.partition)
            assert rewritten is not None  # noqa: S101 - it was rewritten right before
            self._compare(rewritten, end, fault)
        else:
            if statement.kind == VACUUM and not fault:
                fault = self._vacuumed(position, table, receipt)
            receipt.steps[statement.kind] = fault or receipt.steps.get(statement.kind, DONE)
            if fault:
                receipt.error, receipt.cause = "AthenaFailed", f"{statement.kind}: {fault}"

    def _compare(self, partition: RewrittenPartition, end: QueryEnd, fault: str) -> None:
        """Record the number of a partition's rows, or why they were not compared or differ."""
        if fault:
            partition.status, partition.why = FAILED, fault
            return
        before, after = self.counts(end.query_id)
        if before == after:
            partition.rows = int(before)
        elif partition.why:
            partition.status = LEFT
            partition.why += ", and its rows were not compared"
        else:
            partition.status = FAILED
            partition.why = (
                f"{before} rows became {after}: stop its writers, and return to snapshot"
                f" {partition.before}"
            )

    def _vacuumed(
        self, position: Position, table: TableMetadata, receipt: MaintenanceReceipt
    ) -> str:
        """Return why a VACUUM that succeeded had no effect; empty if it had."""
        present = {f"{one.snapshot_id}" for one in table.snapshots}
        gone = [one for one in position.due if one not in present]
        receipt.expired += len(gone)
        if position.due and not gone:
            return (
                f"VACUUM succeeded, and none of {len(position.due)} snapshots that are due is gone"
            )
        if gone and position.watched and self.store.head(*place_of(position.watched)) is not None:
            return (
                f"VACUUM succeeded, and {position.watched}, which nothing names any more, is there:"
                " may the role delete objects (s3:DeleteObject)?"
            )
        receipt.steps[VACUUM] = f"{len(gone)} snapshots expired, their files are gone"
        return ""


def _rewritten(
    position: Position, statement: Statement, end: QueryEnd, fault: str, table: TableMetadata
) -> RewrittenPartition:
    record = RewrittenPartition(name=statement.partition, status=DONE, seconds=end.seconds)
    if fault:
        record.status, record.why = GAVE_WAY if end.gave_way else FAILED, fault
        return record
    commits = _rewrites_since(table, position.before)
    if not commits:
        record.status, record.why = LEFT, "nothing to rewrite any more"
        return record
    record.before, record.after = f"{commits[-1].parent_snapshot_id}", f"{commits[0].snapshot_id}"
    for one in commits:
        if _is_rewrite(one):
            assert one.summary is not None  # noqa: S101 - it names the operation
            record.count(one.summary.additional_properties)
        else:
            record.why = f"snapshot {one.snapshot_id} came in between"
    return record


def _rewrites_since(table: TableMetadata, before: str) -> list[Snapshot]:
    """Return the snapshots from our first rewrite after a snapshot to our last, newest first."""
    current = table.current_snapshot()
    since = takewhile(lambda one: f"{one.snapshot_id}" != before, ancestors_of(current, table))
    oldest_first = [*dropwhile(lambda one: not _is_rewrite(one), since)][::-1]
    return [*dropwhile(lambda one: not _is_rewrite(one), oldest_first)][::-1]


def _is_rewrite(one: Snapshot) -> bool:
    return one.summary is not None and one.summary.operation == Operation.REPLACE


def _current(table: TableMetadata) -> str:
    current = table.current_snapshot()
    return "" if current is None else f"{current.snapshot_id}"


def _types(table: TableMetadata) -> dict[str, str]:
    """Return the types of top-level columns, as Iceberg writes them."""
    return {one.name: f"{one.field_type}" for one in table.schema().fields}
