"""Stand-ins for Spark and Athena, which the engine calls.

What a table is to come to is in its name: ``fails``, ``dies``, ``half`` or ``gives-way``. Handlers
import nothing of this module, which loads the interpreter.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from compactor.s3.store import S3Store, make_client
from compactor.settings.uris import S3Uri
from compactor_local.interpreter import BridgeError
from compactor_tables.maintenance_receipts import (
    MaintenanceReceipt,
    RewrittenPartition,
    write_receipt,
)
from compactor_tables.orders import Order, read_order
from tests.statemachine.fake_tables.services import KeptAthena


def spark(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """``emr-serverless:startJobRun.sync`` over the order that the job is given."""
    submit = parameters["JobDriver"]["SparkSubmit"]
    name, uri = submit["EntryPointArguments"]
    assert (name, submit["EntryPoint"]) == ("--order", "s3://local/spark/maintain_tables.py")
    if not carry_out(uri):
        told = json.dumps({"JobRunId": "j", "State": "FAILED", "StateDetails": "exit status 1"})
        raise BridgeError("States.TaskFailed", told)
    return {"JobRunId": "j", "State": "SUCCESS"}


def carry_out(order_uri: str) -> bool:
    """Leave the receipt of an order; return whether the job succeeded."""
    store = S3Store(make_client())
    bucket, _, key = order_uri.removeprefix("s3://").partition("/")
    order = read_order(bucket, key, store)
    receipt = _receipt(order)
    if "dies" not in order.table:
        state = S3Uri(bucket, key.partition("runs/")[0])
        write_receipt(receipt, state, store)
    return "fails" not in order.table and "dies" not in order.table


def _receipt(order: Order) -> MaintenanceReceipt:
    statuses = {"fails": "rolled back", "gives-way": "gave way"}
    status = next((end for word, end in statuses.items() if word in order.table), "done")
    half = order.partitions[:1] if "half" in order.table else order.partitions
    return MaintenanceReceipt(
        table=order.table,
        run_id=order.run_id,
        engine="spark",
        status="more" if "half" in order.table else "failed" if "fails" in order.table else "done",
        partitions=[
            RewrittenPartition(
                name=one.name,
                status=status,
                why="" if status == "done" else "as its name says",
                files=9,
                bytes=900,
                into=1,
                into_bytes=800,
                rows=5,
            )
            for one in half
        ],
        expired=3,
    )


def athena(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """``athena:startQueryExecution.sync`` over the kept table."""
    assert parameters["WorkGroup"] == "local"
    assert parameters["QueryExecutionContext"] == {
        "Catalog": "AwsDataCatalog",
        "Database": "bronze",
    }
    kept = KeptAthena.loaded()
    ended = kept.run(parameters["QueryString"], parameters["ClientRequestToken"], time.time())
    kept.save()
    if "Error" in ended:
        raise BridgeError(ended["Error"], ended["Cause"])
    return ended
