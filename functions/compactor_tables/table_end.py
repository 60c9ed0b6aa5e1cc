"""Ends a run's work on a table: stores its outcome and history, then releases the lease.

A run that died leaves its lease, and perhaps a receipt that is not in the history. The next run on
the table records that receipt, whatever its own work: else rolling averages would continue across
its rewrite. Every step may be repeated: of two history entries of one run, the later one counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from compactor.errors import IntegrityError
from compactor.ports import Clock, ObjectStore
from compactor.settings.tables import TableAddress
from compactor.settings.uris import S3Uri
from compactor_tables.lease import Leases
from compactor_tables.maintenance_receipts import MaintenanceReceipt, read_receipt
from compactor_tables.observing import Watched, note_maintenance
from compactor_tables.outcomes import Outcome, write_outcome


@dataclass(frozen=True, slots=True)
class Ending:
    """A table whose engine has ended, or never began.

    Attributes:
        state: of the run.
        store: where the state lies.
    """

    state: S3Uri
    table: TableAddress
    store: ObjectStore
    clock: Clock

    def end(self, outcome: Outcome, receipt: MaintenanceReceipt | None) -> list[str]:
        """Store the outcome for the report, record the work in the history, release the lease.

        Args:
            outcome: of the table in this run.
            receipt: of the run; None if no engine left one.

        Returns:
            Ids of dead runs whose work is recorded now.

        Raises:
            IntegrityError: the lease, or the history, is damaged.
        """
        write_outcome(outcome, self.state, self.store)
        leases = Leases(self.store, self.state, self.clock)
        dead = leases.dead(self.table, outcome.run_id)
        records = [one for one in self._receipts(dead) if one.run_id != outcome.run_id]
        for one in records:
            self._note(one)
        if receipt is not None:
            self._note(receipt)
        # Last, so that the next run finds a complete history.
        leases.release(self.table, outcome.run_id, recorded=dead)
        return [one.run_id for one in records]

    def _receipts(self, runs: tuple[str, ...]) -> Iterator[MaintenanceReceipt]:
        for run_id in runs:
            try:
                found = read_receipt(self.state, run_id, self.table.text, self.store)
            except IntegrityError:
                # Written by a later version of this program, or damaged: must not block the table.
                continue
            if found is not None:
                yield found

    def _note(self, receipt: MaintenanceReceipt) -> None:
        note_maintenance(Watched(self.state, self.table, self.store), receipt, self.clock.now())
