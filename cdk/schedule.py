"""The schedule of runs, and the queue of starts that failed."""

from __future__ import annotations

from typing import Any

from aws_cdk import Duration, TimeZone
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_scheduler_targets as targets
from aws_cdk import aws_sqs as sqs
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from cdk.checks import acknowledge, acknowledge_wildcard
from cdk.config import Config
from cdk.grants import own_role

_RETRIES = 3
# After this time the next run is due soon, and does what the failed one would have done.
_RETRY_HOURS = 2
_KEPT_DAYS = 14


class Start(Construct):
    """Starts runs, if the configuration has a schedule.

    Attributes:
        failed: the queue of starts that failed.
    """

    def __init__(self, scope: Construct, config: Config) -> None:
        super().__init__(scope, "Schedule")
        self._config = config
        self.failed = sqs.Queue(
            self,
            "FailedStarts",
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=Duration.days(_KEPT_DAYS),
        )
        acknowledge(self.failed, "AwsSolutions-SQS3", "It is a dead-letter queue itself.")

    def starts_workflow(self, machine: sfn.StateMachine, run_input: str) -> None:
        """Start the state machine with this JSON, in which CloudFormation fills in tokens."""
        if self._config.schedule is not None:
            how = how_to_start(run_input, self.failed, self._role())
            self._add(targets.StepFunctionsStartExecution(machine, **how), self._config.schedule)

    def starts_function(self, function: lambda_.Function, run_input: str) -> None:
        """Invoke the function of standalone mode with this input."""
        if self._config.schedule is not None:
            role = self._role()
            acknowledge_wildcard(
                role,
                f"{function.function_arn}:*",
                "Versions and aliases of the one function, which CDK adds.",
            )
            how = how_to_start(run_input, self.failed, role)
            self._add(targets.LambdaInvoke(function, **how), self._config.schedule)

    def _role(self) -> iam.Role:
        return own_role(self, "Role", "scheduler.amazonaws.com", of_this_account=True)

    def _add(self, target: scheduler.IScheduleTarget, schedule: str) -> None:
        config = self._config
        add_schedule(
            self,
            target,
            name=config.name,
            description="s3-compactor: starts a run",
            schedule=schedule,
            time_zone=config.schedule_time_zone,
        )


def how_to_start(run_input: str, failed: sqs.Queue, role: iam.Role) -> dict[str, Any]:
    """Return the options that all targets of schedules share.

    Args:
        run_input: JSON, in which CloudFormation fills in tokens.
        failed: the queue that receives failed starts.
        role: the role that starts the target.
    """
    return {
        "input": scheduler.ScheduleTargetInput.from_text(run_input),
        "dead_letter_queue": failed,
        "retry_attempts": _RETRIES,
        "max_event_age": Duration.hours(_RETRY_HOURS),
        "role": role,
    }


def add_schedule(
    scope: Construct,
    target: scheduler.IScheduleTarget,
    *,
    name: str,
    description: str,
    schedule: str,
    time_zone: str,
) -> None:
    """Start a target on a schedule.

    Args:
        scope: the construct that the schedule belongs to.
        target: what it starts.
        name: name of the schedule.
        description: shown in the console.
        schedule: ``cron(…)`` or ``rate(…)``.
        time_zone: a name of the IANA database.
    """
    scheduler.Schedule(
        scope,
        "Schedule",
        schedule_name=name,
        description=description,
        schedule=scheduler.ScheduleExpression.expression(schedule, TimeZone.of(time_zone)),
        target=target,
    )
