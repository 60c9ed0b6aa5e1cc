"""Lambda: take the lease on a table for its engine, or leave the table to its owner."""

from __future__ import annotations

from typing import Any

from compactor.invocation import Event, LambdaContext, logger, metrics
from compactor_tables.engine_choice import NONE
from compactor_tables.handlers.runtime import glue, request_of, table_run


@logger.inject_lambda_context(correlation_id_path="run_id")
@metrics.log_metrics
def handler(event: Event, context: LambdaContext) -> dict[str, Any]:
    """Take ``{"run_id", "table", "request", "plan"}``; return the plan as it is carried out."""
    run = table_run(event, context)
    dry_run = request_of(event, run.store).dry_run
    plan = run.begin(
        event["plan"], dry_run=dry_run, optimizers_on=lambda table: glue().optimizers_on(table)
    )
    if plan["engine"] == NONE:
        logger.info("left", table=plan["table"], reason=plan["reason"])
    return plan
