"""Lists as many partitions as the input asks for."""

from __future__ import annotations

import json
import os
from http.client import HTTPConnection
from typing import Any

from tests.statemachine.fake_handlers.script import act


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Write the list to S3 and tell where it is."""
    order = event["input"]
    settings = {
        "clean_up": "keep",
        "spark_engine": "none",
        "emr_cluster_id": None,
        "trouble": {},
        **order,
    }
    act("discover", "", settings, context)
    bucket, run = order["bucket"], f"runs/{event['run_id']}"
    partitions = [
        {"path": f"{n:05}/", "bucket": bucket, "prefix": f"in/{n:05}/", "objects": 3, "bytes": 30}
        for n in range(order["partitions"])
    ]
    body = json.dumps(partitions).encode()
    _put(f"{bucket}/{run}/items.json", body)
    oversized = order.get("oversized", 0)
    return {
        "run_id": event["run_id"],
        "started_at": event["started_at"],
        "settings": settings,
        "items": {"bucket": bucket, "key": order.get("items_key", f"{run}/items.json")},
        "item_count": len(partitions),
        "oversized": {"bucket": bucket, "key": f"{run}/oversized.json"},
        "oversized_count": oversized,
        "run_uri": f"s3://{bucket}/{run}/",
        "max_concurrency": order.get("max_concurrency", 100),
        "results": {"bucket": bucket, "prefix": f"{run}/results"},
        "work": bool(partitions or oversized),
    }


def _put(path: str, body: bytes) -> None:
    """Unsigned, which the embedded S3 accepts: loading boto3 would be half of each test's time."""
    connection = HTTPConnection(os.environ["AWS_ENDPOINT_URL_S3"].partition("//")[2])
    connection.request("PUT", f"/{path}", body=body)
    status = connection.getresponse().status
    connection.close()
    if status != 200:
        raise RuntimeError(f"the list was not written: {status}")
