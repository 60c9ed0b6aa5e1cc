"""Standalone mode: one function replaces the workflow, for small sources."""

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
    """The standalone function, with retries and the queue of failed starts.

    Attributes:
        function: ``compactor_handlers.standalone``; takes the input of a run, like the workflow.
    """

    def __init__(self, scope: Construct, functions: Functions, failed: sqs.IQueue) -> None:
        super().__init__(scope, "Standalone")
        self.function: lambda_.Function = functions.by_name["standalone"]
        # The scheduler invokes asynchronously and never sees a failure; the queue keeps the event.
        self.function.configure_async_invoke(
            retry_attempts=_RETRIES,
            max_event_age=Duration.hours(_RETRY_HOURS),
            on_failure=destinations.SqsDestination(failed),
        )
