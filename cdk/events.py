"""Events: S3 notifies EventBridge of each object, a rule fills a queue, a function registers them.

Another function checks every few minutes whether enough objects are pending, or one has been
pending for long enough, and starts the workflow.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from aws_cdk import CfnResource, Duration, RemovalPolicy, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_scheduler_targets as scheduler_targets
from aws_cdk import aws_sqs as sqs
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct, IConstruct

from cdk.assets import LAMBDA_PYTHON
from cdk.config import Deployment
from cdk.functions import Functions, own_log
from cdk.grants import Role, acknowledge_wildcard, allow, may_list, may_read, may_write, own_role
from cdk.machines import arn_of, dead_letters
from cdk.storage import Storage
from compactor.errors import InvalidInput
from compactor.settings.layout import RECONCILE

# A batch of a thousand messages takes a few seconds.
_REGISTER_SECONDS, _MEMORY_MB = 60, 1_024
# A message keeps its age when it moves to the dead-letter queue, which keeps it for two weeks.
_KEPT_DAYS = 7
# "Creating and configuring an Amazon SQS event source mapping": six times the function's time-out,
# and five attempts, so that throttled invocations do not create dead letters.
_VISIBILITY, _TRIES = 6, 5
# Each call registers about a thousand objects a second.
_BATCH, _WINDOW_SECONDS, _CONCURRENT = 1_000, 5, 10
_RECONCILE_HOURS = 24
# Lambda allows 4 KB for all variables together; CloudFormation fills in names of buckets later.
_STREAMS_CHARACTERS = 3_000
# The listing follows from the registry's table. Clean-up goes through all commit logs, too much
# for a run every few minutes; scheduled runs do it.
_NOT_OF_STREAMS = ("listing", "delete_after")
# Contains only pending objects. It is a local index because global ones have no consistent reads.
_INDEX = "pending"
# The id of CDK's function that serves all notifications of a stack.
_PROGRAM = "BucketNotificationsHandler050a0587b7544547bf325f094a3db834"


class Registry(Construct):
    """The DynamoDB table of pending objects; like buckets it outlives the stack.

    Args:
        scope: the stack.
        key: the KMS key of the destination; None for DynamoDB's own.
    """

    def __init__(self, scope: Construct, key: kms.IKey | None) -> None:
        super().__init__(scope, "Registry")
        self._key = key
        kinds = dynamodb.TableEncryption
        self.table = dynamodb.Table(
            self,
            "Table",
            # Attributes of the items that compactor.registry writes.
            partition_key=_text("pk"),
            sort_key=_text("sk"),
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            encryption=kinds.CUSTOMER_MANAGED if key else kinds.DEFAULT,
            encryption_key=key,
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            time_to_live_attribute="expires_at",
            deletion_protection=True,
            removal_policy=RemovalPolicy.RETAIN,
        )
        # A local index can only be created together with the table.
        self.table.add_local_secondary_index(
            index_name=_INDEX,
            sort_key=_text(_INDEX),
            projection_type=dynamodb.ProjectionType.ALL,
        )

    def may_register(self, role: Role) -> None:
        """Allow registering objects, and marking those that were withdrawn."""
        self._may(role, "PartiQLInsert", "PutItem", "UpdateItem")

    def may_note_discovery(self, role: Role) -> None:
        """Allow recording how far a run has read the registry."""
        self._may(role, "PutItem")

    def may_mark(self, role: Role) -> None:
        """Allow marking objects as compacted."""
        self._may(role, "UpdateItem")

    def _may(self, role: Role, *actions: str) -> None:
        arn = self.table.table_arn
        allow(role, ["dynamodb:Query"], [arn, f"{arn}/index/{_INDEX}"])
        allow(role, [f"dynamodb:{one}" for one in ("GetItem", *actions)], [arn])
        if self._key is not None:
            allow(role, ["kms:Decrypt"], [self._key.key_arn])


def _text(name: str) -> dynamodb.Attribute:
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.STRING)


class Events(Construct):
    """Fills the registry from events, and starts runs for pending objects.

    Attributes:
        queue: the queue of S3's events.
        dead_letters: the queue of events that could not be parsed or delivered.
        streams: the source's description for the functions, as JSON.
    """

    def __init__(
        self,
        scope: Stack,
        deployment: Deployment,
        storage: Storage,
        *,
        registry: Registry,
        functions: Functions,
        machine: sfn.StateMachine,
        run_input: Mapping[str, Any],
    ) -> None:
        super().__init__(scope, "Events")
        about = deployment.events
        assert about is not None  # noqa: S101 - made for deployments with events
        self.streams = _streams(scope, deployment, run_input)
        self.dead_letters = dead_letters(self, "DeadLetters")
        self.queue = sqs.Queue(
            self,
            "Queue",
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=Duration.days(_KEPT_DAYS),
            visibility_timeout=Duration.seconds(_VISIBILITY * _REGISTER_SECONDS),
            dead_letter_queue=sqs.DeadLetterQueue(
                queue=self.dead_letters, max_receive_count=_TRIES
            ),
        )
        if not deployment.makes_source and about.notify:
            Notifications(self, deployment.name, deployment.run.source.root.bucket)
        self._route(storage)
        self._register(functions, registry)
        self._sweep(deployment, storage, registry, functions, machine)

    def _route(self, storage: Storage) -> None:
        """Route the events of the source's bucket into the queue."""
        source = storage.source
        detail: dict[str, Any] = {"bucket": {"name": [source.bucket.bucket_name]}}
        if source.prefix:
            detail["object"] = {"key": [{"prefix": source.prefix}]}
        events.Rule(
            self,
            "Rule",
            description="s3-compactor: what happens to objects of the source",
            event_pattern=events.EventPattern(
                source=["aws.s3"],
                detail_type=["Object Created", "Object Deleted"],
                detail=detail,
            ),
        ).add_target(targets.SqsQueue(self.queue, dead_letter_queue=self.dead_letters))

    def _register(self, functions: Functions, registry: Registry) -> None:
        role = functions.add("register", _MEMORY_MB, timeout_seconds=_REGISTER_SECONDS)
        registry.may_register(role)
        self._describe(functions.by_name["register"], registry)
        taking = ("ReceiveMessage", "DeleteMessage", "GetQueueAttributes")
        allow(role, [f"sqs:{one}" for one in taking], [self.queue.queue_arn])
        lambda_.EventSourceMapping(
            self,
            "Feed",
            target=functions.by_name["register"],
            event_source_arn=self.queue.queue_arn,
            batch_size=_BATCH,
            max_batching_window=Duration.seconds(_WINDOW_SECONDS),
            max_concurrency=_CONCURRENT,
            report_batch_item_failures=True,
        ).node.add_dependency(role)

    def _sweep(
        self,
        deployment: Deployment,
        storage: Storage,
        registry: Registry,
        functions: Functions,
        machine: sfn.StateMachine,
    ) -> None:
        role = functions.add("sweep", _MEMORY_MB)
        function = functions.by_name["sweep"]
        registry.may_register(role)
        # It looks for objects that no event announced, and in the log for those compacted already.
        may_list(role, storage.source)
        may_read(role, storage.state)
        may_write(role, storage.state, f"{RECONCILE}*.json")
        self._describe(function, registry)
        function.add_environment("STATE_MACHINE_ARN", machine.state_machine_arn)
        allow(role, ["states:StartExecution"], [machine.state_machine_arn])
        why = "Executions of this machine alone, named after what they compact."
        executions = arn_of(role, "states", "execution", f"{deployment.name}:*")
        allow(role, ["states:DescribeExecution"], [executions], wildcard=why)

        starter = own_role(self, "SweepRole", "scheduler.amazonaws.com")
        versions = "Versions and aliases of the one function, which CDK adds."
        acknowledge_wildcard(starter, f"{function.function_arn}:*", versions)
        assert deployment.events is not None  # noqa: S101 - as above
        often = Duration.minutes(deployment.events.sweep_minutes)
        # No retries: the next invocation does what a failed one did not.
        function.configure_async_invoke(retry_attempts=0, max_event_age=often)
        for name, rate, event in (
            ("sweep", often, {}),
            ("reconcile", Duration.hours(_RECONCILE_HOURS), {"reconcile": True}),
        ):
            scheduler.Schedule(
                self,
                name.capitalize(),
                schedule_name=f"{deployment.name}-{name}",
                description=f"s3-compactor: {name} of what waits",
                schedule=scheduler.ScheduleExpression.rate(rate),
                target=scheduler_targets.LambdaInvoke(
                    function,
                    input=scheduler.ScheduleTargetInput.from_object(event),
                    retry_attempts=0,
                    max_event_age=often,
                    role=starter,
                ),
            )

    def _describe(self, function: lambda_.Function, registry: Registry) -> None:
        function.add_environment("REGISTRY_TABLE", registry.table.table_name)
        function.add_environment("STREAMS", self.streams)


