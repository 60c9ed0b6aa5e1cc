"""Buckets, made or there already, the prefixes in them that others use, and their encryption."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import aws_cdk as cdk
from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from cdk.config import EXPIRE, MADE_DESTINATION, MADE_SOURCE, Deployment
from compactor.settings.layout import RUNS
from compactor.settings.uris import S3Uri

#: Days until logs are deleted.
LOG_DAYS = 30
#: Below the state: the logs of Spark jobs, and what Athena returned to maintenance.
SPARK_LOGS, ATHENA_RESULTS = "spark-logs/", "athena-results/"
# IA and Glacier IR bill at least 128 KB per object: moving smaller ones costs more than it saves.
_WORTH_MOVING_BYTES = 128 * 1024
# Long enough for the next run to publish what a killed run committed instead of rebuilding it.
_ABORT_UPLOADS_DAYS = 3
# Longer than Step Functions allows a run to be redriven.
_KEEP_RUNS_DAYS = 90
# Leaves time to notice a mistake and undo it.
_NONCURRENT_DAYS = 30
_CLASSES = {
    "standard_ia": s3.StorageClass.INFREQUENT_ACCESS,
    "intelligent_tiering": s3.StorageClass.INTELLIGENT_TIERING,
    "glacier_ir": s3.StorageClass.GLACIER_INSTANT_RETRIEVAL,
    "glacier": s3.StorageClass.GLACIER,
    "deep_archive": s3.StorageClass.DEEP_ARCHIVE,
}


@dataclass(frozen=True, slots=True)
class Place:
    """A prefix in a bucket.

    Attributes:
        bucket: the bucket.
        prefix: empty, or ends in ``/``.
        key: the KMS key of what is written there.
        is_ours: the bucket must belong to the account of the deployment.
    """

    bucket: s3.IBucket
    prefix: str
    key: kms.IKey | None
    is_ours: bool = False

    @property
    def uri(self) -> str:
        """The URI; contains a token if CloudFormation names the bucket."""
        return f"s3://{self.bucket.bucket_name}/{self.prefix}"

    def objects(self, below: str = "*") -> str:
        """Return the ARN of the objects below this prefix that match a pattern."""
        return self.bucket.arn_for_objects(self.prefix + below)


class Buckets(Construct):
    """The buckets of a stack, each by its name once."""

    def __init__(self, scope: Construct, deployment: Deployment) -> None:
        super().__init__(scope, "Storage")
        self._deployment = deployment
        self._buckets: dict[str, s3.IBucket] = {}
        self._keys: dict[str, kms.IKey] = {}

    def place(self, uri: S3Uri, role: str, key_arn: str | None) -> Place:
        """Return a place; its bucket is made if the deployment names none.

        Args:
            uri: bucket and prefix.
            role: id of the bucket's construct, ``Source`` or ``Destination`` for one to be made.
            key_arn: the KMS key of what is written there.
        """
        key = self._key(key_arn)
        if uri.bucket not in self._buckets:
            is_made = uri.bucket in (MADE_SOURCE, MADE_DESTINATION)
            bucket = self._made(role, key) if is_made else self._there(role, uri.bucket)
            self._buckets[uri.bucket] = bucket
        bucket = self._buckets[uri.bucket]
        return Place(bucket, uri.prefix, key, is_ours=isinstance(bucket, s3.Bucket))

    def _there(self, role: str, name: str) -> s3.IBucket:
        return s3.Bucket.from_bucket_name(self, role, name)

    def _key(self, arn: str | None) -> kms.IKey | None:
        if arn is not None and arn not in self._keys:
            self._keys[arn] = kms.Key.from_key_arn(self, f"Key{len(self._keys)}", arn)
        return None if arn is None else self._keys[arn]

    def _made(self, role: str, key: kms.IKey | None) -> s3.Bucket:
        holds_state = role == "Destination"
        bucket = s3.Bucket(
            self,
            role,
            encryption=s3.BucketEncryption.KMS if key else s3.BucketEncryption.S3_MANAGED,
            encryption_key=key,
            bucket_key_enabled=True if key else None,
            enforce_ssl=True,
            minimum_tls_version=1.2,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            # Earlier versions are the only copy of a commit log.
            versioned=holds_state,
            removal_policy=RemovalPolicy.RETAIN,
        )
        bucket.add_lifecycle_rule(
            id="unfinished-uploads",
            abort_incomplete_multipart_upload_after=Duration.days(_ABORT_UPLOADS_DAYS),
        )
        cdk.Validations.of(bucket).acknowledge(
            cdk.Acknowledgment(
                id="AwsSolutions-S1",
                reason="Access logs are small objects without end; you choose their bucket.",
            )
        )
        if not holds_state and self._deployment.events is not None:
            # CDK's own way is a function of its own; a bucket of the stack has a property for it.
            resource = bucket.node.default_child
            assert isinstance(resource, s3.CfnBucket)  # noqa: S101 - what an L2 bucket is
            told = "NotificationConfiguration.EventBridgeConfiguration.EventBridgeEnabled"
            resource.add_property_override(told, True)
        if holds_state:
            bucket.add_lifecycle_rule(
                id="earlier-versions",
                noncurrent_version_expiration=Duration.days(_NONCURRENT_DAYS),
                expired_object_delete_marker=True,
            )
            state = self._deployment.run.state.prefix
            for ident, below, days in (
                ("old-runs", RUNS, _KEEP_RUNS_DAYS),
                ("old-spark-logs", SPARK_LOGS, LOG_DAYS),
            ):
                after = Duration.days(days)
                bucket.add_lifecycle_rule(id=ident, prefix=state + below, expiration=after)
            self._move_outputs(bucket)
        return bucket

    def _move_outputs(self, bucket: s3.Bucket) -> None:
        # Only outputs move: every run reads the commit log.
        lifecycle = self._deployment.lifecycle
        prefix = self._deployment.run.destination.prefix
        moves = [(to, lifecycle[name]) for name, to in _CLASSES.items() if name in lifecycle]
        if moves:
            cdk.Validations.of(bucket).acknowledge(
                cdk.Acknowledgment(
                    id="CloudFormation-Validate::W9003",
                    reason="CDK writes ObjectSizeGreaterThan as a number; both forms are taken.",
                )
            )
            bucket.add_lifecycle_rule(
                id="cheaper-classes",
                prefix=prefix,
                object_size_greater_than=_WORTH_MOVING_BYTES,
                transitions=[
                    s3.Transition(storage_class=to, transition_after=Duration.days(days))
                    for to, days in moves
                ],
            )
        if EXPIRE in lifecycle:
            days = Duration.days(lifecycle[EXPIRE])
            bucket.add_lifecycle_rule(id="expired-outputs", prefix=prefix, expiration=days)


class Storage(Buckets):
    """The source, the destination, the state and the table of a deployment that compacts.

    Attributes:
        tables: location of the table that outputs are published to, then that of its key table if
            rows have a key; empty without a table.
    """

    def __init__(self, scope: Construct, deployment: Deployment) -> None:
        super().__init__(scope, deployment)
        run, keys = deployment.run, deployment.keys
        source, destination = run.source.root, run.destination
        in_source = run.state.bucket == source.bucket != destination.bucket
        shared = source.bucket == destination.bucket
        source_key = keys.source or (keys.destination if shared else None)
        # The destination comes first: it decides if source and destination share a bucket.
        self.destination = self.place(destination, "Destination", keys.destination)
        self.source = self.place(source, "Source", source_key)
        state = self.place(run.state, "State", keys.source if in_source else keys.destination)
        # A state machine can only use a state in its own account.
        self.state = state if deployment.standalone else replace(state, is_ours=True)
        self.tables = tuple(map(self._table, deployment.table_locations))
        # What all that takes part in a run names in each write.
        written = (self.state, *self.tables, self.destination)
        others = self.tables[0].key if self.tables else None
        self.encryption = encryption_of(deployment, written, others)

    def _table(self, location: S3Uri) -> Place:
        run, keys = self._deployment.run, self._deployment.keys
        by_bucket = {
            run.state.bucket: keys.destination,
            run.source.root.bucket: keys.source,
            run.destination.bucket: keys.destination,
        }
        return self.place(location, "Table", by_bucket.get(location.bucket, keys.table))


def encryption_of(
    deployment: Deployment, places: Iterable[Place], others: kms.IKey | None = None
) -> str:
    """Return the value of :data:`compactor.settings.encryption.ENCRYPTION_VARIABLE`.

    Args:
        deployment: says what is named where there is no key.
        places: where a process writes; of two places in one bucket the last one counts.
        others: the key of all other buckets, and of Iceberg tables that Spark writes.
    """
    keys = {one.bucket.bucket_name: one.key.key_arn for one in places if one.key is not None}
    usual = deployment.encryption if others is None else others.key_arn
    return ",".join([usual, *(f"{bucket}={key}" for bucket, key in keys.items())])
