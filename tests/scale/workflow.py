"""The state machine's definition, walked: what an execution costs, and what its history holds.

A transition is paid for the start and for each state entered. Events are those that Step Functions
documents for each kind of state ("HistoryEvent" in its API reference).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_DEFINITION = Path(__file__).resolve().parents[2] / "statemachine" / "compaction.asl.json"
# Entered and exited; between them scheduled, started and succeeded, or the like.
_EVENTS = {"Task": 5, "Map": 4, "Parallel": 4, "Choice": 2, "Pass": 2, "Succeed": 2, "Wait": 2}
# Of the parent, where it does not go the way of the default.
_USUAL = {
    "IsThereWork": "ProcessPartitions",
    "AnyItems": "CompactPartitions",
    "IsCleanUpWanted": "PlanCleanUp",
    "DidAllSucceed": "Succeeded",
}
_MOST_STATES = 100_000


@dataclass(frozen=True, slots=True)
class Walked:
    """One execution, from its start to its end."""

    transitions: int
    events: int


NOWHERE = Walked(0, 0)


def parent(discoveries: int) -> Walked:
    """The execution of a run whose discovery takes so many invocations."""
    return _walk(_definition(), {}, {"Discover": discoveries})


def child(calls: int) -> Walked:
    """The child execution of a partition that takes so many invocations."""
    return _walk(_child(), {"IsPartitionDone": "PartitionDone"}, {"CompactPartition": calls})


def _definition() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_DEFINITION.read_text("utf-8"))
    return found


def _child() -> dict[str, Any]:
    for branch in _definition()["States"]["ProcessPartitions"]["Branches"]:
        if "CompactPartitions" in branch["States"]:
            found: dict[str, Any] = branch["States"]["CompactPartitions"]["ItemProcessor"]
            return found
    raise KeyError("CompactPartitions")


def _walk(machine: dict[str, Any], chosen: Mapping[str, str], calls: Mapping[str, int]) -> Walked:
    inside = _states(machine, {**_USUAL, **chosen}, Counter(calls))
    return Walked(1 + inside.transitions, 2 + inside.events)


def _states(machine: dict[str, Any], chosen: Mapping[str, str], calls: Counter[str]) -> Walked:
    transitions = events = 0
    name = machine["StartAt"]
    while name:
        state = machine["States"][name]
        transitions += 1
        events += _EVENTS[state["Type"]]
        for branch in state.get("Branches", ()):
            within = _states(branch, chosen, calls)
            transitions, events = transitions + within.transitions, events + within.events
        calls[name] -= 1
        name = _next(name, state, chosen, calls)
        assert transitions < _MOST_STATES, "the walk does not end"
    return Walked(transitions, events)


def _next(name: str, state: dict[str, Any], chosen: Mapping[str, str], calls: Counter[str]) -> str:
    if state["Type"] != "Choice":
        return str(state.get("Next", ""))
    ways = [choice["Next"] for choice in state["Choices"]]
    # A choice that leads back to a call that is due once more.
    again = [way for way in ways if calls[way] > 0 and way in {"Discover", "CompactPartition"}]
    if again:
        return str(again[0])
    wanted = chosen.get(name, state.get("Default", ""))
    assert wanted in {*ways, state.get("Default")}, f"{name} has no way to {wanted}"
    return str(wanted)
