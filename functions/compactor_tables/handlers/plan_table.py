"""Lambda: measure one table by its metadata, and plan the work on it and its engine."""

from __future__ import annotations

import json
import os
from typing import Any

import msgspec
from aws_lambda_powertools.metrics import MetricUnit

from compactor.invocation import Event, LambdaContext, logger, metrics, traced
from compactor.settings.tables import parse_table
from compactor_tables import document_keys as places
from compactor_tables.aws.athena_queries import AthenaScans
from compactor_tables.costs import ENGINES
from compactor_tables.due_tables import decide_due
from compactor_tables.engine_choice import NONE
from compactor_tables.handlers.runtime import CLOCK, prices, table_metric, table_store
from compactor_tables.lease import Leases
from compactor_tables.metadata.measuring import measure_table
from compactor_tables.orders import Order, find_order, write_order
from compactor_tables.table_planning import TablePlan, foretold_by, plan_table
from compactor_tables.worklist import read_stored_request

# Environment variable with the engines of the deployment, as a JSON list of names.
ENGINES_HERE = "COMPACTOR_TABLE_ENGINES"


@logger.inject_lambda_context(correlation_id_path="run_id")
@traced
@metrics.log_metrics(capture_cold_start_metric=True)
def handler(event: Event, context: LambdaContext) -> dict[str, Any]:
    """Take ``{"run_id", "table", "request": {"bucket", "key"}}``; return a summary of the plan.

    The order is stored in any case; if its engine is ``none``, it has the reason. A run that is
    started again keeps its earlier order, because queries and commits are identified by it.

    Raises:
        InvalidInput: there is no such table, or it may not be read.
        IntegrityError: its metadata contradicts itself.
        TransientStoreError: the table changed while it was read, or a service did not answer.
    """
    store = table_store(context)
    request = read_stored_request(event["request"]["bucket"], event["request"]["key"], store)
    address, now = parse_table(event["table"]), CLOCK.now()
    bucket, key = places.order_key(request.state, event["run_id"], address)
    earlier = find_order(bucket, key, store)
    if earlier is not None and earlier.engine != NONE:
        logger.info("planned before", table=earlier.table, engine=earlier.engine)
        return _answer(earlier, foretold_by(earlier, prices()), bucket, key)
    measure = measure_table(address, store, now)
    available = json.loads(os.environ.get(ENGINES_HERE, json.dumps(ENGINES)))
    matched = request.policies.of(address.text)
    plan = plan_table(measure, matched, now, available, prices=prices())
    if request.only_when_due and plan.engine != NONE:
        rule = matched.rule
        lease = Leases(store, request.state, CLOCK).look(address)
        maintained = lease.maintained if lease is not None else None
        workgroup = rule.athena_workgroup
        scans = AthenaScans(workgroup, address) if workgroup is not None else None
        due = decide_due(rule, measure, maintained, now, scans)
        logger.info("due" if due.is_due else "not due", table=address.text, reason=due.reason)
        if not due.is_due:
            plan = _left(plan, f"not due: {due.reason}")
    order = plan.order(event["run_id"])
    write_order(order, request.state, store)
    _count(plan)
    return _answer(order, plan.foretold(), bucket, key)


def _answer(order: Order, foretold: dict[str, Any], bucket: str, key: str) -> dict[str, Any]:
    return {
        "run_id": order.run_id,
        "table": order.table,
        "engine": order.engine,
        "reason": order.reason,
        "rule": order.rule,
        "order": {"bucket": bucket, "key": key, "uri": f"s3://{bucket}/{key}"},
        "foretold": foretold,
    }


def _left(plan: TablePlan, reason: str) -> TablePlan:
    """Return the plan, and its order, with the engine ``none`` and a reason."""
    order = msgspec.structs.replace(plan.template, engine=NONE, reason=reason)
    return msgspec.structs.replace(plan, engine=NONE, reason=reason, template=order)


def _count(plan: TablePlan) -> None:
    table_metric(plan.table, "TableFiles", plan.files)
    for name, value in (("TableFiles", plan.files), ("FilesToRewrite", plan.foretold()["files"])):
        metrics.add_metric(name=name, unit=MetricUnit.Count, value=value)
    logger.info(
        "planned",
        table=plan.table,
        version=plan.version,
        engine=plan.engine,
        reason=plan.reason,
        rule=plan.rule,
        prices=plan.prices,
        **plan.foretold(),
    )
