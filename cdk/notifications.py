"""Bucket notifications: the source's bucket notifies EventBridge of its objects.

A bucket has one notification configuration, which a request can only replace as a whole. For a
bucket that the stack creates, it is a property (cdk.storage). For an existing bucket, CDK's custom
resource reads the configuration, adds EventBridge, and writes it back; when the resource is
deleted, it writes back the current configuration with EventBridge still enabled. However, when such
a resource is *updated*, CDK's program (aws-cdk-lib 2.275) clears the ``Id`` of all other
notifications, by which other stacks find theirs. Therefore the bucket is part of the resource's id:
another source bucket is a new resource, which is created, and the old one is deleted.
"""

from __future__ import annotations

import hashlib

from aws_cdk import CfnResource, RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from constructs import Construct, IConstruct

from cdk.assets import LAMBDA_PYTHON
from cdk.config import Config
from cdk.function_set import log_days
from cdk.grants import allow, own_role

# The id of CDK's function that serves all such resources of a stack.
_PROGRAM = "BucketNotificationsHandler050a0587b7544547bf325f094a3db834"


class Notifications(Construct):
    """Enables EventBridge on an existing bucket.

    Args:
        scope: the stack.
        config: gives the log's name and retention.
        name: name of the bucket.
    """

    def __init__(self, scope: Construct, config: Config, name: str) -> None:
        super().__init__(scope, "Notifications")
        log = logs.LogGroup(
            self,
            "Log",
            log_group_name=f"/aws/lambda/{config.name}-notifications",
            retention=log_days(config.log_retention_days),
            removal_policy=RemovalPolicy.DESTROY,
        )
        role = own_role(self, "Role", "lambda.amazonaws.com")
        allow(
            role,
            ["logs:CreateLogStream", "logs:PutLogEvents"],
            [log.log_group_arn],
            wildcard="Streams of its own log group; Lambda names them.",
        )
        digest = hashlib.sha256(name.encode()).hexdigest()[:8]
        bucket = s3.Bucket.from_bucket_attributes(
            self,
            f"Source{digest}",
            bucket_name=name,
            notifications_handler_role=role,
        )
        bucket.enable_event_bridge_notification()
        added = _made(bucket.node.find_child("Notifications"))
        # Other notifications are written back unchanged, even if their destination is gone.
        added.add_property_override("SkipDestinationValidation", True)
        self._trim(role, log)

    def _trim(self, role: iam.Role, log: logs.LogGroup) -> None:
        """Remove the managed policies of CDK's function, and give it our log and runtime."""
        resource = _made(role)
        assert isinstance(resource, iam.CfnRole)  # noqa: S101 - what an L2 role is
        resource.managed_policy_arns = None
        program = _made(Stack.of(self).node.find_child(_PROGRAM))
        program.add_property_override("LoggingConfig", {"LogGroup": log.log_group_name})
        program.add_property_override("Runtime", f"python{LAMBDA_PYTHON}")


def _made(construct: IConstruct) -> CfnResource:
    resource = construct.node.find_child("Resource")
    assert isinstance(resource, CfnResource)  # noqa: S101 - what CDK calls so
    return resource
