"""Carries out an order in this process."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from compactor.failures import first_line
from compactor.ports import Clock, ObjectStore
from compactor.settings.tables import DELTA, TableAddress
from compactor.settings.uris import S3Uri
from compactor_tables.costs import WORKER
from compactor_tables.lease import Leases
from compactor_tables.maintenance_job import Maintenance
from compactor_tables.maintenance_receipts import (
    FAILED,
    MaintenanceReceipt,
    read_receipt,
    write_receipt,
)
from compactor_tables.orders import Order
from compactor_tables.table_engine import Tables, Watch


def carry_out(
    order: Order,
    state: S3Uri,
    store: ObjectStore,
    clock: Clock,
    *,
    say: Callable[[str], None],
    watch: Watch = lambda done, total: None,
) -> MaintenanceReceipt:
    """Do an order, store its receipt, and return it; errors are recorded in it.

    Args:
        order: whose engine is the worker.
        state: where the run's documents lie.
        store: of the state and of the table.
        clock: of this machine.
        say: receives a line for each partition and step.
        watch: receives how many files of a partition have been read.
    """
    receipt = read_receipt(state, order.run_id, order.table, store) or MaintenanceReceipt(
        table=order.table, run_id=order.run_id, engine=WORKER
    )
    save = partial(write_receipt, state=state, store=store)
    try:
        table = _open(order.address, store, clock, watch)
    except Exception as error:
        receipt.status, receipt.error = FAILED, type(error).__name__
        receipt.cause = first_line(error)
        save(receipt)
        return receipt
    ours = partial(Leases(store, state, clock).require, order.address, order.run_id)
    work = Maintenance(order, table, receipt, save=save, say=say, now=clock.now, require_ours=ours)
    return work.run()


def _open(address: TableAddress, store: ObjectStore, clock: Clock, watch: Watch) -> Tables:
    if address.kind == DELTA:
        from compactor_tables.rewriting.delta import DeltaRewrites  # noqa: PLC0415 - one of two

        return DeltaRewrites(address, store, clock, watch)
    from compactor_tables.rewriting.iceberg import IcebergRewrites  # noqa: PLC0415 - one of two

    return IcebergRewrites(address, store, watch)
