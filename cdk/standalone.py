"""Standalone mode: one function replaces the workflow, for small sources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aws_cdk import Duration, Stack
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_destinations as destinations
from aws_cdk import aws_scheduler_targets as targets
from constructs import Construct

from cdk.config import Deployment
from cdk.functions import Functions
from cdk.grants import acknowledge_wildcard, own_role
from cdk.machines import Starts, dead_letters, start_on_schedule

_RETRIES, _RETRY_HOURS = 2, 2


class StandaloneConstruct(Construct):
    """The standalone function, with its schedule, retries and the queue of failed starts.

    Attributes:
        function: ``compactor_handlers.standalone``; takes the input of a run, like the workflow.
        failed: the queue of starts that failed.
    """

    def __init__(
        self,
        scope: Construct,
        deployment: Deployment,
        functions: Functions,
        run_input: Mapping[str, Any],
    ) -> None:
        super().__init__(scope, "Standalone")
        self.function: lambda_.Function = functions.by_name["standalone"]
        if deployment.schedule is None:
            self.failed = dead_letters(self, "FailedStarts")
        else:
            role = own_role(self, "ScheduleRole", "scheduler.amazonaws.com")
            versions = "Versions and aliases of the one function, which CDK adds."
            acknowledge_wildcard(role, f"{self.function.function_arn}:*", versions)
            text = Stack.of(self).to_json_string(run_input)
            starts = Starts(deployment.name, deployment.schedule, text, role)
            self.failed = start_on_schedule(self, starts, targets.LambdaInvoke, self.function)
        # The scheduler invokes asynchronously and never sees a failure; the queue keeps the event.
        self.function.configure_async_invoke(
            retry_attempts=_RETRIES,
            max_event_age=Duration.hours(_RETRY_HOURS),
            on_failure=destinations.SqsDestination(self.failed),
        )
