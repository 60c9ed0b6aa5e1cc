"""Whether a table that Spark merges into lags, decided without Spark.

A run's Spark job merges the outputs that this run and earlier runs have committed. A run with
nothing to compact therefore still starts the job if the table lags. The step that publishes other
tables once all partitions are done only checks what the job did.
"""

from __future__ import annotations

from compactor.errors import NotMerged
from compactor.log.identity import read_identity
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings
from compactor.sinks.checks import require_known, require_table
from compactor.sinks.table_catalog import TableCatalog
from compactor.sinks.table_entries import TableLogState
from compactor.sinks.table_log import TableLog
from compactor.sinks.table_receipts import TableReceipt, read_receipt, write_receipt
from compactor.sinks.unnamed_outputs import leftovers
from compactor.sinks.upserts import key_of


def lags(settings: Settings, store: ObjectStore) -> bool:
    """Return True when outputs are committed that the table was not yet seen with.

    Reads only the logs, not the table. A damaged partition log counts as lagging too, so that the
    publisher reports it.

    Raises:
        IntegrityError: the table log is damaged.
    """
    identity = read_identity(settings, store)
    if identity is None:
        return False
    state = TableLog(store, settings, identity.log_id).load()
    if state.published < state.last:
        return True
    return any(one.outputs or one.fault for one in leftovers(state, settings, store))


def look_at_merge(
    settings: Settings, store: ObjectStore, catalog: TableCatalog, run_id: str
) -> TableReceipt:
    """Return what a run's Spark job did for its table, or that there was nothing to do.

    Args:
        settings: of the run; they name a table with a key.
        store: where the state is.
        catalog: of the table.
        run_id: of the run.

    Returns:
        The receipt, which is also stored. Its ``error`` says why not everything is merged.

    Raises:
        IntegrityError: the table does not match its log.
        InvalidInput: the table was started with another key.
        TransientStoreError: the catalog does not answer.
    """
    left = read_receipt(settings, run_id, store)
    if left is not None and left.status == "done":
        return left
    receipt = left or TableReceipt(table=catalog.address)
    if left is None and not lags(settings, store):
        _look_at(settings, store, catalog, receipt)
        receipt.status = "done"
    elif not receipt.error:
        receipt.status, receipt.error = "failed", NotMerged.__name__
        receipt.cause = "Spark has not merged all that is committed; the next run does"
    write_receipt(receipt, settings, run_id, store)
    return receipt


def _look_at(
    settings: Settings, store: ObjectStore, catalog: TableCatalog, receipt: TableReceipt
) -> None:
    identity = read_identity(settings, store)
    if identity is None:
        return
    log = TableLog(store, settings, identity.log_id)
    state: TableLogState = log.load()
    require_table(state, catalog.address, key_of(settings))
    table = catalog.load(identity.log_id)
    if table is not None and table.last > state.last:
        log.refresh(state)
    require_known(table, state, catalog.address)
    receipt.add_aside(state.aside_lines)
    if table is not None:
        receipt.last, receipt.at = table.last, table.version
