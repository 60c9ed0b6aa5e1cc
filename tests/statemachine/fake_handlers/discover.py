"""Lists as many partitions as the input asks for."""

from __future__ import annotations

from typing import Any

from tests.statemachine.fake_handlers.script import act, put


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Write the list to S3 and tell where it is, and what workers will leave to Spark."""
    order = event["input"]
    settings = {
        "delete_after": None,
        "spark_engine": "none",
        "trouble": {},
        **order,
    }
    act("discover", "", settings, context)
    bucket, run = order["bucket"], f"runs/{event['run_id']}"
    partitions = [
        {"path": f"{n:05}/", "bucket": bucket, "prefix": f"in/{n:05}/"}
        for n in range(order["partitions"])
    ]
    put(f"{bucket}/{run}/items.json", partitions)
    for n in range(order.get("oversized", 0)):
        # As a worker leaves it.
        put(f"{bucket}/{run}/oversized/{n}.json", [])
    return {
        "run_id": event["run_id"],
        "started_at": event["started_at"],
        "settings": settings,
        "items": {"bucket": bucket, "key": order.get("items_key", f"{run}/items.json")},
        "item_count": len(partitions),
        "oversized": {"bucket": bucket, "prefix": f"{run}/oversized/"},
        "run_uri": f"s3://{bucket}/{run}/",
        "max_concurrency": order.get("max_concurrency", 100),
        "batch_partitions": order.get("batch_partitions", 1),
        "results": {"bucket": bucket, "prefix": f"{run}/results"},
        "lags": order.get("lags", False),
    }
