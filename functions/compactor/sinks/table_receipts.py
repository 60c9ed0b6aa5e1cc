"""The receipt of what one run did for its table."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from compactor.decoding import decoder
from compactor.documents import find_document, leave_document
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings
from compactor.sinks.upserts import UpsertCounts
from compactor.sizes import plural

RECEIPT_VERSION = 1
_REPORTED = 100


class TableReceipt(msgspec.Struct, kw_only=True):
    """What the publisher did for the table, over all calls of one run.

    Attributes:
        status: ``done``, ``more`` (time ran out) or ``failed``.
        table: as the run's input names it.
        outputs, rows: added to the table in this run; rows as far as they were counted.
        entries: table log entries that were added to the table.
        commits: made to the table.
        conflicts: commits lost to other writers.
        last: number of the last table log entry that is in the table.
        at: version of the table then.
        upserts: what became of the records, if rows have a key; else None.
        faults: a line for each partition that was not fully published, and for each output that
            does not fit the table.
        error, cause: class name and text of the error that ended a failed call.
    """

    status: str = "more"
    table: str = ""
    outputs: int = 0
    rows: int = 0
    entries: int = 0
    commits: int = 0
    conflicts: int = 0
    last: int = 0
    at: str = ""
    seconds: float = 0.0
    upserts: UpsertCounts | None = None
    faults: list[str] = msgspec.field(default_factory=list)
    error: str = ""
    cause: str = ""

    def add_aside(self, lines: Mapping[tuple[str, int], str]) -> None:
        """Add outputs that do not fit the table to the faults.

        Args:
            lines: by partition and sequence.
        """
        shown = [f"{at[0] or '(root)'}: {lines[at]}" for at in sorted(lines)]
        self.faults += shown[:_REPORTED]
        if len(shown) > _REPORTED:
            self.faults.append(f"and {len(shown) - _REPORTED:,} more outputs are not in the table")

    @property
    def causes(self) -> list[str]:
        """Why not everything is in the table, one line each; empty if everything is."""
        ended = [f"{self.error}: {self.cause}"] if self.error else []
        if self.status == "more":
            ended.append("time ran out before all outputs were in the table")
        return [*ended, *self.faults]

    @property
    def line(self) -> str:
        """A one-line summary."""
        at = f", {self.at}" if self.at else ""
        outputs = plural(self.outputs, "output")
        if self.upserts is not None:
            records = f"{plural(self.upserts.records, 'record')} in {self.table}"
            return f"table: {outputs}, {records}: {self.upserts.line}{at}"
        return f"table: {outputs}, {plural(self.rows, 'row')} in {self.table}{at}"


_decode = decoder(TableReceipt)


def write_receipt(
    receipt: TableReceipt, settings: Settings, run_id: str, store: ObjectStore
) -> None:
    """Store a receipt where the run's report looks for it."""
    place = settings.layout.table_receipt(run_id)
    leave_document(store, place, receipt, RECEIPT_VERSION)


def read_receipt(settings: Settings, run_id: str, store: ObjectStore) -> TableReceipt | None:
    """Return the receipt of a run; None if its publisher left none.

    Raises:
        IntegrityError: a later version of this program wrote it, or it is damaged.
    """
    place = settings.layout.table_receipt(run_id)
    return find_document(store, place, _decode, RECEIPT_VERSION)
