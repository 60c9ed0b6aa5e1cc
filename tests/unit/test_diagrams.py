"""The Mermaid diagrams of the documents name states that the state machines have."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).parents[2]
DIAGRAMS = {
    "docs/deployment.md": "statemachine/compaction.asl.json",
    "docs/maintenance.md": "statemachine/tables.asl.json",
}
MERMAID = re.compile(r"```mermaid\n(.*?)```", re.DOTALL)
LABEL = re.compile(r'\["(?P<label>.*?)"\]|\|.*?\|')
STATE = re.compile(r"\b[A-Z][A-Za-z]+\b")


def states_of(machine: Any) -> Iterator[str]:
    if isinstance(machine, dict):
        yield from machine.get("States", {})
        for value in machine.values():
            yield from states_of(value)
    elif isinstance(machine, list):
        for value in machine:
            yield from states_of(value)


def named_in(diagram: str) -> set[str]:
    lines = [line for line in diagram.splitlines() if not line.startswith("flowchart")]
    return set(STATE.findall(LABEL.sub("", "\n".join(lines))))


@pytest.mark.parametrize(("document", "definition"), DIAGRAMS.items())
def test_a_diagram_names_only_states_of_its_state_machine(document: str, definition: str) -> None:
    diagrams = MERMAID.findall((REPOSITORY / document).read_text(encoding="utf-8"))
    machine = json.loads((REPOSITORY / definition).read_text(encoding="utf-8"))
    named = set().union(*map(named_in, diagrams))
    assert len(named) > 8
    assert named <= set(states_of(machine))


@pytest.mark.parametrize(("document", "definition"), DIAGRAMS.items())
def test_a_diagram_shows_how_a_run_starts_and_ends(document: str, definition: str) -> None:
    diagrams = MERMAID.findall((REPOSITORY / document).read_text(encoding="utf-8"))
    states = json.loads((REPOSITORY / definition).read_text(encoding="utf-8"))["States"]
    ends = {name for name, one in states.items() if one["Type"] in {"Succeed", "Fail"}}
    named = set().union(*map(named_in, diagrams))
    # What failed before it began ends in a state of its own.
    assert ends - named <= {"DiscoverFailed"}
