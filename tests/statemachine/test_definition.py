from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import botocore.session
import pytest
from statelint.linter import Linter  # type: ignore[import-untyped]  # it has no annotations

from compactor_cli.run_status import CLEAN_UPS_LABEL, PARTITIONS_LABEL
from compactor_local.definition import each_state
from tests.statemachine import asl_checks
from tests.statemachine.definitions import COMPACTION, TABLES, Definition, Machine, state

_TO_PLAN = "AnyPartitions -> IsSparkWanted -> IsTableWanted -> IsCleanUpWanted -> PlanCleanUp"


@pytest.fixture
def machine() -> Machine:
    return COMPACTION.machine()


def _aim_nowhere(machine: Machine) -> None:
    state(machine, "AnyPartitions")["Default"] = "Nowhere"


def _misspell_a_field(machine: Machine) -> None:
    report = state(machine, "Report")
    report["TimeOutSeconds"] = report.pop("TimeoutSeconds")


def _aim_a_child_outside(machine: Machine) -> None:
    state(machine, "CleanUpPartition")["Next"] = "Report"


@pytest.mark.parametrize("breakage", [_aim_nowhere, _misspell_a_field, _aim_a_child_outside])
def test_the_validator_still_bites(machine: Machine, breakage: Callable[[Machine], None]) -> None:
    breakage(machine)

    assert set(Linter.validate(machine)) > COMPACTION.false_alarms


def _inline(machine: Machine) -> None:
    state(machine, "CompactPartitions")["ItemProcessor"]["ProcessorConfig"] = {"Mode": "INLINE"}


def _unknown_resource(machine: Machine) -> None:
    state(machine, "Report")["Resource"] = "arn:aws:states:::lambda:call"


def _states_all_first(machine: Machine) -> None:
    state(machine, "Report")["Retry"].insert(0, {"ErrorEquals": ["States.ALL"]})


def _express_with_sync(machine: Machine) -> None:
    config = state(machine, "CompactPartitions")["ItemProcessor"]["ProcessorConfig"]
    config["ExecutionType"] = "EXPRESS"
    resource = "arn:aws:states:::elasticmapreduce:addStep.sync"
    state(machine, "CompactPartition")["Resource"] = resource


def _no_comment(machine: Machine) -> None:
    del state(machine, "UnknownStatus")["Comment"]


def _no_timeout(machine: Machine) -> None:
    del state(machine, "CleanUpPartition")["TimeoutSeconds"]


def _mistakes_repeated(machine: Machine) -> None:
    del state(machine, "Discover")["Retry"][0]


def _no_retry(machine: Machine) -> None:
    del state(machine, "AddStepToCluster")["Retry"]


def _failed_job_repeated(machine: Machine) -> None:
    state(machine, "AddStepToCluster")["Retry"].append({"ErrorEquals": ["States.TaskFailed"]})


def _clean_up_that_ends_the_run(machine: Machine) -> None:
    del state(machine, "CleanUpPartitions")["Catch"]


def _plan_that_ends_the_run(machine: Machine) -> None:
    state(machine, "PlanCleanUp")["Catch"][0]["ErrorEquals"] = ["InvalidInput"]


def _report_passed_by(machine: Machine) -> None:
    state(machine, "CleanUpPartitions")["Catch"][0]["Next"] = "Succeeded"


def _all_results_in_the_state(machine: Machine) -> None:
    del state(machine, "CleanUpPartitions")["ResultWriter"]


def _one_label_twice(machine: Machine) -> None:
    state(machine, "CleanUpPartitions")["Label"] = "Partitions"


def _no_label(machine: Machine) -> None:
    del state(machine, "CompactPartitions")["Label"]


def _no_jitter(machine: Machine) -> None:
    del state(machine, "CompactPartition")["Retry"][1]["JitterStrategy"]


def _eight_attempts(machine: Machine) -> None:
    for rule in state(machine, "CompactPartition")["Retry"]:
        if "Lambda.TooManyRequestsException" in rule["ErrorEquals"]:
            rule["MaxAttempts"] = 8


def _throttling_not_retried(machine: Machine) -> None:
    machine["States"]["Report"]["Retry"] = [
        rule
        for rule in machine["States"]["Report"]["Retry"]
        if "Lambda.TooManyRequestsException" not in rule["ErrorEquals"]
    ]


def _idle_function_not_retried(machine: Machine) -> None:
    for rule in machine["States"]["Report"]["Retry"]:
        rule["ErrorEquals"] = [one for one in rule["ErrorEquals"] if "NotReady" not in one]


def _one_name_twice(machine: Machine) -> None:
    child = state(machine, "CompactPartitions")["ItemProcessor"]
    child["States"]["Report"] = {"Type": "Succeed"}


