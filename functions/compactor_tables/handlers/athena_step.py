"""Lambda: record the result of an Athena query, and return the next query."""

from __future__ import annotations

from typing import Any

import msgspec

from compactor.errors import InvalidInput
from compactor.invocation import Event, LambdaContext, logger, metrics
from compactor_tables.athena_work import AthenaWork
from compactor_tables.aws.athena_queries import row_of
from compactor_tables.costs import ATHENA_TIB
from compactor_tables.handlers.runtime import prices, table_run
from compactor_tables.maintenance_receipts import Position
from compactor_tables.metadata.measured_iceberg import load_iceberg


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
    work = AthenaWork(
        order,
        run.store,
        run.state,
        table=lambda: load_iceberg(run.table, run.store).metadata,
        counts=row_of,
        clock=run.clock,
        dollars_per_tib=prices().of(ATHENA_TIB),
    )
    given = event.get("work")
    position = None if given is None else msgspec.convert(given, Position)
    step = work.advance(position, event.get("answer"))
    logger.info("athena", table=run.table.text, status=step.status, sql=step.sql)
    answer: dict[str, Any] = msgspec.to_builtins(step)
    return answer
