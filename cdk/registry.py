"""The registry: the DynamoDB table of objects that wait, where S3 names them by events."""

from __future__ import annotations

from aws_cdk import RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_kms as kms
from constructs import Construct

# Of compactor.registry, whose items have these attributes.
_PARTITION_KEY, _SORT_KEY, _EXPIRES_AT = "pk", "sk", "expires_at"
# Has only what waits, and is read consistently, which no global index is.
_INDEX = "pending"


class Registry(Construct):
    """The table, encrypted as the state is. What is in it can be found again by LIST.

    Args:
        scope: the construct it belongs to.
        key: of KMS; None for DynamoDB's own.

    Attributes:
        table: outlives the stack, as buckets do.
        key: which users of the table must be allowed to use, too; None for DynamoDB's own.
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
        # It can only be made with the table.
        self.table.add_local_secondary_index(
            index_name=_INDEX,
            sort_key=_text(_INDEX),
            projection_type=dynamodb.ProjectionType.ALL,
        )

    @property
    def index_arn(self) -> str:
        """The ARN of the index of what waits."""
        return f"{self.table.table_arn}/index/{_INDEX}"


def _text(name: str) -> dynamodb.Attribute:
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.STRING)
