"""Standalone mode: one function takes the place of the workflow, for small sources."""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_destinations as destinations
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from cdk.functions import Functions

_RETRIES = 2
_RETRY_HOURS = 2


class Standalone(Construct):
    """What the one function needs beside itself.

    Attributes:
        function: ``compactor_handlers.standalone``; takes a run's input, as the state machine does.
    """

    def __init__(self, scope: Construct, functions: Functions, failed: sqs.IQueue) -> None:
        super().__init__(scope, "Standalone")
        self.function: lambda_.Function = functions.by_name["standalone"]
        # The scheduler hands its event over and looks away; what failed for good is kept here.
        self.function.configure_async_invoke(
            retry_attempts=_RETRIES,
            max_event_age=Duration.hours(_RETRY_HOURS),
            on_failure=destinations.SqsDestination(failed),
        )
