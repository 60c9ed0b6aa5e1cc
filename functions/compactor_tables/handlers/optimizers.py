"""Lambda: set up a table's optimizers in Glue, and record their runs."""

from __future__ import annotations

import os
from typing import Any

from compactor.errors import InvalidInput
from compactor.invocation import Event, LambdaContext, logger, metrics, traced
from compactor_tables.costs import GLUE_DPU_HOUR
from compactor_tables.handlers.runtime import CLOCK, RunOfTables, glue, prices, table_of
from compactor_tables.optimizers import OptimizerWork

ROLE_VARIABLE = "OPTIMIZER_ROLE_ARN"


@logger.inject_lambda_context(correlation_id_path="run_id")
@traced
@metrics.log_metrics
def handler(event: Event, context: LambdaContext) -> dict[str, Any]:
    """Take ``{"run_id", "table", "request", "plan", "looks"}``; return ``status`` and ``looks``.

    ``status`` is ``more`` while an optimizer is running: look again in a minute.

    Raises:
        InvalidInput: the table is not in Glue, or there is no role for its optimizers.
    """
    run, table = RunOfTables.of(event, context), table_of(event)
    order, role = run.order(event["plan"]), os.environ.get(ROLE_VARIABLE, "")
    if order is None or table.kind != "glue":
        raise InvalidInput("engine", "glue", "glue for tables of Glue, with an order")
    if not role:
        raise InvalidInput(ROLE_VARIABLE, role, "the ARN of a role that Glue's optimizers take")
    work = OptimizerWork(
        order,
        run.store,
        run.state,
        glue(),
        CLOCK,
        role_arn=role,
        dollars_per_dpu_hour=prices().of(GLUE_DPU_HOUR),
    )
    status = work.look(event["looks"])
    logger.info("optimizers", table=table.text, status=status)
    return {"status": status, "looks": event["looks"] + 1}
