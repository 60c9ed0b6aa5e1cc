"""The registry: the DynamoDB table of objects that S3 events announced."""

from __future__ import annotations

from aws_cdk import RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_kms as kms
from constructs import Construct

# Attributes of the items that compactor.registry writes.
_PARTITION_KEY, _SORT_KEY, _EXPIRES_AT = "pk", "sk", "expires_at"
# Contains only pending objects. It is a local index because global ones have no consistent reads.
_INDEX = "pending"


class Registry(Construct):
    """The registry's table, encrypted like the state. LIST can restore its content.

    Args:
        scope: the construct that it belongs to.
        key: the KMS key; None for DynamoDB's own.

    Attributes:
        table: the table; it is kept when the stack is deleted, like buckets.
        key: the KMS key, which users of the table need as well; None for DynamoDB's own.
    """

    def __init__(self, scope: Construct, key: kms.IKey | None) -> None:
        super().__init__(scope, "Registry")
        self.key = key
        kinds = dynamodb.TableEncryption
        self.table = dynamodb.Table(
            self,
            "Table",
            partition_key=_text(_PARTITION_KEY),
            sort_key=_text(_SORT_KEY),
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            encryption=kinds.CUSTOMER_MANAGED if key else kinds.DEFAULT,
            encryption_key=key,
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            time_to_live_attribute=_EXPIRES_AT,
            deletion_protection=True,
            removal_policy=RemovalPolicy.RETAIN,
        )
        # A local index can only be created together with the table.
        self.table.add_local_secondary_index(
            index_name=_INDEX,
            sort_key=_text(_INDEX),
            projection_type=dynamodb.ProjectionType.ALL,
        )

    @property
    def index_arn(self) -> str:
        """The ARN of the index of pending objects."""
        return f"{self.table.table_arn}/index/{_INDEX}"


def _text(name: str) -> dynamodb.Attribute:
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.STRING)
