"""Pretends to compact; its counts grow from call to call, as the real ones do."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from compactor.partition.batches import Batch
from tests.statemachine.fake_handlers.script import act


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Answer done, or more where the script says so; batches are the real ones."""

    def compact(one: Mapping[str, Any]) -> dict[str, Any]:
        partition = one["partition"]
        step = act("compact_partition", partition["path"], one["settings"], context)
        status = {"more": "more", "nonsense": "perhaps"}.get(step, "done")
        done = 1 if status == "more" else 3
        nonsense.extend([status] * (status == "perhaps"))
        return {**one, "status": status, "counts": {"objects_in": done}}

    nonsense: list[str] = []
    endless: Any = SimpleNamespace(remaining_seconds=lambda: math.inf)
    batch = Batch.from_state(event["batch"])
    answer = batch.worked_off(compact, endless, event["attempt"]).to_state()
    return {**answer, "status": nonsense[0] if nonsense else answer["status"]}
