"""Carries out an order by Athena, statement by statement, each sent as often as needed.

Between two statements, the only state is a :class:`Position` in the state machine and the receipt
on S3. Calls are idempotent: a repeated call records no answer twice, and returns the same step.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from compactor.ports import Clock, ObjectStore
from compactor.settings.uris import S3Uri
from compactor.sizes import TIB
from compactor_tables.athena import (
    MOST_TRIES,
    OPTIMIZE,
    PROPERTIES,
    VACUUM,
    VERIFY,
    QueryEnd,
    Statement,
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
from compactor_tables.measures import PartitionValue
from compactor_tables.orders import Order, PartitionOrder
from compactor_tables.service_ports import Catalog, Queries, Writes
from compactor_tables.snapshots import TableState, read_state
from compactor_tables.touched_partitions import Touched, touches

QUERY, ENDED = "query", "done"
# Number of expired snapshots whose manifest lists are looked for after VACUUM.
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
    """

    status: str
    work: Position
    sql: str = ""
    token: str = ""
    database: str = ""


class _Look(NamedTuple):
    """The current state of the table, and the URI of its metadata file."""

    uri: str
    table: TableState


@dataclass(frozen=True, slots=True)
class AthenaWork:
    """Carries out one order by Athena.

    Attributes:
        state: where the receipt lies.
        writes: finds what others have written since the plan was made.
        dollars_per_tib: Athena's price for scanned data.
    """

    order: Order
    store: ObjectStore
    state: S3Uri
    catalog: Catalog
    queries: Queries
    writes: Writes
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
        uri = self.catalog.metadata_uri(self.order.address)
        look = _Look(uri, read_state(uri, self.store.get(*_object_of(uri))))
        todo = statements(self.order, look.table.types)
        receipt = self._receipt()
        if work is None:
            # A run that was stopped and started again has a position in its receipt.
            work = receipt.position or Position()
        elif answer is not None:
            work = self._judge(work, todo[work.number], query_end(answer), look, receipt)
        step = self._next(work, todo, look, receipt)
        receipt.at, receipt.position = look.table.current, step.work
        write_receipt(receipt, self.state, self.store)
        return step

    def _receipt(self) -> MaintenanceReceipt:
        order = self.order
        found = read_receipt(self.state, order.run_id, order.table, self.store)
        return found or MaintenanceReceipt(
            table=order.table, run_id=order.run_id, engine=order.engine
        )

    def _next(
        self,
        work: Position,
        todo: Sequence[Statement],
        look: _Look,
        receipt: MaintenanceReceipt,
    ) -> Step:
        table = look.table
        while work.number < len(todo):
            statement = todo[work.number]
            if statement.kind != VERIFY and self._is_late(work):
                receipt.steps["time"] = "the time that the rule leaves is over"
                return Step(status=ENDED, work=work)
            if not self._passed_over(work, statement, look, receipt):
                if work.attempt == 0 and not work.before:
                    work = self._looked(work, statement, table)
                return self._query(work, statement, table, receipt)
            work = work.next
        rewritten = {one.name for one in receipt.partitions}
        whole = all(one.name in rewritten for one in self.order.partitions if todo)
        receipt.status = "failed" if not receipt.is_sound else "done" if whole else "more"
        return Step(status=ENDED, work=work)

    def _is_late(self, work: Position) -> bool:
        until = self.order.until
        return until is not None and self.clock.now() >= until and work.attempt == 0

    def _passed_over(
        self,
        work: Position,
        statement: Statement,
        look: _Look,
        receipt: MaintenanceReceipt,
    ) -> bool:
        """Return whether a statement is skipped; the reason is recorded in the receipt."""
        if statement.kind == OPTIMIZE:
            return self._is_left(work, statement, look, receipt)
        if statement.kind == VERIFY:
            found = _partition(receipt, statement.partition)
            return found is None or found.status != DONE
        if statement.kind == PROPERTIES:
            wanted = wanted_properties(self.order).items()
            # If it was sent already, its own answer counts.
            return not work.before and wanted <= look.table.properties.items()
        if statement.kind == VACUUM and not receipt.is_sound and work.attempt == 0:
            receipt.steps[VACUUM] = "left: nothing goes where something failed"
            return True
        return False

    def _is_left(
        self, work: Position, statement: Statement, look: _Look, receipt: MaintenanceReceipt
    ) -> bool:
        """Return whether a partition is not rewritten any further; the reason is recorded once."""
        found = _partition(receipt, statement.partition)
        if found is not None and found.status == LEFT and not found.after:
            # Left by an earlier call, without a query: a query's answer would have set `after`.
            return True
        # A query that was answered before does not run again, however often it is sent.
        known = _answer(work) <= receipt.answers
        why = statement.unfit or ("" if known else self._written(statement.partition, look))
        if not why:
            return False
        left = RewrittenPartition(name=statement.partition, status=LEFT, why=why)
        if work.attempt and look.table.current != work.before:
            left.before = work.before
            left.why += "; a part of it was rewritten before that, and its rows were not compared"
            receipt.undo = receipt.undo or work.before
        receipt.partitions.append(left)
        return True

    def _written(self, name: str, look: _Look) -> str:
        """Return why a partition is no longer closed, naming its writer; empty if it still is."""
        order = self.order
        if not order.closed_before:
            return ""
        since = look.table.writers(order.closed_before, order.measured)
        if since is None:
            return "snapshots of the time since have expired, so what they wrote is unknown"
        writer = self._toucher(name, look.uri, since)
        return f"snapshot {writer} wrote it since" if writer else ""

    def _toucher(self, name: str, metadata_uri: str, snapshots: Iterable[str]) -> str:
        """Return the first of the snapshots that wrote a partition; empty if none did."""
        wanted = _as_touched(next(one for one in self.order.partitions if one.name == name))
        for one in snapshots:
            if touches(self.writes.touched(metadata_uri, one), wanted):
                return one
        return ""

    def _query(
        self,
        work: Position,
        statement: Statement,
        table: TableState,
        receipt: MaintenanceReceipt,
    ) -> Step:
        # The text must not depend on when it is sent, because a token stands for one text.
        rewritten = _partition(receipt, statement.partition)
        versions = (rewritten.before, rewritten.after) if rewritten else ("", "")
        return Step(
            status=QUERY,
            work=work,
            sql=sql(statement, self.order, versions, table.columns),
            token=token(self.order, work.number, work.attempt),
            database=self.order.address.name[0],
        )

    def _looked(self, work: Position, statement: Statement, table: TableState) -> Position:
        """Record in the position what must be known of the table before the statement runs."""
        if statement.kind != VACUUM:
            return msgspec.structs.replace(work, before=table.current)
        order = self.order
        seconds = float(wanted_properties(order)["vacuum_max_snapshot_age_seconds"])
        due = table.due(self.clock.now(), seconds, order.keep_versions)
        lists = [one.manifest_list for one in due if one.manifest_list]
        return msgspec.structs.replace(
            work,
            before=table.current,
            due=tuple(f"{one.snapshot_id}" for one in due)[:_WATCHED],
            watched=tuple(lists[:_WATCHED]),
        )

    def _judge(
        self,
        work: Position,
        statement: Statement,
        end: QueryEnd,
        look: _Look,
        receipt: MaintenanceReceipt,
    ) -> Position:
        again = end.takes_more_runs or end.state == "CANCELLED"
        tries = work.attempt + 1 < MOST_TRIES
        if receipt.answers < _answer(work):
            receipt.answers = _answer(work)
            self._pay(end, receipt)
            if not (again and tries):
                self._note(work, statement, end, look, receipt)
        if again and tries:
            return msgspec.structs.replace(work, attempt=work.attempt + 1)
        return work.next

    def _pay(self, end: QueryEnd, receipt: MaintenanceReceipt) -> None:
        receipt.seconds += end.seconds
        receipt.scanned_bytes += end.scanned
        receipt.dollars += end.billed_bytes / TIB * self.dollars_per_tib

    def _note(
        self,
        work: Position,
        statement: Statement,
        end: QueryEnd,
        look: _Look,
        receipt: MaintenanceReceipt,
    ) -> None:
        """Record the result of a statement in the receipt."""
        why = "" if end.state == "SUCCEEDED" else _why(end)
        if statement.kind == OPTIMIZE:
            found = self._rewritten(work, statement, end, look)
            receipt.partitions.append(found)
            if found.status == DONE or found.into:
                receipt.undo = receipt.undo or found.before
        elif statement.kind == VERIFY:
            _compare(receipt, statement, why or _difference(self.queries.rows(end.query_id)))
        else:
            fault = why
            if statement.kind == VACUUM and not why:
                fault = self._deleted_nothing(work, look.table, receipt)
            receipt.steps[statement.kind] = fault or receipt.steps.get(statement.kind, "done")
            if fault:
                receipt.error, receipt.cause = "AthenaFailed", f"{statement.kind}: {fault}"

    def _rewritten(
        self, work: Position, statement: Statement, end: QueryEnd, look: _Look
    ) -> RewrittenPartition:
        found = RewrittenPartition(
            name=statement.partition,
            status=DONE,
            before=work.before,
            after=look.table.current,
            seconds=end.seconds,
        )
        if end.state != "SUCCEEDED":
            found.status, found.why = (GAVE_WAY if end.gave_way else FAILED), _why(end)
            return found
        commits = look.table.since(work.before)
        if commits is None:
            # Snapshots have expired, so only the versions at both ends can be compared.
            return found
        ours = [number for number, one in enumerate(commits) if one.only_rewrites]
        if not ours:
            found.status, found.why = LEFT, "nothing to rewrite any more"
            return found
        # From our first rewrite to our last: what others wrote before or after does not count.
        taken = commits[ours[0] : ours[-1] + 1]
        found.before, found.after = f"{taken[-1].parent_snapshot_id}", f"{taken[0].snapshot_id}"
        for one in taken:
            found.count(one.summary if one.only_rewrites else {})
        others = [f"{one.snapshot_id}" for one in taken if not one.only_rewrites]
        if writer := self._toucher(statement.partition, look.uri, others):
            found.status = LEFT
            found.why = f"snapshot {writer} wrote it in between, and its rows were not compared"
        return found

    def _deleted_nothing(
        self, work: Position, table: TableState, receipt: MaintenanceReceipt
    ) -> str:
        """Return why a VACUUM that succeeded had no effect; empty if it had."""
        gone = [one for one in work.due if one not in table.snapshots]
        receipt.expired += len(gone)
        if work.due and not gone:
            return f"VACUUM succeeded, and none of {len(work.due)} snapshots that are due is gone"
        there = [uri for uri in work.watched if gone and self._is_there(uri)]
        if there:
            return (
                f"VACUUM succeeded, and {len(there)} of {len(work.watched)} files that nothing"
                f" names any more are there, such as {there[0]}: may the role delete objects"
                " (s3:DeleteObject)?"
            )
        receipt.steps[VACUUM] = f"{len(gone)} snapshots expired, their files are gone"
        return ""

    def _is_there(self, uri: str) -> bool:
        return self.store.head(*_object_of(uri)) is not None


