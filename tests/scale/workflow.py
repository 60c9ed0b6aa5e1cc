"""The state machine's definition, walked: what an execution costs, and what its history holds.

A transition is paid for the start and for each state entered. Events are those that Step Functions
documents for each kind of state ("HistoryEvent" in its API reference).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_DEFINITION = Path(__file__).resolve().parents[2] / "statemachine" / "compaction.asl.json"
# Entered and exited; between them scheduled, started and succeeded, or the like.
_EVENTS = {"Task": 5, "Map": 4, "Parallel": 4, "Choice": 2, "Pass": 2, "Succeed": 2, "Wait": 2}
# Of the parent, where it does not go the way of the default.
_USUAL = {
    "AnyPartitions": "CompactPartitions",
    "IsCleanUpWanted": "PlanCleanUp",
    "DidAllSucceed": "Succeeded",
}
_MOST_STATES = 100_000
_Ways = dict[str, list[str]]


@dataclass(frozen=True, slots=True)
class Walked:
    """One execution, from its start to its end."""

    transitions: int
    events: int

    def plus(self, other: Walked) -> Walked:
        """Both."""
        return Walked(self.transitions + other.transitions, self.events + other.events)


NOWHERE = Walked(0, 0)


def parent() -> Walked:
    """The execution of a run."""
    return _walk(_definition(), {})


def child(calls: int) -> Walked:
    """The child execution of a partition that takes so many invocations."""
    return _walk(_child(), _calls("IsPartitionDone", "CompactPartition", "PartitionDone", calls))


def _calls(choice: str, again: str, done: str, calls: int) -> _Ways:
    return {choice: [again] * (calls - 1) + [done]}


def _definition() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_DEFINITION.read_text("utf-8"))
    return found


def _child() -> dict[str, Any]:
    processor: dict[str, Any] = _definition()["States"]["CompactPartitions"]["ItemProcessor"]
    return processor


def _walk(machine: dict[str, Any], chosen: _Ways) -> Walked:
    inside = _states(machine, {name: list(ways) for name, ways in chosen.items()})
    return Walked(1 + inside.transitions, 2 + inside.events)


def _states(machine: dict[str, Any], chosen: _Ways) -> Walked:
    walked = NOWHERE
    name = machine["StartAt"]
    while name:
        state = machine["States"][name]
        walked = walked.plus(Walked(1, _EVENTS[state["Type"]]))
        for branch in state.get("Branches", ()):
            walked = walked.plus(_states(branch, chosen))
        name = _next(name, state, chosen)
        assert walked.transitions < _MOST_STATES, "the walk does not end"
    return walked


def _next(name: str, state: dict[str, Any], chosen: _Ways) -> str:
    if state["Type"] != "Choice":
        return str(state.get("Next", ""))
    ways = {choice["Next"] for choice in state["Choices"]} | {state.get("Default")}
    due = chosen.get(name)
    wanted = due.pop(0) if due else _USUAL.get(name, state.get("Default"))
    assert wanted in ways, f"{name} has no way to {wanted}"
    return str(wanted)
