"""Pretends to delete; its counts grow from call to call, as the real ones do."""

from __future__ import annotations

from typing import Any

from tests.statemachine.fake_handlers.script import act


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Answer done, or more where the script says so."""
    step = act("clean_up", event["partition"]["path"], event["settings"], context)
    status = {"more": "more", "nonsense": "perhaps"}.get(step, "done")
    deleted = event.get("counts", {}).get("deleted", 0) + 3
    return {**event, "status": status, "counts": {"deleted": deleted}}
