"""Which run's rewrites can be undone, and the order that does it."""

from __future__ import annotations

from dataclasses import dataclass

from compactor.errors import InvalidInput
from compactor.model import is_run_id
from compactor_tables.maintenance_receipts import DONE, MaintenanceReceipt, read_receipt
from compactor_tables.observing import Watched
from compactor_tables.orders import UNDO, Order

_SUFFIX = ".undo"


@dataclass(frozen=True, slots=True)
class Undoable:
    """A run whose rewrites of a table can be undone.

    Attributes:
        receipt: of that run.
        run_id: that the undoing has, always the same: it is done once, however often it is asked.
    """

    receipt: MaintenanceReceipt
    run_id: str

    def order(self) -> Order:
        """What Spark does: it looks whether anybody else has committed since, and then refuses."""
        return Order(
            run_id=self.run_id,
            table=self.receipt.table,
            engine="spark",
            reason=f"undo run {self.receipt.run_id}",
            steps=(UNDO,),
            measured=self.receipt.undo,
            undo_run=self.receipt.run_id,
        )


def find_undoable(watched: Watched, now: float, run_id: str = "") -> Undoable:
    """The newest run that left a version to return to, which still holds.

    Args:
        watched: the table.
        now: UNIX seconds.
        run_id: of a run; by default the newest in the table's history.

    Raises:
        InvalidInput: there is none, it was undone already, or its version is kept no longer.
    """
    table = watched.table.text
    for one in [run_id] if run_id else _runs(watched):
        receipt = read_receipt(watched.state, one, table, watched.store)
        if receipt is None or not receipt.undo:
            continue
        _require_kept(receipt, now)
        found = Undoable(receipt, _undo_run(receipt.run_id))
        _require_not_undone(found, watched)
        return found
    if run_id:
        raise InvalidInput("run", run_id, f"a run that rewrote something of {table}")
    raise InvalidInput("table", table, "a table of which a run has rewritten something")


def _undo_run(run_id: str) -> str:
    found = run_id + _SUFFIX
    # A run's own id may be as long as one can be.
    return found if is_run_id(found) else found[len(_SUFFIX) :]


def _runs(watched: Watched) -> list[str]:
    """Runs that did something to the table, the newest first."""
    looks = reversed(watched.history().looks)
    return list(dict.fromkeys(one.run_id for one in looks if one.is_compaction and one.run_id))


def _require_kept(receipt: MaintenanceReceipt, now: float) -> None:
    if receipt.undo_until <= now:
        days = (now - receipt.undo_until) / 86_400
        accepted = f"one whose version is still kept; {receipt.undo} was until {days:,.1f} days ago"
        raise InvalidInput("run", receipt.run_id, accepted)


def _require_not_undone(found: Undoable, watched: Watched) -> None:
    done = read_receipt(watched.state, found.run_id, watched.table.text, watched.store)
    if done is not None and done.status == DONE:
        accepted = f"one that was not undone before; run {found.run_id} did"
        raise InvalidInput("run", found.receipt.run_id, accepted)
