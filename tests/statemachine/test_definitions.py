"""Each definition keeps the house's rules, and runs here as it does there."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from statelint.linter import Linter  # type: ignore[import-untyped]  # it has no annotations

from compactor_local.definition import each_state, load_definition
from tests.statemachine.definitions import COMPACTION, TABLES, Definition

_BOTH = {"compaction": COMPACTION, "tables": TABLES}


@pytest.fixture(params=_BOTH)
def definition(request: pytest.FixtureRequest) -> Definition:
    return _BOTH[request.param]


def test_the_validator_finds_nothing_but_its_known_false_alarms(definition: Definition) -> None:
    assert set(Linter.validate(definition.machine())) == definition.false_alarms


@pytest.mark.parametrize(
    ("definition", "check"),
    [
        pytest.param(one, check, id=f"{name}-{check.__name__}")
        for name, one in _BOTH.items()
        for check in one.checks
    ],
)
def test_a_definition_has_none_of_the_faults_validators_miss(
    definition: Definition, check: Callable[[Mapping[str, Any]], Any]
) -> None:
    assert list(check(definition.machine())) == []


def test_every_substitution_is_known_and_no_other(definition: Definition) -> None:
    known = {*definition.substitutions, *definition.values}
    assert known == {*re.findall(r"\$\{(\w+)\}", definition.text)}


def test_every_substitution_is_filled_in_before_a_local_run() -> None:
    definition = COMPACTION
    text = load_definition(definition.path)

    assert "${" not in text
    functions = {
        found["Parameters"]["FunctionName"].rpartition(":")[2]
        for _, found in each_state(json.loads(text))
        if found.get("Resource") == "arn:aws:states:::lambda:invoke"
    }
    assert functions == {*definition.substitutions.values()} == {*definition.handlers}


def test_no_arn_of_a_definition_names_a_partition(definition: Definition) -> None:
    text = definition.text

    assert "arn:aws" not in text
    assert text.count("arn:${AwsPartition}:") == text.count("arn:")
