"""The end of a table in a run: its outcome, its history, and the table given back, in that order.

A run that died left its lease, and perhaps a receipt that no history has. The next run over
the table, whatever it does to it, records it: else an undo would not find what was rewritten, and
averages would go on over it. Each step may be done twice: of two notes of one run one counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
        store: where the state is.
        tag: tags what a receipt says was replaced, where the table's rule wants that.
    """

    state: S3Uri
    table: TableAddress
    store: ObjectStore
    clock: Clock
    tag: Callable[[MaintenanceReceipt], None]

    def end(self, outcome: Outcome, receipt: MaintenanceReceipt | None) -> list[str]:
        """Leave an outcome for the report, note what was done, and give the table back.

        Args:
            outcome: of the table in this run.
            receipt: of the run; None where no engine left one.

        Returns:
            Ids of runs that died, and whose work is recorded now.

        Raises:
            IntegrityError: the lease, or the history, is damaged.
        """
        write_outcome(outcome, self.state, self.store)
        leases = Leases(self.store, self.state, self.clock)
        dead = leases.dead(self.table, outcome.run_id)
        records = [one for one in self._receipts(dead) if one.run_id != outcome.run_id]
        for one in records:
            if one.is_sound:
                self.tag(one)
            self._note(one)
        if receipt is not None:
            self._note(receipt)
        # Last of all: the next run finds a table whose history is complete.
        leases.release(self.table, outcome.run_id, recorded=dead)
        return [one.run_id for one in records]

    def _receipts(self, runs: tuple[str, ...]) -> Iterator[MaintenanceReceipt]:
        for run_id in runs:
            try:
                found = read_receipt(self.state, run_id, self.table.text, self.store)
            except IntegrityError:
                # A later version of this program wrote it; it keeps no table from anybody.
                continue
            if found is not None:
                yield found

    def _note(self, receipt: MaintenanceReceipt) -> None:
        note_maintenance(Watched(self.state, self.table, self.store), receipt, self.clock.now())
