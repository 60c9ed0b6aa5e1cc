"""Finds as many partitions with due commits as the input asks for."""

from __future__ import annotations

from typing import Any

from tests.statemachine.fake_handlers.script import act, put


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Write the list to S3 and tell where it is; their paths are none of the run's own."""
    settings = event["settings"]
    act("plan_clean_up", "", settings, context)
    bucket, run = settings["bucket"], f"runs/{event['run_id']}"
    due = [{"path": f"old-{n}/", "entries": 1} for n in range(settings.get("due", 0))]
    put(f"{bucket}/{run}/clean-up.json", due)
    key = settings.get("clean_up_key", f"{run}/clean-up.json")
    clean_up = {"bucket": bucket, "key": key, "partitions": len(due)}
    return {**event, "clean_up": clean_up}
