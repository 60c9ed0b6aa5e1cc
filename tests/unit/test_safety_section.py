"""Each invariant in DESIGN.md names tests that exist, and guards whose removal is tested."""

from __future__ import annotations

import re

import pytest

from tests.simulation.faults import Fault
from tests.simulation.mutations import MUTATIONS

_SECTION = re.compile(r"^## Invariants$(.*?)^## ", re.DOTALL | re.MULTILINE)
_TEST = re.compile(r"`(tests/[^`:]+\.py)::(\w+)`")
_PATH = re.compile(r"`(tests/[^`]+)`")
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


def test_the_number_of_kinds_of_fault_is_right(section):
    words = {10: "ten", 11: "eleven", 12: "twelve", 13: "thirteen", 14: "fourteen"}
    # Fault.NONE is not a fault.
    assert f"({words[len(Fault) - 1]} kinds of fault" in " ".join(section.split())


def test_every_test_named_in_the_page_of_proofs_exists(repo_root):
    named = _PATH.findall((repo_root / "docs" / "proof.md").read_text(encoding="utf-8"))
    assert len(named) > 30
    assert [path for path in named if not (repo_root / path).exists()] == []
