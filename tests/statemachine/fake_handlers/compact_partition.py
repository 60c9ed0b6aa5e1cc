"""Pretends to compact; its counts grow from call to call, as the real ones do."""

from __future__ import annotations

from typing import Any

from tests.statemachine.fake_handlers.script import act


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Answer done, or more where the script says so."""
    partition = event["partition"]
    step = act("compact_partition", partition["path"], event["settings"], context)
    status = {"more": "more", "nonsense": "perhaps"}.get(step, "done")
    done = 1 if status == "more" else partition["objects"]
    return {**event, "status": status, "counts": {"objects_in": done}}
