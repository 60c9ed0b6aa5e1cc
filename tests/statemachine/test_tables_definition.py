"""The definition of maintenance keeps the house's rules, and runs here as it does there."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from statelint.linter import Linter  # type: ignore[import-untyped]  # it has no annotations

from cdk.managed_rules import managed_rules
from compactor_cli.local.definition import each_state, find_unsupported, load_definition
from compactor_cli.local.tables_model import (
    TABLES_BRIDGES,
    TABLES_DEFINITION,
    TABLES_HANDLERS,
    TABLES_SUBSTITUTIONS,
    TABLES_VALUES,
)
from compactor_cli.runs import TABLES_LABEL
from tests.statemachine import asl_checks

_MAP = "State Machine.States.MaintainTables"
# As of the other definition: statelint does not know these.
_FALSE_ALARMS = {
    f'Field "Label" not allowed in {_MAP}',
    f'Field "InputType" not allowed in {_MAP}.ItemReader.ReaderConfig',
    f"{_MAP}.ToleratedFailurePercentage is 100.0 but should be an Integer",
}
Machine = dict[str, Any]


@pytest.fixture
def machine() -> Machine:
    text = TABLES_DEFINITION.read_text(encoding="utf-8")
    loaded: Machine = json.loads(text.replace("${AwsPartition}", "aws"))
    return loaded


def state(machine: Mapping[str, Any], name: str) -> Any:
    return dict(each_state(machine))[name]


def test_the_validator_finds_nothing_but_its_known_false_alarms(machine: Machine) -> None:
    assert set(Linter.validate(machine)) == _FALSE_ALARMS


@pytest.mark.parametrize("check", asl_checks.TABLES_CHECKS)
def test_the_definition_has_none_of_the_faults_validators_miss(
    machine: Machine, check: Callable[[Mapping[str, Any]], Any]
) -> None:
    assert list(check(machine)) == []


def _plan_not_caught(machine: Machine) -> None:
    del state(machine, "PlanTable")["Catch"]


def _job_that_ends_by_itself(machine: Machine) -> None:
    job = state(machine, "MaintainServerless")
    del job["Next"]
    job["End"] = True


def _report_passed_by(machine: Machine) -> None:
    state(machine, "MapRunFailed")["Next"] = "Succeeded"


def _no_lease(machine: Machine) -> None:
    state(machine, "IsThereAnOrder")["Default"] = "WhichEngine"


def _query_repeated(machine: Machine) -> None:
    state(machine, "RunQuery")["Retry"].append({"ErrorEquals": ["States.TaskFailed"]})


@pytest.mark.parametrize(
    ("check", "breakage", "finding"),
    [
        (
            asl_checks.tables_without_an_end,
            _plan_not_caught,
            "PrepareTable -> PlanTable -> an error that nobody catches",
        ),
        (
            asl_checks.tables_without_an_end,
            _job_that_ends_by_itself,
            (
                "PrepareTable -> PlanTable -> IsThereAnOrder -> BeginTable -> WhichEngine"
                " -> PrepareMaintenance -> WhichSpark -> MaintainServerless"
            ),
        ),
        (
            asl_checks.runs_of_tables_without_a_report,
            _report_passed_by,
            "IsThereATable -> MaintainTables -> MapRunFailed -> Succeeded",
        ),
        (
            asl_checks.engines_before_their_lease,
            _no_lease,
            "PrepareTable -> PlanTable -> IsThereAnOrder -> WhichEngine -> LookAtOptimizers",
        ),
        (asl_checks.jobs_that_are_repeated_when_they_fail, _query_repeated, "RunQuery: Retry[1]"),
    ],
)
def test_each_check_bites_on_a_definition_broken_its_way(
    machine: Machine,
    check: Callable[[Mapping[str, Any]], Any],
    breakage: Callable[[Machine], None],
    finding: str,
) -> None:
    breakage(machine)

    assert finding in list(check(machine))


def test_every_substitution_is_known_and_no_other() -> None:
    text = TABLES_DEFINITION.read_text(encoding="utf-8")

    assert {*TABLES_SUBSTITUTIONS, *TABLES_VALUES} == {*re.findall(r"\$\{(\w+)\}", text)}
    filled = load_definition(TABLES_DEFINITION, TABLES_BRIDGES)
    assert "${" not in filled
    functions = {
        found["Parameters"]["FunctionName"].rpartition(":")[2]
        for _, found in each_state(json.loads(filled))
        if found.get("Resource") == "arn:aws:states:::lambda:invoke"
    }
    assert functions == {*TABLES_SUBSTITUTIONS.values()} == {*TABLES_HANDLERS}


def test_no_arn_of_the_definition_names_a_partition() -> None:
    text = TABLES_DEFINITION.read_text(encoding="utf-8")

    assert "arn:aws" not in text
    assert text.count("arn:${AwsPartition}:") == text.count("arn:")


def test_the_map_has_the_label_that_all_know(machine: Machine) -> None:
    assert state(machine, "MaintainTables")["Label"] == TABLES_LABEL


def test_the_local_engine_finds_nothing_it_cannot_run(machine: Machine) -> None:
    assert list(find_unsupported(machine, TABLES_BRIDGES)) == []


def test_the_tasks_that_step_functions_is_told_of_have_their_rules(machine: Machine) -> None:
    assert managed_rules(machine) == (
        "StepFunctionsGetEventForEMRAddJobFlowStepsRule",
        "StepFunctionsGetEventsForEMRServerlessJobRule",
    )
