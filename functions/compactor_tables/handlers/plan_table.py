"""Lambda: plan the work on one table by its metadata, and take the lease for its engine."""

from __future__ import annotations

import json
import os
from typing import Any

from aws_lambda_powertools.metrics import MetricUnit

from compactor.invocation import Event, LambdaContext, logger, metrics
from compactor_tables.costs import ATHENA, SPARK
from compactor_tables.engine_choice import NONE
from compactor_tables.handlers.runtime import glue, prices, request_of, table_metric, table_run

# Environment variable with the engines of the deployment: a JSON object of their names, and of the
# tasks of the state machine that run them.
ENGINES_HERE = "COMPACTOR_TABLE_ENGINES"
_TASKS = json.dumps({SPARK: "emr_serverless", ATHENA: "athena"})


@logger.inject_lambda_context(correlation_id_path="run_id")
@metrics.log_metrics(capture_cold_start_metric=True)
def handler(event: Event, context: LambdaContext) -> dict[str, Any]:
    """Take ``{"run_id", "table", "request": {"bucket", "key"}}``; return the plan.

    ``task`` is what the state machine does for its engine; ``none`` if there is nothing to do, or
    another run or Glue owns the table. A repeated call finds the same order, and that the run
    holds the lease already.
    """
    run = table_run(event, context)
    tasks = json.loads(os.environ.get(ENGINES_HERE, _TASKS))
    request = request_of(event, run.store)
    answer, plan = run.plan(request, tasks, prices())
    logger.info("planned" if plan is not None else "planned before", **answer)
    if plan is not None:
        table_metric(plan.table, "TableFiles", plan.files)
        for name, value in (
            ("TableFiles", plan.files),
            ("FilesToRewrite", plan.estimate()["files"]),
        ):
            metrics.add_metric(name=name, unit=MetricUnit.Count, value=value)
    answer = run.begin(answer, dry_run=request.dry_run, optimizers_on=glue().optimizers_on)
    if answer["engine"] == NONE:
        logger.info("left", table=answer["table"], reason=answer["reason"])
    return {**answer, "task": tasks.get(answer["engine"], NONE)}
