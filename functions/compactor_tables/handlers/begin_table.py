"""Lambda: take the lease on a table for its engine, or leave the table to its owner."""

from __future__ import annotations

from typing import Any

import msgspec

from compactor.decoding import decoder
from compactor.errors import IntegrityError
from compactor.invocation import Event, LambdaContext, logger, metrics, traced
from compactor_tables.handlers.runtime import CLOCK, RunOfTables, StoredRequest, glue, table_of
from compactor_tables.lease import LeaseHeld, Leases

NONE = "none"
_decode_request = decoder(StoredRequest)


@logger.inject_lambda_context(correlation_id_path="run_id")
@traced
@metrics.log_metrics
def handler(event: Event, context: LambdaContext) -> dict[str, Any]:
    """Take ``{"run_id", "table", "request", "plan"}``; return the plan as it is carried out.

    ``plan`` is plan_table's answer. The answer is the plan with ``lease``, or with the engine
    ``none`` and a ``reason`` if there is nothing to do, or another run or Glue owns the table. A
    repeated call finds that it holds the lease already, and returns the same.
    """
    plan, run = event["plan"], RunOfTables.of(event, context)
    reason = _left(event, run)
    if reason:
        logger.info("left", table=event["table"], reason=reason)
        return {**plan, "engine": NONE, "reason": reason}
    try:
        lease = Leases(run.store, run.state, CLOCK).take(
            table_of(event), run.run_id, engine=plan["engine"]
        )
    except LeaseHeld as held:
        return {**plan, "engine": NONE, "reason": str(held)}
    return {**plan, "lease": {"run_id": lease.run_id, "until": lease.until}}


def _left(event: Event, run: RunOfTables) -> str:
    """Return why the table is left as it is; empty if its engine shall run."""
    plan = event["plan"]
    if plan["engine"] == NONE:
        return plan.get("reason") or "nothing to do"
    where = event["request"]
    body = run.store.get(where["bucket"], where["key"])
    try:
        dry_run = _decode_request(body).dry_run
    except (msgspec.MsgspecError, ValueError) as error:
        raise IntegrityError(
            f"s3://{where['bucket']}/{where['key']} is damaged: {error}"
        ) from error
    if dry_run:
        return f"a dry run; {plan['engine']} would do it: {plan.get('reason', '')}".rstrip(": ")
    table = table_of(event)
    on = glue().optimizers_on(table) if table.kind == "glue" else []
    if on:
        return (
            f"Glue owns it: its optimizers {', '.join(on)} are on; switch them off, or leave the"
            " table by a rule"
        )
    return ""
