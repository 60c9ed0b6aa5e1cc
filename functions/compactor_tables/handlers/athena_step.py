"""Lambda: record the result of an Athena query, and return the next query."""

from __future__ import annotations

from typing import Any

import msgspec

from compactor.errors import InvalidInput
from compactor.invocation import Event, LambdaContext, logger, metrics
from compactor_tables.athena_work import AthenaWork
from compactor_tables.costs import ATHENA_TIB
from compactor_tables.handlers.runtime import athena, glue, prices, table_run
from compactor_tables.maintenance_receipts import Position
from compactor_tables.metadata.iceberg_writes import IcebergWrites
from compactor_tables.touched_partitions import Touched

# Snapshots never change, so warm calls read each one once.
_written: dict[str, tuple[Touched, ...]] = {}


@logger.inject_lambda_context(correlation_id_path="run_id")
@metrics.log_metrics
def handler(event: Event, context: LambdaContext) -> dict[str, Any]:
    """Take ``{"run_id", "table", "request", "plan", "work"?, "answer"?}``; return the next query.

    ``status`` is ``query`` with ``sql``, ``token`` and ``database``, or ``done``. The state machine
    passes ``work`` back, and as ``answer`` the query's result or the error that it caught.

    Raises:
        LeaseLost: this run no longer holds the table.
        InvalidInput: the table is not in Glue, or there is no order.
    """
    run = table_run(event, context)
    run.leases.require(run.table, run.run_id)
    order = run.order(event["plan"])
    if order is None or run.table.kind != "glue":
        raise InvalidInput("engine", "athena", "athena for tables of Glue, with an order")
    writes = IcebergWrites(run.store, _written)
    dollars = prices().of(ATHENA_TIB)
    work = AthenaWork(order, run.store, run.state, glue(), athena(), writes, run.clock, dollars)
    given = event.get("work")
    position = None if given is None else msgspec.convert(given, Position)
    step = work.advance(position, event.get("answer"))
    logger.info("athena", table=run.table.text, status=step.status, sql=step.sql)
    answer: dict[str, Any] = msgspec.to_builtins(step)
    return answer
