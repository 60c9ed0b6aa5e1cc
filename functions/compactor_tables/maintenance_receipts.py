"""The receipt of an order: what an engine did to a table."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from compactor.decoding import decoder
from compactor.documents import find_document, leave_document
from compactor.ports import ObjectStore
from compactor.settings.tables import DELTA, parse_table
from compactor.settings.uris import S3Uri
from compactor_tables import document_keys as places

RECEIPT_VERSION = 1
# Statuses of a partition.
DONE, LEFT, GAVE_WAY, ROLLED_BACK, FAILED = "done", "left", "gave way", "rolled back", "failed"


class RewrittenPartition(msgspec.Struct, kw_only=True):
    """The result of one partition of an order.

    Attributes:
        name: as in the order.
        status: ``done``; ``left`` (nothing to rewrite any more, or written since the plan);
            ``gave way`` (another writer's commit came first); ``rolled back`` (the rows after
            the rewrite differed from those before); ``failed``.
        why: human-readable reason for any status but ``done``.
        files, bytes: data files that were replaced, and their bytes.
        into, into_bytes: data files that replaced them, and their bytes.
        rows: number of rows of the partition; None if they were not counted.
        before, after: version of the table right before the rewrite, and right after it.
        seconds: duration.
    """

    name: str
    status: str
    why: str = ""
    files: int = 0
    bytes: int = 0
    into: int = 0
    into_bytes: int = 0
    rows: int | None = None
    before: str = ""
    after: str = ""
    seconds: float = 0.0

    def count(self, summary: Mapping[str, str]) -> None:
        """Add the files of one Iceberg commit, by the summary of its snapshot."""
        self.files += int(summary.get("deleted-data-files", 0))
        self.bytes += int(summary.get("removed-files-size", 0))
        self.into += int(summary.get("added-data-files", 0))
        self.into_bytes += int(summary.get("added-files-size", 0))


class Position(msgspec.Struct, frozen=True):
    """The progress of an order that is carried out statement by statement.

    Attributes:
        number: of the current statement.
        before: snapshot right before the statement.
        due: snapshots that VACUUM is to remove.
        watched: manifest list of the first of these.
    """

    number: int = 0
    before: str = ""
    due: tuple[str, ...] = ()
    watched: str = ""


class MaintenanceReceipt(msgspec.Struct, kw_only=True):
    """What one run did to one table.

    Attributes:
        table: its address.
        run_id: of the run.
        engine: that did it.
        status: ``done``; ``failed`` if a part of the order failed or was rolled back; ``more`` if
            time ran out.
        partitions: those of the order that were begun.
        steps: the result of each other step, a line each.
        undo: the version before the run's first rewrite; empty if nothing was rewritten.
        undo_sql: the statement of Spark SQL that returns to that version.
        at: the table's version at the end of the run.
        expired: number of snapshots or versions that expired.
        deleted_files, deleted_bytes: unreferenced files that were deleted, and their bytes, which
            are unknown for Iceberg, and if some files could not be deleted.
        seconds: in all.
        position: where to resume an order that is carried out statement by statement.
        scanned_bytes: bytes that Athena read, without runs that did a part of the work.
        dollars: approximate charge of the engine's service; 0 if unknown.
        error, cause: class name and text of the error that ended the work.
    """

    table: str
    run_id: str
    engine: str
    status: str = "more"
    partitions: list[RewrittenPartition] = msgspec.field(default_factory=list)
    steps: dict[str, str] = msgspec.field(default_factory=dict)
    undo: str = ""
    undo_sql: str = ""
    at: str = ""
    expired: int = 0
    deleted_files: int = 0
    deleted_bytes: int = 0
    seconds: float = 0.0
    position: Position | None = None
    scanned_bytes: int = 0
    dollars: float = 0.0
    error: str = ""
    cause: str = ""

    def of(self, *statuses: str) -> list[RewrittenPartition]:
        """Return the partitions that have one of these statuses."""
        return [one for one in self.partitions if one.status in statuses]

    def of_name(self, name: str) -> RewrittenPartition | None:
        """Return the partition of a name; None if it was not begun."""
        return next((one for one in self.partitions if one.name == name), None)

    @property
    def is_sound(self) -> bool:
        """Whether nothing failed or was rolled back."""
        return not self.error and not self.of(ROLLED_BACK, FAILED)


_decode = decoder(MaintenanceReceipt)


def write_receipt(receipt: MaintenanceReceipt, state: S3Uri, store: ObjectStore) -> None:
    """Store a receipt where the run looks for it."""
    place = places.receipt_key(state, receipt.run_id, parse_table(receipt.table))
    receipt.undo_sql = _undo_sql(receipt)
    leave_document(store, place, receipt, RECEIPT_VERSION)


def _undo_sql(receipt: MaintenanceReceipt) -> str:
    if not receipt.undo:
        return ""
    table = parse_table(receipt.table)
    if table.kind == DELTA:
        return f"RESTORE TABLE delta.`{table.uri}` TO VERSION AS OF {receipt.undo}"
    name = ".".join(table.name)
    return f"CALL system.rollback_to_snapshot('{name}', {receipt.undo})"


def read_receipt(
    state: S3Uri, run_id: str, table: str, store: ObjectStore
) -> MaintenanceReceipt | None:
    """Read the receipt for a table; return None if its engine left none.

    Raises:
        IntegrityError: a later version of this program wrote it, or it is damaged.
    """
    place = places.receipt_key(state, run_id, parse_table(table))
    return find_document(store, place, _decode, RECEIPT_VERSION)