@pytest.mark.parametrize(
    ("check", "breakage", "finding"),
    [
        (asl_checks.distributed_fields_in_inline_maps, _inline, "CompactPartitions: ItemReader"),
        (
            asl_checks.unknown_resources,
            _unknown_resource,
            "Report: arn:aws:states:::lambda:call",
        ),
        (asl_checks.states_all_not_last_and_alone, _states_all_first, "Report: Retry[0]"),
        (
            asl_checks.sync_tasks_in_express_children,
            _express_with_sync,
            "CompactPartitions: CompactPartition",
        ),
        (asl_checks.states_without_comment, _no_comment, "UnknownStatus"),
        (asl_checks.tasks_without_timeout, _no_timeout, "CleanUpPartition"),
        (
            asl_checks.tasks_that_could_repeat_the_callers_mistake,
            _mistakes_repeated,
            "Discover",
        ),
        (asl_checks.tasks_without_retry, _no_retry, "AddStepToCluster"),
        (
            asl_checks.jobs_that_are_repeated_when_they_fail,
            _failed_job_repeated,
            "AddStepToCluster: Retry[1]",
        ),
        (
            asl_checks.ends_without_a_report,
            _clean_up_that_ends_the_run,
            f"{_TO_PLAN} -> IsAnythingDue -> CleanUpPartitions -> an error that nobody catches",
        ),
        (
            asl_checks.ends_without_a_report,
            _plan_that_ends_the_run,
            f"{_TO_PLAN} -> an error that nobody catches",
        ),
        (
            asl_checks.ends_without_a_report,
            _report_passed_by,
            f"{_TO_PLAN} -> IsAnythingDue -> CleanUpPartitions -> Succeeded",
        ),
        (
            asl_checks.map_runs_that_return_all_results,
            _all_results_in_the_state,
            "CleanUpPartitions",
        ),
        (
            asl_checks.map_runs_without_a_label_of_their_own,
            _one_label_twice,
            "CompactPartitions",
        ),
        (asl_checks.map_runs_without_a_label_of_their_own, _no_label, "CompactPartitions"),
        (asl_checks.retries_in_step, _no_jitter, "CompactPartition: Retry[1]"),
        (
            asl_checks.throttled_invocations_that_give_up_within_an_hour,
            _eight_attempts,
            "CompactPartition",
        ),
        (
            asl_checks.throttled_invocations_that_give_up_within_an_hour,
            _throttling_not_retried,
            "Report",
        ),
        (asl_checks.invocations_that_retry_otherwise, _eight_attempts, "CompactPartition"),
        (
            asl_checks.functions_of_a_vpc_that_are_not_awaited,
            _idle_function_not_retried,
            "Report: ResourceNotReadyException",
        ),
        (asl_checks.names_used_twice, _one_name_twice, "Report"),
    ],
)
def test_each_own_check_bites_on_a_definition_broken_its_way(
    machine: Machine,
    check: Callable[[Mapping[str, Any]], Any],
    breakage: Callable[[Machine], None],
    finding: str,
) -> None:
    breakage(machine)

    assert finding in list(check(machine))


def test_every_own_check_is_among_those_run() -> None:
    public = {
        value
        for name, value in vars(asl_checks).items()
        if callable(value) and getattr(value, "__module__", "") == asl_checks.__name__
        if not value.__name__.startswith("_")
    }

    assert public == {*asl_checks.CHECKS, *asl_checks.TABLES_CHECKS}


def test_the_maps_have_the_labels_that_all_their_readers_know(machine: Machine) -> None:
    assert state(machine, "CompactPartitions")["Label"] == PARTITIONS_LABEL
    assert state(machine, "CleanUpPartitions")["Label"] == CLEAN_UPS_LABEL


@pytest.mark.parametrize("definition", [COMPACTION, TABLES], ids=["compaction", "tables"])
def test_logs_of_spark_go_to_the_state_alone(definition: Definition) -> None:
    (job,) = [
        one
        for _, one in each_state(definition.machine())
        if "emr-serverless:startJobRun" in one.get("Resource", "")
    ]
    monitoring = job["Parameters"]["ConfigurationOverrides"]["MonitoringConfiguration"]

    # Else EMR also keeps them for 30 days in storage that is not the account's.
    assert monitoring == {
        "ManagedPersistenceMonitoringConfiguration": {"Enabled": False},
        "S3MonitoringConfiguration": {"LogUri": "${SparkLogUri}"},
    }
    model = botocore.session.get_session().get_service_model("emr-serverless")
    shape: Any = model.shape_for("MonitoringConfiguration")
    for name, given in monitoring.items():
        # Step Functions capitalizes the names of the API.
        member = shape.members[name[0].lower() + name[1:]]
        assert {one[0].lower() + one[1:] for one in given} <= set(member.members)
