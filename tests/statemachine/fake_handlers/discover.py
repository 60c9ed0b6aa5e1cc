"""Lists as many partitions as the input asks for, in as many calls as the script says."""

from __future__ import annotations

from typing import Any

from tests.statemachine.fake_handlers.script import act, put


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Write the list to S3 and tell where it is."""
    order = event["input"]
    settings = {
        "clean_up": "keep",
        "spark_engine": "none",
        "trouble": {},
        **order,
    }
    if act("discover", "", settings, context) == "more":
        return {"status": "more", "partitions": 9, "counted": 1}
    bucket, run = order["bucket"], f"runs/{event['run_id']}"
    partitions = [
        {"path": f"{n:05}/", "bucket": bucket, "prefix": f"in/{n:05}/", "objects": 3, "bytes": 30}
        for n in range(order["partitions"])
    ]
    put(f"{bucket}/{run}/items.json", partitions)
    oversized = order.get("oversized", 0)
    return {
        "status": "done",
        "run_id": event["run_id"],
        "started_at": event["started_at"],
        "settings": settings,
        "items": {"bucket": bucket, "key": order.get("items_key", f"{run}/items.json")},
        "item_count": len(partitions),
        "oversized": {"bucket": bucket, "key": f"{run}/oversized.json"},
        "oversized_count": oversized,
        "run_uri": f"s3://{bucket}/{run}/",
        "max_concurrency": order.get("max_concurrency", 100),
        "batch_partitions": order.get("batch_partitions", 1),
        "results": {"bucket": bucket, "prefix": f"{run}/results"},
        "spark": bool(oversized),
        "work": bool(partitions or oversized),
    }
