"""A state machine from its file: its log, its Map Runs, its schedule, and the rights they need."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aws_cdk import Arn, ArnComponents, ArnFormat, Duration, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_sqs as sqs
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from cdk.functions import own_log
from cdk.grants import acknowledge, acknowledge_wildcard, allow, may_read_objects, may_use_results
from cdk.storage import Place

# What Step Functions creates to learn of the ends of `.sync` tasks ("IAM policies for integrated
# services", a page for each service). It requires the rights to the rules of *all* tasks in the
# definition, even those that no run enters. Athena it polls.
_RULES: Mapping[str, str] = {
    "elasticmapreduce:addStep.sync": "StepFunctionsGetEventForEMRAddJobFlowStepsRule",
    "emr-serverless:startJobRun.sync": "StepFunctionsGetEventsForEMRServerlessJobRule",
}
_RETRIES, _RETRY_HOURS, _KEPT_DAYS = 3, 2, 14


def arn_of(scope: Construct, service: str, resource: str, name: str, between: str = ":") -> str:
    """Return an ARN in the account and region of the stack."""
    shape = ArnFormat.COLON_RESOURCE_NAME if between == ":" else ArnFormat.SLASH_RESOURCE_NAME
    parts = ArnComponents(service=service, resource=resource, resource_name=name, arn_format=shape)
    return Arn.format(parts, Stack.of(scope))


def make_machine(
    scope: Construct,
    name: str,
    definition: Path,
    role: iam.Role,
    substitutions: Mapping[str, str],
) -> sfn.StateMachine:
    """Create a state machine and its log, and allow what its own execution needs.

    Args:
        scope: the construct that they belong to.
        name: its name, fixed so that its policy can refer to its executions.
        definition: the file of its definition, in Amazon States Language.
        role: the role that it runs with; the other rights must be given to it before.
        substitutions: name in the definition -> value.
    """
    # Groups with this prefix do not count towards the size of CloudWatch Logs' resource policy.
    log = own_log(scope, "Log", f"/aws/vendedlogs/states/{name}", None)
    acknowledge_wildcard(role, "*", "Log deliveries and X-Ray know no resources.")
    text = definition.read_text(encoding="utf-8")
    rules = [
        arn_of(scope, "events", "rule", one, "/") for task, one in _RULES.items() if task in text
    ]
    allow(role, ["events:PutTargets", "events:PutRule", "events:DescribeRule"], rules)
    return sfn.StateMachine(
        scope,
        "StateMachine",
        state_machine_name=name,
        comment=json.loads(text)["Comment"],
        definition_body=sfn.DefinitionBody.from_file(str(definition)),
        definition_substitutions=dict(substitutions),
        role=role,
        logs=sfn.LogOptions(destination=log, level=sfn.LogLevel.ALL, include_execution_data=False),
        tracing_enabled=True,
    )


def allow_map_runs(
    role: iam.Role, name: str, labels: Mapping[str, str], results: str, state: Place
) -> None:
    """Allow a machine to start, stop and redrive its Map Runs, and these to use their objects.

    Args:
        role: of the machine.
        name: of the machine.
        labels: label of a Map, which is part of the names of its executions -> its work list.
        results: pattern of the results.
        state: where both lie.
    """
    allow(role, ["states:StartExecution"], [arn_of(role, "states", "stateMachine", name)])
    allow(
        role,
        ["states:DescribeExecution", "states:StopExecution"],
        [arn_of(role, "states", "execution", f"{name}:*")],
        wildcard="Executions of this machine alone; Step Functions names them.",
    )
    allow(
        role,
        ["states:RedriveExecution"],
        [arn_of(role, "states", "execution", f"{name}/{label}:*") for label in labels],
        wildcard="Children of its own Map Runs; Step Functions names them.",
    )
    may_read_objects(role, state, *labels.values())
    may_use_results(role, state, results)


def dead_letters(scope: Construct, name: str) -> sqs.Queue:
    """Return a queue of what could not be delivered, which is kept for two weeks."""
    queue = sqs.Queue(
        scope,
        name,
        encryption=sqs.QueueEncryption.SQS_MANAGED,
        enforce_ssl=True,
        retention_period=Duration.days(_KEPT_DAYS),
    )
    acknowledge(queue, "AwsSolutions-SQS3", "It is a dead-letter queue itself.")
    return queue


@dataclass(frozen=True, slots=True)
class Starts:
    """What a schedule starts, and when.

    Attributes:
        name: of the schedule.
        schedule: ``cron(…)`` or ``rate(…)``, in UTC.
        run_input: JSON, in which CloudFormation fills in tokens.
        role: by which the scheduler starts it.
    """

    name: str
    schedule: str
    run_input: str
    role: iam.Role


def start_on_schedule(scope: Construct, starts: Starts, target: Any, what: object) -> sqs.Queue:
    """Start a state machine or a function on a schedule; return the queue of failed starts.

    Args:
        scope: the construct that both belong to.
        starts: the schedule.
        target: the class of the target, such as ``StepFunctionsStartExecution``.
        what: the machine or the function.
    """
    failed = dead_letters(scope, "FailedStarts")
    scheduler.Schedule(
        scope,
        "Schedule",
        schedule_name=starts.name,
        description=f"s3-compactor: starts {starts.name}",
        schedule=scheduler.ScheduleExpression.expression(starts.schedule),
        target=target(
            what,
            input=scheduler.ScheduleTargetInput.from_text(starts.run_input),
            dead_letter_queue=failed,
            retry_attempts=_RETRIES,
            # Afterwards the next run is due soon, and does what the failed one would have done.
            max_event_age=Duration.hours(_RETRY_HOURS),
            role=starts.role,
        ),
    )
    return failed
