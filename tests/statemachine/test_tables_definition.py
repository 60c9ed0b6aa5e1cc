"""What must not be in the definition of maintenance, and would be found there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.statemachine import asl_checks
from tests.statemachine.definitions import TABLES, Machine, state


@pytest.fixture
def machine() -> Machine:
    return TABLES.machine()


def _plan_not_caught(machine: Machine) -> None:
    del state(machine, "PlanTable")["Catch"]


def _job_that_ends_by_itself(machine: Machine) -> None:
    job = state(machine, "MaintainServerless")
    del job["Next"]
    job["End"] = True


def _report_passed_by(machine: Machine) -> None:
    state(machine, "MaintainTables")["Catch"][0]["Next"] = "Succeeded"


def _no_lease(machine: Machine) -> None:
    machine["States"]["MaintainTables"]["ItemProcessor"]["StartAt"] = "WhichEngine"


def _query_repeated(machine: Machine) -> None:
    state(machine, "RunQuery")["Retry"].append({"ErrorEquals": ["States.TaskFailed"]})


@pytest.mark.parametrize(
    ("check", "breakage", "finding"),
    [
        (
            asl_checks.tables_without_an_end,
            _plan_not_caught,
            "PlanTable -> an error that nobody catches",
        ),
        (
            asl_checks.tables_without_an_end,
            _job_that_ends_by_itself,
            "PlanTable -> WhichEngine -> MaintainServerless",
        ),
        (
            asl_checks.runs_of_tables_without_a_report,
            _report_passed_by,
            "IsThereATable -> MaintainTables -> Succeeded",
        ),
        (
            asl_checks.engines_before_their_lease,
            _no_lease,
            "WhichEngine -> AthenaStep -> IsThereAQuery -> RunQuery",
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
