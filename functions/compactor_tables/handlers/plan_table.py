"""Lambda: measure one table by its metadata, and plan the work on it and its engine."""

from __future__ import annotations

import json
import os
from typing import Any

from aws_lambda_powertools.metrics import MetricUnit

from compactor.invocation import Event, LambdaContext, logger, metrics
from compactor_tables.costs import ATHENA, SPARK
from compactor_tables.handlers.runtime import prices, request_of, table_metric, table_run

# Environment variable with the engines of the deployment, as a JSON list of names.
ENGINES_HERE = "COMPACTOR_TABLE_ENGINES"


@logger.inject_lambda_context(correlation_id_path="run_id")
@metrics.log_metrics(capture_cold_start_metric=True)
def handler(event: Event, context: LambdaContext) -> dict[str, Any]:
    """Take ``{"run_id", "table", "request": {"bucket", "key"}}``; return a summary of the plan."""
    run = table_run(event, context)
    engines = json.loads(os.environ.get(ENGINES_HERE, json.dumps([SPARK, ATHENA])))
    answer, plan = run.plan(request_of(event, run.store), engines, prices())
    logger.info("planned" if plan is not None else "planned before", **answer)
    if plan is not None:
        table_metric(plan.table, "TableFiles", plan.files)
        for name, value in (
            ("TableFiles", plan.files),
            ("FilesToRewrite", plan.estimate()["files"]),
        ):
            metrics.add_metric(name=name, unit=MetricUnit.Count, value=value)
    return answer
