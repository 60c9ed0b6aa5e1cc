"""DESIGN.md names a test for each invariant; this makes sure that none of them is gone."""

from __future__ import annotations

import re

import pytest

from tests.simulation.faults import Fault
from tests.simulation.mutations import MUTATIONS

_SECTION = re.compile(r"^## Safety: what is always true$(.*?)^## ", re.DOTALL | re.MULTILINE)
_TEST = re.compile(r"`(tests/[^`:]+\.py)::(\w+)`")
_GUARD = re.compile(r'"([^"]+)"')


@pytest.fixture
def section(repo_root):
    found = _SECTION.search((repo_root / "DESIGN.md").read_text(encoding="utf-8"))
    assert found is not None
    return found[1]


def test_every_test_that_holds_an_invariant_exists(section, repo_root):
    named = _TEST.findall(section)
    assert len(named) > 15
    for path, name in named:
        assert f"def {name}(" in (repo_root / path).read_text(encoding="utf-8"), f"{path}::{name}"


def test_the_guards_named_are_those_whose_removal_is_tested(section):
    rows = [line for line in section.splitlines() if line.startswith("| ")]
    named = {guard for row in rows for guard in _GUARD.findall(row.split("|")[3])}
    assert named == set(MUTATIONS)


def test_the_number_of_kinds_of_fault_is_told_right(section):
    words = {10: "ten", 11: "eleven", 12: "twelve", 13: "thirteen", 14: "fourteen"}
    # Fault.NONE is none.
    assert f"({words[len(Fault) - 1]} kinds of fault" in " ".join(section.split())
