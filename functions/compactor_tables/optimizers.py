"""Carries out an order by Glue's table optimizers, which Glue schedules itself.

So an order for them is a configuration, and a receipt lists their runs since the last look: cost,
result and error. Glue suspends an optimizer after four consecutive failures ("Troubleshooting table
optimizers" in its guide). A suspended optimizer is not switched on here, because the cause of its
failures remains.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from compactor.decoding import decoder
from compactor.documents import find_document, leave_document
from compactor.errors import AlreadyExists, ObjectMissing
from compactor.ports import Clock, ObjectStore
from compactor.settings.tables import TableAddress
from compactor.settings.uris import S3Uri
from compactor_tables import document_keys as places
from compactor_tables.maintenance_receipts import (
    DONE,
    MaintenanceReceipt,
    RewrittenPartition,
    read_receipt,
    write_receipt,
)
from compactor_tables.orders import EXPIRE, ORPHANS, REWRITE, SORT, ZORDER, Order
from compactor_tables.service_ports import Optimizers

COMPACTION, RETENTION, ORPHAN_FILES = "compaction", "retention", "orphan_file_deletion"
KINDS = (COMPACTION, RETENTION, ORPHAN_FILES)
LOOKS_VERSION = 1
MORE, ENDED = "more", "done"
# How often the state machine waits a minute for an optimizer's run in progress.
MOST_LOOKS = 30
_DAY = 86_400.0
_SUSPENDS_AFTER = 4
_RUNS_LOOKED_AT = 100
_STRATEGIES = {SORT: "sort", ZORDER: "z-order"}
_METRICS = {
    COMPACTION: "compactionMetrics",
    RETENTION: "retentionMetrics",
    ORPHAN_FILES: "orphanFileDeletionMetrics",
}
_DELETED = (
    "NumberOfDataFilesDeleted",
    "NumberOfManifestFilesDeleted",
    "NumberOfManifestListsDeleted",
    "NumberOfOrphanFilesDeleted",
)
_GOING_ON = ("starting", "in_progress")


class OptimizerLooks(msgspec.Struct):
    """The runs that receipts cover already.

    Attributes:
        seen: start of the latest such run, by type of optimizer, UNIX seconds.
    """

    seen: dict[str, float] = msgspec.field(default_factory=dict)


_decode = decoder(OptimizerLooks)


def wanted(order: Order, role_arn: str) -> dict[str, dict[str, Any]]:
    """Return the configuration of each optimizer that an order asks for, in the form of Glue's API.

    Args:
        order: its ``columns`` are ignored, because Glue uses the table's own sort order.
        role_arn: of the role that the optimizers assume.
    """
    common = {"roleArn": role_arn, "enabled": True}
    found: dict[str, dict[str, Any]] = {}
    if REWRITE in order.steps:
        strategy = _STRATEGIES.get(order.how, "binpack")
        given: dict[str, Any] = {"strategy": strategy, "minInputFiles": order.min_files}
        found[COMPACTION] = {
            **common,
            "compactionConfiguration": {"icebergConfiguration": given},
        }
    if EXPIRE in order.steps:
        given = {
            "snapshotRetentionPeriodInDays": _days(max(order.keep_seconds, order.undo_seconds)),
            "numberOfSnapshotsToRetain": order.keep_versions,
            "cleanExpiredFiles": True,
        }
        found[RETENTION] = {**common, "retentionConfiguration": {"icebergConfiguration": given}}
    if ORPHANS in order.steps:
        given = {"orphanFileRetentionPeriodInDays": _days(order.orphan_seconds)}
        found[ORPHAN_FILES] = {
            **common,
            "orphanFileDeletionConfiguration": {"icebergConfiguration": given},
        }
    return found


def _days(seconds: float) -> int:
    return max(1, math.ceil(seconds / _DAY))


def holds(found: Any, needed: Any) -> bool:
    """Return whether a configuration includes all that is needed; other fields are ignored."""
    if isinstance(needed, Mapping):
        return isinstance(found, Mapping) and all(
            holds(found.get(name), value) for name, value in needed.items()
        )
    return bool(found == needed)


def _joined(found: Mapping[str, Any], needed: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration with the needed fields set; other fields stay."""
    joined = dict(found)
    for name, value in needed.items():
        inner = joined.get(name)
        if isinstance(value, Mapping) and isinstance(inner, Mapping):
            value = _joined(inner, value)  # noqa: PLW2901 - the one that is put down
        joined[name] = value
    return joined


