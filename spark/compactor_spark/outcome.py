"""The job's outcome: ``spark-result.json`` or ``spark-error.json``, next to the receipts.

EMR itself may report only "Unknown Error".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from compactor.errors import NotMerged
from compactor.partition.receipts import Receipt
from compactor.ports import ObjectStore
from compactor.report.report import total
from compactor.report.run_records import SPARK_ERROR_NAME
from compactor.sinks.table_receipts import TableReceipt
from compactor_spark.hours import NO_HOURS, Hours
from compactor_spark.places import RunPlace, write_record

RESULT_NAME = "spark-result.json"
_SHOWN_CAUSES = 3


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one job.

    Attributes:
        error: class name of the first error; empty on success.
        cause: what went wrong, in one line.
        receipts: of the partitions that were processed.
        hours: what the job used; zero if it failed before its end.
    """

    error: str = ""
    cause: str = ""
    receipts: Sequence[Receipt] = field(default_factory=tuple)
    hours: Hours = NO_HOURS

    @classmethod
    def of(cls, receipts: Sequence[Receipt], table: TableReceipt | None = None) -> Outcome:
        """Return the outcome of these receipts, including that of a table written by Spark."""
        failed = [receipt for receipt in receipts if receipt.status != "done"]
        if not failed:
            return cls._of_table(receipts, table)
        causes = [f"{one.path or '(root)'}: {one.error}: {one.cause}" for one in failed]
        shown = "; ".join(causes[:_SHOWN_CAUSES])
        more = len(causes) - _SHOWN_CAUSES
        cause = f"{shown}; and {more} more partitions" if more > 0 else shown
        return cls(failed[0].error, " ".join(cause.split()), receipts)

    @classmethod
    def _of_table(cls, receipts: Sequence[Receipt], table: TableReceipt | None) -> Outcome:
        causes = table.causes if table is not None else []
        if not causes:
            return cls(receipts=receipts)
        error = (table.error if table is not None else "") or NotMerged.__name__
        return cls(error, " ".join(f"the table: {'; '.join(causes)}".split()), receipts)

    @classmethod
    def of_error(cls, name: str, cause: str) -> Outcome:
        """Return the outcome of a job that failed before it could return receipts."""
        return cls(name, " ".join(cause.split()))

    @property
    def exit_code(self) -> int:
        """0 on success, else 1."""
        return 1 if self.error else 0

    @property
    def line(self) -> str:
        """The outcome as one line for the operator."""
        if self.error:
            return f"failed: {self.error}: {self.cause}"
        counts = total(receipt.counts for receipt in self.receipts)
        return (
            f"done: {len(self.receipts):,} partitions, {counts.objects_in:,} objects "
            f"into {counts.objects_out:,}"
        )

    def document(self) -> dict[str, Any]:
        """Return the content of the record on S3."""
        counts = total(receipt.counts for receipt in self.receipts)
        done = sum(receipt.status == "done" for receipt in self.receipts)
        partitions = {
            "done": done,
            "failed": len(self.receipts) - done,
            "objects_in": counts.objects_in,
            "bytes_in": counts.bytes_in,
            "objects_out": counts.objects_out,
            "bytes_out": counts.bytes_out,
        }
        error = {"error": self.error, "cause": self.cause} if self.error else {}
        used = {"vcpu_hours": round(self.hours.vcpu, 6), "gb_hours": round(self.hours.gb, 6)}
        return error | {"partitions": partitions} | used

    def write(self, place: RunPlace, store: ObjectStore) -> None:
        """Store the record."""
        write_record(place, SPARK_ERROR_NAME if self.error else RESULT_NAME, self.document(), store)