def _object_of(uri: str) -> tuple[str, str]:
    """Return bucket and key of a URI, whose scheme may be s3, s3a or s3n."""
    bucket, _, key = uri.partition("://")[2].partition("/")
    return bucket, key


def _answer(work: Position) -> int:
    """Return the number of a position's query among all possible queries of an order."""
    return work.number * MOST_TRIES + work.attempt + 1


def _as_touched(one: PartitionOrder) -> Touched:
    where = (PartitionValue(each.column, each.transform, each.value) for each in one.where)
    return Touched(one.spec, one.name, tuple(where))


def _partition(receipt: MaintenanceReceipt, name: str) -> RewrittenPartition | None:
    return next((one for one in reversed(receipt.partitions) if one.name == name), None)


def _compare(receipt: MaintenanceReceipt, statement: Statement, found: str | int) -> None:
    """Record the number of a partition's rows, or why its verification failed."""
    one = _partition(receipt, statement.partition)
    assert one is not None  # noqa: S101 - it was rewritten right before
    if isinstance(found, int):
        one.rows = found
        return
    one.status, one.why = FAILED, found


def _difference(rows: Sequence[Sequence[str]]) -> str | int:
    """Return how the rows before and after differ, or their number if they do not."""
    sides = {row[0]: tuple(row[1:3]) for row in rows}
    before, after = sides.get("before"), sides.get("after")
    if before is None or after is None:
        return "the rows were not compared: Athena answered with nothing"
    if before != after:
        return (
            f"its rows are not those of before: {before[0]} with hash {before[1]}, and now"
            f" {after[0]} with {after[1]}"
        )
    return int(before[0])


def _why(end: QueryEnd) -> str:
    return (end.reason or end.state)[:_LONGEST_REASON]
