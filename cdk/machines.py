"""What every state machine has: its log, its Map Runs, and the rights that its tasks need."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aws_cdk import ArnFormat, RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from cdk.checks import acknowledge_wildcard
from cdk.function_set import log_days
from cdk.grants import allow, conditions_at
from cdk.managed_rules import ACTIONS, managed_rules
from cdk.storage import Place

_RUN_IDS = "A run's records lie below its id, which is new each time."


@dataclass(frozen=True, slots=True)
class Machine:
    """A state machine to create.

    Attributes:
        name: its name, fixed so that its policy can refer to its executions.
        comment: what it does.
        definition: the file of its definition, in Amazon States Language.
    """

    name: str
    comment: str
    definition: Path

    @property
    def log_group_name(self) -> str:
        """The log group of its events."""
        # Groups with this prefix do not count towards the size of CloudWatch Logs' resource policy.
        return f"/aws/vendedlogs/states/{self.name}"


@dataclass(frozen=True, slots=True)
class MapRuns:
    """The objects that the Distributed Maps of a machine read and write, below the state.

    Attributes:
        labels: labels of the Maps, which are part of the names of their executions.
        lists: patterns of the work lists.
        results: pattern of the results.
    """

    labels: Sequence[str]
    lists: Sequence[str]
    results: str


def make_machine(
    scope: Construct,
    machine: Machine,
    role: iam.Role,
    substitutions: Mapping[str, Any],
    *,
    log_retention_days: int,
) -> sfn.StateMachine:
    """Create a state machine and its log.

    Args:
        scope: the construct that they belong to.
        machine: what to create.
        role: the role that it runs with.
        substitutions: name in the definition -> value.
        log_retention_days: retention of the log.
    """
    log = logs.LogGroup(
        scope,
        "Log",
        log_group_name=machine.log_group_name,
        retention=log_days(log_retention_days),
        removal_policy=RemovalPolicy.DESTROY,
    )
    acknowledge_wildcard(role, "*", "Log deliveries and X-Ray know no resources.")
    return sfn.StateMachine(
        scope,
        "StateMachine",
        state_machine_name=machine.name,
        comment=machine.comment,
        definition_body=sfn.DefinitionBody.from_file(str(machine.definition)),
        definition_substitutions=substitutions,
        role=role,
        logs=sfn.LogOptions(destination=log, level=sfn.LogLevel.ALL, include_execution_data=False),
        tracing_enabled=True,
    )


def allow_managed_rules(policy: iam.Policy, machine: Machine) -> None:
    """Allow Step Functions to create the rules that notify it when a task ends."""
    rules = managed_rules(json.loads(machine.definition.read_text(encoding="utf-8")))
    format_arn = Stack.of(policy).format_arn
    arns = [format_arn(service="events", resource="rule", resource_name=one) for one in rules]
    allow(policy, ACTIONS, arns)


def allow_map_runs(policy: iam.Policy, machine: Machine, runs: MapRuns, state: Place) -> None:
    """Allow the machine to start, stop and redrive its Map Runs, and these to use their objects."""
    name = machine.name
    allow(policy, ["states:StartExecution"], [_states(policy, "stateMachine", name)])
    allow(
        policy,
        ["states:DescribeExecution", "states:StopExecution"],
        [_states(policy, "execution", f"{name}:*")],
        wildcard="Executions of this machine alone; Step Functions names them.",
    )
    allow(
        policy,
        ["states:RedriveExecution"],
        [_states(policy, "execution", f"{name}/{label}:*") for label in runs.labels],
        wildcard="Children of its own Map Runs; Step Functions names them.",
    )
    lists = [state.objects(one) for one in runs.lists]
    ours = conditions_at(state)
    allow(policy, ["s3:GetObject"], lists, conditions=ours, wildcard=_RUN_IDS)
    actions = ["PutObject", "GetObject", "ListMultipartUploadParts", "AbortMultipartUpload"]
    results = [state.objects(runs.results)]
    names = [f"s3:{one}" for one in actions]
    allow(policy, names, results, conditions=ours, wildcard=_RUN_IDS)
    if state.key is not None:
        allow(policy, ["kms:GenerateDataKey", "kms:Decrypt"], [state.key.key_arn])


def _states(policy: iam.Policy, resource: str, name: str) -> str:
    return Stack.of(policy).format_arn(
        service="states",
        resource=resource,
        resource_name=name,
        arn_format=ArnFormat.COLON_RESOURCE_NAME,
    )