def switched_on(table: TableAddress, optimizers: Optimizers) -> list[str]:
    """Return the optimizers that are enabled for a table; empty for a table outside of Glue."""
    if table.kind != "glue":
        return []
    found = ((kind, optimizers.look(table, kind)) for kind in KINDS)
    return [kind for kind, one in found if one and _is_on(one)]


def _is_on(one: Mapping[str, Any]) -> bool:
    return bool(one.get("configuration", {}).get("enabled", True))


@dataclass(frozen=True, slots=True)
class OptimizerWork:
    """Carries out one order by Glue's optimizers.

    Attributes:
        state: where the receipt lies.
        role_arn: of the role that the optimizers assume.
        dollars_per_dpu_hour: Glue's price.
    """

    order: Order
    store: ObjectStore
    state: S3Uri
    optimizers: Optimizers
    clock: Clock
    role_arn: str
    dollars_per_dpu_hour: float

    def look(self, looks: int) -> str:
        """Set up the optimizers, and record their runs.

        Args:
            looks: number of earlier looks in this run.

        Returns:
            ``more`` while an optimizer is running and worth waiting for, else ``done``.
        """
        table = self.order.address
        seen = self._seen()
        receipt = self._receipt()
        runs: dict[str, Sequence[Mapping[str, Any]]] = {}
        suspended: list[str] = []
        for kind, needed in wanted(self.order, self.role_arn).items():
            runs[kind] = self.optimizers.runs(table, kind, _RUNS_LOOKED_AT)
            if self._ensure(kind, needed, runs[kind], receipt):
                suspended.append(kind)
        going_on = any(one.get("eventType") in _GOING_ON for some in runs.values() for one in some)
        if going_on and looks + 1 < MOST_LOOKS and not self._is_late():
            return MORE
        for kind, some in runs.items():
            self._note(kind, _ended_since(some, seen.seen.get(kind, 0.0)), receipt)
        _judge(runs, suspended, receipt)
        receipt.status = "done" if receipt.is_sound else "failed"
        receipt.dollars = receipt.dpu_hours * self.dollars_per_dpu_hour
        write_receipt(receipt, self.state, self.store)
        # After the receipt: a call that dies in between reports these runs again, and loses none.
        self._remember(runs, seen)
        return ENDED

    def _receipt(self) -> MaintenanceReceipt:
        order = self.order
        found = read_receipt(self.state, order.run_id, order.table, self.store)
        # An existing receipt is that of a repeated call, whose runs are recorded as seen.
        return found or MaintenanceReceipt(
            table=order.table, run_id=order.run_id, engine=order.engine
        )

    def _is_late(self) -> bool:
        until = self.order.until
        return until is not None and self.clock.now() >= until

    def _ensure(
        self,
        kind: str,
        needed: Mapping[str, Any],
        runs: Sequence[Mapping[str, Any]],
        receipt: MaintenanceReceipt,
    ) -> bool:
        """Create or update an optimizer; return True if Glue has suspended it, and leave it so."""
        table = self.order.address
        found = self.optimizers.look(table, kind)
        if found is None:
            try:
                self.optimizers.create(table, kind, needed)
                receipt.steps[f"{kind} set"] = "made"
                return False
            except AlreadyExists:
                found = self.optimizers.look(table, kind) or {}
        if not _is_on(found) and _failed_in_a_row(runs) >= _SUSPENDS_AFTER:
            return True
        given = found.get("configuration", {})
        if not holds(given, needed):
            try:
                self.optimizers.update(table, kind, _joined(given, needed))
                receipt.steps[f"{kind} set"] = "changed"
            except ObjectMissing:
                self.optimizers.create(table, kind, needed)
                receipt.steps[f"{kind} set"] = "made"
        return False

    def _note(
        self, kind: str, runs: Sequence[Mapping[str, Any]], receipt: MaintenanceReceipt
    ) -> None:
        hours = 0.0
        for run in runs:
            figures = run.get(_METRICS[kind], {}).get("IcebergMetrics", {})
            hours += figures.get("DpuHours", 0.0)
            receipt.deleted_files += sum(int(figures.get(name, 0)) for name in _DELETED)
            if kind == COMPACTION and run.get("eventType") == "completed":
                receipt.partitions.append(_compacted(run, figures))
            receipt.seconds += _seconds(run)
        failed = [one for one in runs if one.get("eventType") == "failed"]
        if runs or kind not in receipt.steps:
            line = f"{len(runs)} runs, {hours:.2f} DPU-hours"
            if failed:
                line += f", {len(failed)} failed: {failed[0].get('error', 'Glue does not say why')}"
            receipt.steps[kind] = line
        receipt.dpu_hours += hours

    def _seen(self) -> OptimizerLooks:
        place = places.optimizers_key(self.state, self.order.address)
        return find_document(self.store, place, _decode, LOOKS_VERSION) or OptimizerLooks()

    def _remember(
        self, runs: Mapping[str, Sequence[Mapping[str, Any]]], seen: OptimizerLooks
    ) -> None:
        now = dict(seen.seen)
        for kind, some in runs.items():
            ended = [_began(one) for one in some if one.get("eventType") not in _GOING_ON]
            now[kind] = max([now.get(kind, 0.0), *ended])
        if now != seen.seen:
            place = places.optimizers_key(self.state, self.order.address)
            leave_document(self.store, place, OptimizerLooks(now), LOOKS_VERSION)


