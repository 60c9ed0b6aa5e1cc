"""Pretends to delete."""

from __future__ import annotations

from typing import Any

from tests.statemachine.fake_handlers.script import act


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Only write the call down."""
    act("clean_up", event["partition"]["path"], event["settings"], context)
    return {"deleted": event["partition"]["objects"]}
