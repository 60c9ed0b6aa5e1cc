"""The rights to Step Functions' own rules follow from the definition."""

from __future__ import annotations

from typing import Any

import pytest

from cdk.managed_rules import managed_rules
from compactor.errors import InvalidInput


def _machine(*integrations: str) -> dict[str, Any]:
    """Tasks, each deeper within Maps and Parallels than the one before."""
    machine: dict[str, Any] = {"States": {}}
    for number, one in enumerate(integrations):
        task = {"Type": "Task", "Resource": f"arn:${{AwsPartition}}:states:::{one}"}
        inner = {"States": {f"Task{number}": task, **machine["States"]}}
        machine = {"States": {f"Map{number}": {"Type": "Map", "ItemProcessor": inner}}}
    return machine


def test_a_definition_without_synchronous_tasks_needs_no_rule() -> None:
    assert managed_rules(_machine("lambda:invoke", "emr-serverless:startJobRun")) == ()


def test_each_synchronous_task_brings_its_rule_wherever_it_stands() -> None:
    machine = _machine(
        "elasticmapreduce:addStep.sync", "emr-serverless:startJobRun.sync", "lambda:invoke"
    )

    assert managed_rules(machine) == (
        "StepFunctionsGetEventForEMRAddJobFlowStepsRule",
        "StepFunctionsGetEventsForEMRServerlessJobRule",
    )


@pytest.mark.parametrize("integration", ["glue:startJobRun.sync", "states:startExecution.sync:2"])
def test_a_new_integration_cannot_forget_its_rule(integration: str) -> None:
    with pytest.raises(InvalidInput, match="rule"):
        managed_rules(_machine(integration))