def _judge(
    runs: Mapping[str, Sequence[Mapping[str, Any]]],
    suspended: Sequence[str],
    receipt: MaintenanceReceipt,
) -> None:
    """Record as error an optimizer that is suspended, or whose latest run failed."""
    receipt.error = receipt.cause = ""
    for kind, some in runs.items():
        latest = next((one for one in some if one.get("eventType") not in _GOING_ON), None)
        if latest is None or latest.get("eventType") != "failed":
            continue
        why = latest.get("error") or "Glue does not say why"
        if kind in suspended:
            receipt.error = "OptimizerSuspended"
            receipt.cause = (
                f"Glue has suspended {kind} after {_failed_in_a_row(some)} failures; fix what the"
                f" last one says and switch it on again: {why}"
            )
            return
        receipt.error, receipt.cause = "OptimizerFailed", f"{kind}: {why}"


def _failed_in_a_row(runs: Iterable[Mapping[str, Any]]) -> int:
    count = 0
    for run in runs:
        if run.get("eventType") in _GOING_ON:
            continue
        if run.get("eventType") != "failed":
            break
        count += 1
    return count


def _ended_since(runs: Iterable[Mapping[str, Any]], since: float) -> list[Mapping[str, Any]]:
    return [one for one in runs if one.get("eventType") not in _GOING_ON and _began(one) > since]


def _compacted(run: Mapping[str, Any], figures: Mapping[str, Any]) -> RewrittenPartition:
    return RewrittenPartition(
        name="",
        status=DONE,
        files=int(figures.get("NumberOfFilesCompacted", 0)),
        bytes=int(figures.get("NumberOfBytesCompacted", 0)),
        seconds=_seconds(run),
    )


def _began(run: Mapping[str, Any]) -> float:
    began = run.get("startTimestamp")
    return began.timestamp() if isinstance(began, datetime) else 0.0


def _seconds(run: Mapping[str, Any]) -> float:
    ended = run.get("endTimestamp")
    return ended.timestamp() - _began(run) if isinstance(ended, datetime) else 0.0
