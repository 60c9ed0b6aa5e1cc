"""The outcome of one table in a run: its entry in the report, from plan, order and receipt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from compactor.decoding import decoder
from compactor.documents import find_document, leave_document
from compactor.ports import ObjectStore
from compactor.settings.tables import parse_table
from compactor.settings.uris import S3Uri
from compactor_tables import document_keys as places
from compactor_tables.maintenance_receipts import (
    DONE,
    FAILED,
    GAVE_WAY,
    LEFT,
    ROLLED_BACK,
    MaintenanceReceipt,
)
from compactor_tables.orders import REWRITE, Order

OUTCOME_VERSION = 1
MORE = "more"
_LONGEST_WHY = 2_000


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """What the plan selected: data files, their bytes, and the estimated cost of the rewrite."""

    files: int = 0
    bytes: int = 0
    dollars: float = 0.0


class Outcome(msgspec.Struct, kw_only=True):
    """The outcome of one table in a run.

    Attributes:
        status: ``done``; ``left``: there was nothing to do, or another owner has the table;
            ``more``: time ran out, or other writers' commits came first; ``failed``.
        engine: that did the work; ``none`` for a table that was left.
        why: reason for the choice of engine, for work that was left, or for the failure.
        estimate: what the plan selected.
        files, bytes: data files that were replaced, and their bytes.
        into, into_bytes: data files that replaced them, and their bytes.
        partitions: number of rewritten partitions.
        gave_way: number of partitions in which another writer's commit came first.
        rows: number of rows that were counted before and after, and are the same.
        undo: the version before the rewrite.
        undo_sql: the statement of Spark SQL that returns to it.
    """

    table: str
    run_id: str
    status: str
    engine: str = "none"
    rule: str = ""
    why: str = ""
    estimate: Estimate = msgspec.field(default_factory=Estimate)
    partitions: int = 0
    files: int = 0
    bytes: int = 0
    into: int = 0
    into_bytes: int = 0
    gave_way: int = 0
    rows: int = 0
    expired: int = 0
    deleted_files: int = 0
    deleted_bytes: int = 0
    scanned_bytes: int = 0
    dollars: float = 0.0
    seconds: float = 0.0
    undo: str = ""
    undo_sql: str = ""

    @property
    def line(self) -> str:
        """Human-readable summary in one line."""
        if self.status == LEFT:
            return f"{self.table}: left, {self.why}"
        parts = [f"{self.files:,} files to {self.into:,}" if self.files else "no file rewritten"]
        if self.expired:
            parts.append(f"{self.expired:,} versions expired")
        if self.deleted_files:
            parts.append(f"{self.deleted_files:,} files deleted")
        if self.gave_way:
            parts.append(f"gave way in {self.gave_way:,} partitions")
        if self.status in (FAILED, MORE) and self.why:
            parts.append(self.why)
        return f"{self.table}: {self.status} by {self.engine}, {', '.join(parts)}"


def outcome_of(
    plan: Mapping[str, Any], order: Order | None, receipt: MaintenanceReceipt | None
) -> Outcome:
    """Return the outcome of a table whose engine has ended, or never began.

    Args:
        plan: ``table``, ``run_id``, ``engine``, ``reason``, ``rule`` and ``estimate``. The engine
            is ``none`` also where the choice of an engine was withdrawn.
        order: what was to be done; None if nothing was ordered.
        receipt: what was done; None if no engine left a receipt.
    """
    expected = plan.get("estimate") or {}
    outcome = Outcome(
        table=plan["table"],
        run_id=plan["run_id"],
        status=LEFT,
        engine=plan.get("engine", "none"),
        rule=plan.get("rule", ""),
        why=plan.get("reason", ""),
        estimate=msgspec.convert(dict(expected), Estimate, strict=False),
    )
    if receipt is None:
        if outcome.engine != "none":
            outcome.status = FAILED
            outcome.why = f"{outcome.engine} left no receipt: what it did is unknown"
        return outcome
    _add(outcome, receipt)
    fault = _fault(order, receipt)
    if fault:
        outcome.status, outcome.why = FAILED, fault[:_LONGEST_WHY]
    elif _is_whole(order, receipt):
        outcome.status = DONE
    else:
        outcome.status = MORE
        outcome.why = _left_over(receipt)
    return outcome


def _add(outcome: Outcome, receipt: MaintenanceReceipt) -> None:
    done = receipt.of(DONE)
    outcome.partitions = len(done)
    for name in ("files", "bytes", "into", "into_bytes"):
        setattr(outcome, name, sum(getattr(one, name) for one in done))
    outcome.rows = sum(one.rows or 0 for one in done)
    outcome.gave_way = len(receipt.of(GAVE_WAY))
    for name in (
        "expired",
        "deleted_files",
        "deleted_bytes",
        "scanned_bytes",
        "dollars",
        "seconds",
        "undo",
        "undo_sql",
    ):
        setattr(outcome, name, getattr(receipt, name))


def _fault(order: Order | None, receipt: MaintenanceReceipt) -> str:
    """Return why a receipt counts as a failure; empty if it is one of success."""
    if receipt.error:
        return ": ".join(text for text in (receipt.error, receipt.cause) if text)
    broken = receipt.of(FAILED, ROLLED_BACK)
    if broken:
        more = f" (and {len(broken) - 1} more)" if len(broken) > 1 else ""
        return f"{broken[0].name or 'the table'} {broken[0].status}: {broken[0].why}{more}"
    if receipt.status == FAILED:
        return "its engine says that it failed, and not why"
    if order is not None and order.verify_rows:
        blind = [one.name for one in receipt.of(DONE) if one.rows is None]
        if blind:
            return f"rows were to be compared, and were not in {blind[0] or 'the table'}"
    return ""


def _is_whole(order: Order | None, receipt: MaintenanceReceipt) -> bool:
    if receipt.status != DONE or receipt.of(GAVE_WAY):
        return False
    if order is None or REWRITE not in order.steps:
        return True
    named = {one.name for one in receipt.partitions}
    return all(one.name in named for one in order.partitions)


def _left_over(receipt: MaintenanceReceipt) -> str:
    gave_way = receipt.of(GAVE_WAY)
    if gave_way:
        return f"another writer came first in {gave_way[0].name or 'the table'}; the next run"
    return "time was over; the next run goes on"


_decode = decoder(Outcome)


def write_outcome(outcome: Outcome, state: S3Uri, store: ObjectStore) -> None:
    """Store an outcome where the report looks for it."""
    place = places.outcome_key(state, outcome.run_id, parse_table(outcome.table))
    leave_document(store, place, outcome, OUTCOME_VERSION)


def read_outcome(state: S3Uri, run_id: str, table: str, store: ObjectStore) -> Outcome | None:
    """Read the outcome of a table, or return None.

    Raises:
        IntegrityError: a later version of this program wrote it, or it is damaged.
    """
    place = places.outcome_key(state, run_id, parse_table(table))
    return find_document(store, place, _decode, OUTCOME_VERSION)
