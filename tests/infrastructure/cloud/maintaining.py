"""What stands in for EMR and Athena where a deployed stack maintains tables.

Spark's job is a process of its own, whose access key is its own: it asks S3 for what the real one
asks for, and rewrites a table of Delta whose data files are lines of text. Athena finds nothing to
rewrite.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from compactor.clock import SystemClock
from compactor.s3.store import S3Store, make_client
from compactor.settings.uris import S3Uri
from compactor_local.interpreter import BridgeError
from compactor_tables.lease import Leases
from compactor_tables.maintenance_receipts import (
    MaintenanceReceipt,
    RewrittenPartition,
    write_receipt,
)
from compactor_tables.orders import PartitionOrder, read_order

SPARK_JOB = "spark-job"
"""The access key of the Spark job."""


def spark(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """``emr-serverless:startJobRun.sync``."""
    flag, uri = parameters["JobDriver"]["SparkSubmit"]["EntryPointArguments"]
    assert flag == "--order"
    # Its own process: what it sends is signed with its own key.
    environment = {**os.environ, "AWS_ACCESS_KEY_ID": SPARK_JOB}
    command = [sys.executable, "-m", __name__, uri]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise BridgeError("States.TaskFailed", ended.stderr[-2_000:])
    return {"JobRunId": "job", "State": "SUCCESS"}


def athena(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """``athena:startQueryExecution.sync``: it scans, and leaves the table as it is."""
    assert parameters["QueryString"].partition(" ")[0] in {"OPTIMIZE", "ALTER", "VACUUM"}
    statistics = {"DataScannedInBytes": 0, "EngineExecutionTimeInMillis": 700}
    status = {"State": "SUCCEEDED"}
    return {"QueryExecution": {"QueryExecutionId": "q", "Status": status, "Statistics": statistics}}


def main(uri: str) -> None:
    """Carry an order out."""
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    store = S3Store(make_client())
    order = read_order(bucket, key, store)
    state = S3Uri(bucket, key.partition("runs/")[0])
    Leases(store, state, SystemClock()).require(order.address, order.run_id)
    place = order.address.location
    assert place is not None
    receipt = MaintenanceReceipt(table=order.table, run_id=order.run_id, engine="spark")
    receipt.undo = f"{_versions(place, store) - 1}"
    for one in order.partitions:
        receipt.partitions.append(_rewritten(one, place, store, receipt))
    receipt.status = "done"
    write_receipt(receipt, state, store)


def _versions(place: S3Uri, store: S3Store) -> int:
    pages = store.list_objects(place.bucket, f"{place.prefix}_delta_log/")
    return sum(len(page) for page in pages)


def _rewritten(
    one: PartitionOrder, place: S3Uri, store: S3Store, receipt: MaintenanceReceipt
) -> RewrittenPartition:
    values = {each.column: each.value for each in one.where}
    number = _versions(place, store)
    logs = [store.get(place.bucket, _entry(place, at)) for at in range(number)]
    actions = [json.loads(line) for log in logs for line in log.splitlines()]
    old = [each["add"] for each in actions if each.get("add", {}).get("partitionValues") == values]
    body = b"".join(store.get(place.bucket, place.prefix + each["path"]) for each in old)
    path = f"{one.name}/rewritten.txt"
    store.create(place.bucket, place.prefix + path, body)
    added = {**old[0], "path": path, "size": len(body), "dataChange": False}
    gone = [{"remove": {"path": each["path"], "dataChange": False}} for each in old]
    lines = "\n".join(map(json.dumps, [{"add": added}, *gone])).encode()
    store.create(place.bucket, _entry(place, number), lines)
    return RewrittenPartition(
        name=one.name,
        status="done",
        files=len(old),
        bytes=sum(each["size"] for each in old),
        into=1,
        into_bytes=len(body),
        rows=body.count(b"\n"),
        before=f"{number - 1}",
        after=f"{number}",
    )


def _entry(place: S3Uri, version: int) -> str:
    return f"{place.prefix}_delta_log/{version:020}.json"


if __name__ == "__main__":
    main(sys.argv[1])
