"""What became of an order."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from compactor.decoding import decoder
from compactor.documents import find_document, leave_document
from compactor.ports import ObjectStore
from compactor.settings.tables import parse_table
from compactor.settings.uris import S3Uri
from compactor_tables import document_keys as places

RECEIPT_VERSION = 1
# What became of a partition.
DONE, LEFT, GAVE_WAY, ROLLED_BACK, FAILED = "done", "left", "gave way", "rolled back", "failed"


class RewrittenPartition(msgspec.Struct, kw_only=True):
    """One partition of an order.

    Attributes:
        name: as in the order.
        status: ``done``; ``left`` (nothing to rewrite any more, or written again meanwhile);
            ``gave way`` (another writer's commit came first); ``rolled back`` (the rows after it
            were not those before); ``failed``.
        why: of all but ``done``, for a person.
        files, bytes: data files that were replaced, and their bytes.
        into, into_bytes: data files that replaced them.
        rows: of the partition, where they were counted; None where they were not.
        before, after: version of the table right before the rewrite, and with it.
        seconds: that it took.
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
        """Add the files of one commit of Iceberg's, by the summary of its snapshot."""
        self.files += int(summary.get("deleted-data-files", 0))
        self.bytes += int(summary.get("removed-files-size", 0))
        self.into += int(summary.get("added-data-files", 0))
        self.into_bytes += int(summary.get("added-files-size", 0))


class Position(msgspec.Struct, frozen=True):
    """How far an order is that is done statement by statement.

    Attributes:
        number: of the statement in work.
        attempt: at it, from 0.
        before: snapshot right before the statement; empty where no look was taken yet.
        due: snapshots that VACUUM is to take away.
        watched: manifest lists of some of them.
    """

    number: int = 0
    attempt: int = 0
    before: str = ""
    due: tuple[str, ...] = ()
    watched: tuple[str, ...] = ()

    @property
    def next(self) -> Position:
        """The statement that it ran."""
        return Position(self.number + 1)


class MaintenanceReceipt(msgspec.Struct, kw_only=True):
    """What one run did to one table.

    Attributes:
        table: its address.
        run_id: of the run.
        engine: that did it.
        status: ``done``; ``failed`` where something of the order failed or was rolled back;
            ``more`` where time ended first.
        partitions: those of the order that were begun.
        steps: what each other step says of itself, a line each.
        undo: the version to which ``undo`` returns; empty where there is nothing to undo.
        undo_until: UNIX seconds until when that version is kept.
        at: the version that the run left.
        expired: snapshots or versions that went.
        deleted_files, deleted_bytes: files that nothing names any more, and that went; of Iceberg,
            and where not all that was to go could be deleted, the bytes are unknown.
        superseded: URIs of data files that the rewrite replaced and old versions still name,
            where the table is of Delta; at most 10,000.
        scan_seconds: how long Spark took to read all columns of what was rewritten, as it was
            and as it is; None where rows were not compared.
        seconds: in all.
        position: of an order that is done statement by statement: where it goes on.
        answers: how far the answers of services are in it, so that none is noted twice.
        scanned_bytes: what Athena read.
        dpu_hours: what Glue's optimizers took.
        dollars: what the engine's service takes for it, about; 0 where it does not say.
        error, cause: class name and text of what ended it.
    """

    table: str
    run_id: str
    engine: str
    status: str = "more"
    partitions: list[RewrittenPartition] = msgspec.field(default_factory=list)
    steps: dict[str, str] = msgspec.field(default_factory=dict)
    undo: str = ""
    undo_until: float = 0.0
    at: str = ""
    expired: int = 0
    deleted_files: int = 0
    deleted_bytes: int = 0
    superseded: list[str] = msgspec.field(default_factory=list)
    scan_seconds: tuple[float | None, float | None] = (None, None)
    seconds: float = 0.0
    position: Position | None = None
    answers: int = 0
    scanned_bytes: int = 0
    dpu_hours: float = 0.0
    dollars: float = 0.0
    error: str = ""
    cause: str = ""

    def of(self, *statuses: str) -> list[RewrittenPartition]:
        """Partitions that ended so."""
        return [one for one in self.partitions if one.status in statuses]

    @property
    def is_sound(self) -> bool:
        """True where nothing failed."""
        return not self.error and not self.of(ROLLED_BACK, FAILED)


_decode = decoder(MaintenanceReceipt)


def write_receipt(receipt: MaintenanceReceipt, state: S3Uri, store: ObjectStore) -> None:
    """Leave a receipt where the run looks for it."""
    place = places.receipt_key(state, receipt.run_id, parse_table(receipt.table))
    leave_document(store, place, receipt, RECEIPT_VERSION)


def read_receipt(
    state: S3Uri, run_id: str, table: str, store: ObjectStore
) -> MaintenanceReceipt | None:
    """The receipt for a table; None where its engine left none.

    Raises:
        IntegrityError: a later version of this program wrote it, or it is damaged.
    """
    place = places.receipt_key(state, run_id, parse_table(table))
    return find_document(store, place, _decode, RECEIPT_VERSION)
