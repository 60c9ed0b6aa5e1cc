"""Lambda: publish committed outputs to the table, until the invocation's time runs out."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.metrics import MetricUnit

from compactor.catalogs.opening import open_catalog
from compactor.clock import SystemClock
from compactor.errors import NotMerged
from compactor.invocation import (
    Event,
    LambdaContext,
    LambdaDeadline,
    logger,
    metrics,
)
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings
from compactor.sinks.merged_tables import look_at_merge
from compactor.sinks.table_publisher import Publishing, record_publish
from compactor.sinks.table_receipts import TableReceipt, read_receipt
from compactor_handlers.runtime import trusted_store


@logger.inject_lambda_context(correlation_id_path="run_id")
@metrics.log_metrics
def handler(event: Event, context: LambdaContext) -> dict[str, Any]:
    """Take ``{"run_id", "settings"}``; return the state of the table.

    ``status`` is ``more`` when time ran out between two commits of the table: the state machine
    then calls again. Earlier calls of the run are counted by their receipt.

    Raises:
        IntegrityError: the table and its log disagree; nothing was touched.
        InvalidInput: an output does not fit the table; it is not in the table log.
    """
    settings = Settings.from_input(event["settings"])
    store = trusted_store(settings, context)
    if settings.upsert_key:
        return _merged(settings, store, event["run_id"])
    work = Publishing(
        settings=settings,
        store=store,
        catalog=open_catalog(settings, store),
        clock=SystemClock(),
        deadline=LambdaDeadline(context),
        run_id=event["run_id"],
    )
    before = read_receipt(settings, work.run_id, store) or TableReceipt()
    earlier = (before.outputs, before.rows, before.conflicts)
    receipt = record_publish(work, before)
    _count(receipt, earlier)
    return _answer(receipt, event["run_id"])


def _merged(settings: Settings, store: ObjectStore, run_id: str) -> dict[str, Any]:
    """Return the state of a table into which the run's Spark job has merged.

    Raises:
        NotMerged: the table lacks some of the committed outputs.
    """
    receipt = look_at_merge(settings, store, open_catalog(settings, store), run_id)
    if receipt.error:
        raise NotMerged(f"{receipt.error}: {receipt.cause}")
    _count(receipt, (0, 0, 0))
    return _answer(receipt, run_id)


def _answer(receipt: TableReceipt, run_id: str) -> dict[str, Any]:
    return {
        "run_id": run_id,
        "status": receipt.status,
        "table": receipt.table,
        "outputs": receipt.outputs,
        "rows": receipt.rows,
        "last": receipt.last,
        "at": receipt.at,
        "faults": receipt.faults,
    }


def _count(receipt: TableReceipt, before: tuple[int, int, int]) -> None:
    """Add the metrics of one call, and log its faults.

    Args:
        receipt: of all calls in this run.
        before: outputs, rows and conflicts of the calls before this one.
    """
    now = (receipt.outputs, receipt.rows, receipt.conflicts)
    names = ("PublishedOutputs", "PublishedRows", "TableConflicts")
    for name, value, earlier in zip(names, now, before, strict=True):
        metrics.add_metric(name=name, unit=MetricUnit.Count, value=value - earlier)
    for line in receipt.faults:
        logger.error("left out of the table", reason=line)
    logger.info("published", table=receipt.table, outputs=receipt.outputs, status=receipt.status)
