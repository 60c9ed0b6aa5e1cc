"""Events: S3 notifies EventBridge of each object, a rule fills a queue, a function registers them.

Another function checks every few minutes whether enough objects are pending, or one has been
pending for long enough, and starts the workflow.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from aws_cdk import ArnFormat, Duration, Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_scheduler_targets as scheduler_targets
from aws_cdk import aws_sqs as sqs
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from cdk.checks import acknowledge, acknowledge_wildcard
from cdk.config import Config
from cdk.functions import REGISTER_TIMEOUT_SECONDS, Functions
from cdk.grants import allow, own_role
from cdk.notifications import Notifications
from cdk.storage import Storage
from compactor.errors import InvalidInput

# A message keeps its age when it moves to the dead-letter queue: after a week in the first queue,
# one more week is left there.
_KEPT_DAYS, _DEAD_KEPT_DAYS = 7, 14
# "Creating and configuring an Amazon SQS event source mapping": six times the function's time-out,
# and five attempts, so that throttled invocations do not create dead letters.
_VISIBILITY = 6
_TRIES = 5
_BATCH, _WINDOW_SECONDS = 1_000, 5
# Each registers about a thousand objects a second.
_CONCURRENT = 10
# Lambda allows 4 KB for all variables together; CloudFormation fills in names of buckets later.
_STREAMS_CHARACTERS = 3_000
# The listing follows from the registry's table. Clean-up goes through all commit logs, too much
# for a run every few minutes; scheduled runs do it.
_NOT_OF_STREAMS = ("listing", "clean_up")
_KINDS = ("Object Created", "Object Deleted")


class Ingest(Construct):
    """Fills the registry from events, and starts runs for pending objects.

    Args:
        scope: the stack.
        config: what is deployed.
        storage: the storage, with a registry.
        functions: the functions, with ``register`` and ``sweep``.
        machine: the state machine that ``sweep`` starts.
        run_input: the input of scheduled runs.

    Attributes:
        queue: the queue of S3's events.
        dead_letters: the queue of events that could not be parsed or delivered.
        streams: the source's description for the functions, as JSON.
    """

    def __init__(
        self,
        scope: Construct,
        config: Config,
        storage: Storage,
        *,
        functions: Functions,
        machine: sfn.StateMachine,
        run_input: Mapping[str, Any],
    ) -> None:
        super().__init__(scope, "Ingest")
        self._config, self._storage = config, storage
        self.streams = self._streams(run_input)
        self.dead_letters = self._dead_letter_queue()
        self.queue = sqs.Queue(
            self,
            "Events",
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=Duration.days(_KEPT_DAYS),
            visibility_timeout=Duration.seconds(_VISIBILITY * REGISTER_TIMEOUT_SECONDS),
            dead_letter_queue=sqs.DeadLetterQueue(
                queue=self.dead_letters, max_receive_count=_TRIES
            ),
        )
        self._route()
        for name in ("register", "sweep"):
            self._describe_streams(functions.by_name[name])
        self._feed(functions)
        self._let_start(functions, machine)
        self._sweep(functions.by_name["sweep"])

    def _streams(self, run_input: Mapping[str, Any]) -> str:
        config = self._config
        given = {name: value for name, value in run_input.items() if name not in _NOT_OF_STREAMS}
        stream = {
            "name": config.name,
            "input": given,
            "seconds": config.events_seconds,
        }
        length = len(json.dumps([stream]))
        if length > _STREAMS_CHARACTERS:
            accepted = (
                f"fields of a run of at most {_STREAMS_CHARACTERS:,} characters as JSON, which"
                f" functions get as a variable; these have {length:,}"
            )
            raise InvalidInput("ingest", config.ingest, accepted)
        return Stack.of(self).to_json_string([stream])

    def _dead_letter_queue(self) -> sqs.Queue:
        queue = sqs.Queue(
            self,
            "DeadLetters",
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=Duration.days(_DEAD_KEPT_DAYS),
        )
        acknowledge(queue, "AwsSolutions-SQS3", "It is a dead-letter queue itself.")
        return queue

    def _route(self) -> None:
        """Route the events of the source's bucket into the queue."""
        source = self._storage.source
        if not self._config.made_source and self._config.switch_on_notifications:
            Notifications(self, self._config, self._config.run.source.root.bucket)
        detail: dict[str, Any] = {"bucket": {"name": [source.bucket.bucket_name]}}
        if source.prefix:
            detail["object"] = {"key": [{"prefix": source.prefix}]}
        rule = events.Rule(
            self,
            "Rule",
            description="s3-compactor: what happens to objects of the source",
            event_pattern=events.EventPattern(
                source=["aws.s3"], detail_type=list(_KINDS), detail=detail
            ),
        )
        rule.add_target(targets.SqsQueue(self.queue, dead_letter_queue=self.dead_letters))

    def _describe_streams(self, function: lambda_.Function) -> None:
        registry = self._storage.registry
        assert registry is not None  # noqa: S101 - made for deployments with events
        function.add_environment("REGISTRY_TABLE", registry.table.table_name)
        function.add_environment("STREAMS", self.streams)

    def _let_start(self, functions: Functions, machine: sfn.StateMachine) -> None:
        function, role = functions.by_name["sweep"], functions.roles["sweep"]
        function.add_environment("STATE_MACHINE_ARN", machine.state_machine_arn)
        allow(role, ["states:StartExecution"], [machine.state_machine_arn])
        executions = Stack.of(self).format_arn(
            service="states",
            resource="execution",
            resource_name=f"{self._config.name}:*",
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )
        why = "Executions of this machine alone, named after what they compact."
        allow(role, ["states:DescribeExecution"], [executions], wildcard=why)

    def _feed(self, functions: Functions) -> None:
        allow(
            functions.roles["register"],
            ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"],
            [self.queue.queue_arn],
        )
        lambda_.EventSourceMapping(
            self,
            "Feed",
            target=functions.by_name["register"],
            event_source_arn=self.queue.queue_arn,
            batch_size=_BATCH,
            max_batching_window=Duration.seconds(_WINDOW_SECONDS),
            max_concurrency=_CONCURRENT,
            report_batch_item_failures=True,
        ).node.add_dependency(functions.roles["register"])

    def _sweep(self, function: lambda_.Function) -> None:
        config = self._config
        role = own_role(self, "SweepRole", "scheduler.amazonaws.com", of_this_account=True)
        acknowledge_wildcard(
            role,
            f"{function.function_arn}:*",
            "Versions and aliases of the one function, which CDK adds.",
        )
        often = Duration.minutes(config.sweep_minutes)
        # No retries: the next invocation does what a failed one did not.
        function.configure_async_invoke(retry_attempts=0, max_event_age=often)
        for name, rate, given in (
            ("sweep", often, {}),
            ("reconcile", Duration.hours(config.reconcile_hours), {"reconcile": True}),
        ):
            scheduler.Schedule(
                self,
                name.capitalize(),
                schedule_name=f"{config.name}-{name}",
                description=f"s3-compactor: {name} of what waits",
                schedule=scheduler.ScheduleExpression.rate(rate),
                target=scheduler_targets.LambdaInvoke(
                    function,
                    input=scheduler.ScheduleTargetInput.from_object(given),
                    retry_attempts=0,
                    max_event_age=often,
                    role=role,
                ),
            )
