"""Pretends to compact."""

from __future__ import annotations

from typing import Any

from tests.statemachine.fake_handlers.script import act


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Answer done, or more where the script says so."""
    partition = event["partition"]
    step = act("compact_partition", partition["path"], event["settings"], context)
    status = {"more": "more", "nonsense": "perhaps"}.get(step, "done")
    return {**event, "status": status, "counts": {"objects_in": partition["objects"]}}