def _streams(stack: Stack, deployment: Deployment, run_input: Mapping[str, Any]) -> str:
    kept = {name: value for name, value in run_input.items() if name not in _NOT_OF_STREAMS}
    assert deployment.events is not None  # noqa: S101 - as above
    stream = {"name": deployment.name, "input": kept, "seconds": deployment.events.seconds}
    length = len(json.dumps([stream]))
    if length > _STREAMS_CHARACTERS:
        accepted = (
            f"fields of at most {_STREAMS_CHARACTERS:,} characters as JSON with [events], whose"
            f" functions get them as a variable; these have {length:,}"
        )
        raise InvalidInput("job", "…", accepted)
    return stack.to_json_string([stream])


class Notifications(Construct):
    """Enables EventBridge on a bucket that is there, and keeps its other notifications.

    A bucket has one notification configuration, which a request can only replace as a whole. CDK's
    custom resource reads it, adds EventBridge, and writes it back; when the resource is deleted, it
    writes back the current configuration with EventBridge still enabled. However, when such a
    resource is *updated*, CDK's program (aws-cdk-lib 2.275) clears the ``Id`` of all other
    notifications, by which other stacks find theirs. Therefore the bucket is part of the resource's
    id: another source bucket is a new resource, which is created, and the old one is deleted.
    """

    def __init__(self, scope: Construct, name: str, bucket_name: str) -> None:
        super().__init__(scope, "Notifications")
        role = own_role(self, "Role", "lambda.amazonaws.com")
        log = own_log(self, "Log", f"/aws/lambda/{name}-notifications", role)
        digest = hashlib.sha256(bucket_name.encode()).hexdigest()[:8]
        bucket = s3.Bucket.from_bucket_attributes(
            self, f"Source{digest}", bucket_name=bucket_name, notifications_handler_role=role
        )
        bucket.enable_event_bridge_notification()
        added = _resource_of(bucket.node.find_child("Notifications"))
        # Other notifications are written back unchanged, even if their destination is gone.
        added.add_property_override("SkipDestinationValidation", True)
        # The managed policies of CDK's function go, and it gets our log and runtime.
        resource = _resource_of(role)
        assert isinstance(resource, iam.CfnRole)  # noqa: S101 - what an L2 role is
        resource.managed_policy_arns = None
        program = _resource_of(Stack.of(self).node.find_child(_PROGRAM))
        program.add_property_override("LoggingConfig", {"LogGroup": log.log_group_name})
        program.add_property_override("Runtime", f"python{LAMBDA_PYTHON}")


def _resource_of(construct: IConstruct) -> CfnResource:
    resource = construct.node.find_child("Resource")
    assert isinstance(resource, CfnResource)  # noqa: S101 - what CDK calls so
    return resource
