"""Finds the run whose rewrites can be undone, and makes the order that undoes them."""

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
        run_id: of the undo. It is derived from that run's id, so a repeated undo is the same run.
    """

    receipt: MaintenanceReceipt
    run_id: str

    def order(self) -> Order:
        """Return the order for Spark, which refuses if another writer has committed since."""
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
    """Return the newest run whose rewrites can be undone.

    Args:
        watched: the table.
        now: UNIX seconds.
        run_id: of a certain run; by default the newest one in the table's history.

    Raises:
        InvalidInput: there is no such run, it was undone already, or its version is no longer kept.
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
    # With the suffix, the id of the run may exceed the maximum length.
    return found if is_run_id(found) else found[len(_SUFFIX) :]


def _runs(watched: Watched) -> list[str]:
    """Return the runs that rewrote files of the table, newest first."""
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
