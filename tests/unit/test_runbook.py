"""docs/operations.md says what to do for every state of the workflow in which something fails."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from compactor import errors
from compactor_cli.machine.installed import definition

# What a run of a partition settles by itself, and so never is the cause of a failure.
_SETTLED = {
    "AlreadyExists",
    "CompactorError",
    "ObjectMissing",
    "UnreadableSource",
    "UploadLost",
}


@pytest.fixture
def rows(repo_root) -> dict[str, str]:
    """The rows of the runbook's tables by each name in their first cell."""
    text = (repo_root / "docs" / "operations.md").read_text(encoding="utf-8")
    tables = re.findall(r"^\| (`.*?) \|(.*)\|$", text, re.MULTILINE)
    return {name: rest for names, rest in tables for name in re.findall(r"`([\w.*]+)`", names)}


def states(machine: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, state in machine["States"].items():
        yield name, state
        for inner in [*state.get("Branches", ()), *filter(None, [state.get("ItemProcessor")])]:
            yield from states(inner)


def failing() -> set[str]:
    """States that fail, that may fail for good, and that keep a failure."""
    known = dict(states(json.loads(definition().read_text(encoding="utf-8"))))
    caught = {one["Next"] for state in known.values() for one in state.get("Catch", ())}
    # A choice keeps no failure: it decides how a run goes on.
    kept = {name for name in caught if known[name]["Type"] != "Choice"}
    own = {
        name
        for name, state in known.items()
        if state["Type"] == "Fail" or (state["Type"] == "Task" and name != "Discover")
    }
    return kept | own


def test_every_state_that_fails_has_a_row(rows):
    assert len(failing()) > 12
    assert failing() - set(rows) == set()


def test_every_error_that_ends_a_partition_has_a_row(rows):
    raised = {
        name
        for name, one in vars(errors).items()
        if isinstance(one, type) and issubclass(one, errors.CompactorError)
    }
    assert raised > _SETTLED
    assert raised - _SETTLED - set(rows) == set()


def test_every_row_says_what_to_do(rows):
    assert len(rows) > 25
    assert all(len(rest.split("|")[-1].strip()) > 4 for rest in rows.values())
