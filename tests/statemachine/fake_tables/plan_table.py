"""Plans as the input says: one engine a table, partitions by number."""

from __future__ import annotations

import json
from typing import Any

from compactor.clock import SystemClock
from compactor.s3.store import S3Store, make_client
from compactor.settings.uris import parse_location
from compactor_tables import document_keys as places
from compactor_tables.orders import Condition, Order, PartitionOrder, write_order
from compactor_tables.table_run import TableRun
from tests.statemachine.fake_handlers.script import act
from tests.statemachine.fake_tables.list_tables import SCRIPT
from tests.statemachine.fake_tables.services import optimizers_on


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Write the order to S3, and answer with the plan."""
    store = S3Store(make_client())
    where = event["request"]
    given = json.loads(store.get(where["bucket"], where["key"].replace(*SCRIPT)))
    act("plan_table", event["table"].replace("/", "-"), {"trouble": {}, **given}, context)
    engine = given["engines"][event["table"]]
    plan = {"run_id": event["run_id"], "table": event["table"], "engine": engine, "rule": "rule 1"}
    task = "emr_serverless" if engine == "spark" else engine
    if engine == "none":
        return {
            **plan,
            "reason": "it does not pay",
            "order": None,
            "estimate": {},
            "task": task,
        }
    partitions = tuple(
        PartitionOrder(f"kind={n}", where=(Condition("kind", "identity", f"{n}"),), files=9)
        for n in range(given.get("partitions", 2))
    )
    order = Order(
        run_id=event["run_id"],
        table=event["table"],
        engine=engine,
        steps=("rewrite", "expire"),
        partitions=partitions,
    )
    state = parse_location(given["s3_state_uri"])
    uri = write_order(order, state, store)
    bucket, key = places.order_key(state, order.run_id, order.address)
    estimate = {"files": 9 * len(partitions), "bytes": 900, "dollars": 0.01}
    where = {"bucket": bucket, "key": key, "uri": uri}
    plan |= {"reason": "as told", "order": where, "estimate": estimate, "task": task}
    table_run = TableRun(event["run_id"], order.address, state, store, SystemClock())
    dry_run = given.get("dry_run", False)
    begun = table_run.begin(plan, dry_run=dry_run, optimizers_on=optimizers_on)
    return {**begun, "task": task if begun["engine"] != "none" else "none"}
