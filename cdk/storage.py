"""Buckets, created or imported, and the prefixes in them that the other modules use."""

from __future__ import annotations

from dataclasses import dataclass, replace

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from cdk.checks import acknowledge
from cdk.config import MADE_DESTINATION, MADE_SOURCE, Config
from cdk.readers import DESTINATION, EXPIRE, SOURCE, TABLE
from cdk.registry import Registry
from compactor.layout import RUNS
from compactor.settings.uris import S3Uri

# IA and Glacier IR bill at least 128 KB per object: moving smaller ones costs more than it saves.
_WORTH_MOVING_BYTES = 128 * 1024
# Long enough for the next run to publish what a killed run committed instead of rebuilding it.
_ABORT_UPLOADS_DAYS = 3
_CLASSES = {
    "standard_ia": s3.StorageClass.INFREQUENT_ACCESS,
    "intelligent_tiering": s3.StorageClass.INTELLIGENT_TIERING,
    "glacier_ir": s3.StorageClass.GLACIER_INSTANT_RETRIEVAL,
    "glacier": s3.StorageClass.GLACIER,
    "deep_archive": s3.StorageClass.DEEP_ARCHIVE,
}
_KEYS = {DESTINATION: "Key", SOURCE: "SourceKey", TABLE: "TableKey"}
#: Below the state: the logs of Spark jobs, and what Athena returned to maintenance.
SPARK_LOGS, ATHENA_RESULTS = "spark-logs/", "athena-results/"
# Longer than Step Functions allows a run to be redriven.
_KEEP_RUNS_DAYS = 90
# Leaves time to notice a mistake and undo it.
_NONCURRENT_DAYS = 30


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


class Storage(Construct):
    """The source, the destination, the state, and the storage that goes with them.

    Args:
        scope: the stack.
        config: says which buckets are created; the others must exist.

    Attributes:
        registry: the table of pending objects; None without events.
        tables: location of the table that outputs are published to, then that of its key table if
            rows have a key; empty without a table.
    """

    def __init__(self, scope: Construct, config: Config) -> None:
        super().__init__(scope, "Storage")
        self._config = config
        self._keys = {
            what: kms.Key.from_key_arn(self, ident, config.kms_keys[what])
            for what, ident in _KEYS.items()
            if what in config.kms_keys
        }
        self._buckets: dict[str, s3.IBucket] = {}
        run = config.run
        key, source_key = self._keys.get(DESTINATION), self._keys.get(SOURCE)
        in_source = run.state.bucket == run.source.root.bucket != run.destination.bucket
        shared = run.source.root.bucket == run.destination.bucket
        # The destination comes first: it decides if source and destination share a bucket.
        self.destination = self._place(run.destination, "Destination", key)
        self.source = self._place(
            run.source.root, "Source", source_key or (key if shared else None)
        )
        state = self._place(run.state, "State", source_key if in_source else key)
        # A state machine can only use a state in its own account.
        self.state = state if config.standalone else replace(state, is_ours=True)
        self.tables = self._tables()
        self.registry = Registry(self, key) if config.events else None
        if config.events and config.made_source:
            _notify_event_bridge(self.source.bucket)

    def _tables(self) -> tuple[Place, ...]:
        known = (self.destination, self.source, self.state)
        found = []
        for location in self._config.table_locations:
            keys = [one.key for one in known if one.bucket is self._buckets.get(location.bucket)]
            key = keys[0] if keys else self._keys.get(TABLE)
            found.append(self._place(location, "Table", key))
        return tuple(found)

    def _place(self, uri: S3Uri, role: str, key: kms.IKey | None) -> Place:
        if uri.bucket not in self._buckets:
            self._buckets[uri.bucket] = self._bucket(uri.bucket, role)
        bucket = self._buckets[uri.bucket]
        return Place(bucket, uri.prefix, key, is_ours=isinstance(bucket, s3.Bucket))

    def _bucket(self, name: str, role: str) -> s3.IBucket:
        config = self._config
        if role == "Destination" and config.made_destination:
            bucket = self._made("Destination", name)
            self._move_outputs(bucket)
            return bucket
        if role == "Source" and config.made_source:
            return self._made("Source", name)
        return s3.Bucket.from_bucket_name(self, role, name)

    def _made(self, role: str, name: str) -> s3.Bucket:
        config = self._config
        key = self._keys.get(SOURCE if role == "Source" else DESTINATION)
        logs = S3Uri.parse("access_logs_uri", config.access_logs_uri or "s3://not-used/")
        logs_bucket = (
            s3.Bucket.from_bucket_name(self, f"{role}AccessLogs", logs.bucket)
            if config.access_logs_uri
            else None
        )
        bucket = s3.Bucket(
            self,
            role,
            bucket_name=None if name in (MADE_SOURCE, MADE_DESTINATION) else name,
            encryption=s3.BucketEncryption.KMS if key else s3.BucketEncryption.S3_MANAGED,
            encryption_key=key,
            bucket_key_enabled=True if key else None,
            enforce_ssl=True,
            minimum_tls_version=1.2,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            versioned=config.versioned,
            server_access_logs_bucket=logs_bucket,
            server_access_logs_prefix=logs.prefix or None if logs_bucket else None,
            removal_policy=RemovalPolicy.RETAIN,
        )
        bucket.add_lifecycle_rule(
            id="unfinished-uploads",
            abort_incomplete_multipart_upload_after=Duration.days(_ABORT_UPLOADS_DAYS),
        )
        bucket.add_lifecycle_rule(
            id="earlier-versions",
            noncurrent_version_expiration=Duration.days(_NONCURRENT_DAYS),
            expired_object_delete_marker=True if config.versioned else None,
        )
        if config.run.state.bucket == name:
            self._expire_records(bucket)
        if not config.access_logs_uri:
            acknowledge(
                bucket,
                "AwsSolutions-S1",
                "Access logs are a setting, access_logs_uri: they are small objects without end,"
                " and their bucket is better chosen than made.",
            )
        else:
            acknowledge(
                bucket,
                "Annotation::@aws-cdk/aws-s3:accessLogsPolicyNotAdded",
                "The bucket of the access logs is there already and lets S3 write to it.",
            )
        return bucket

    def _expire_records(self, bucket: s3.Bucket) -> None:
        """Expire what runs leave below the state besides the log; no commit is stored there."""
        config = self._config
        days = {"old-runs": (RUNS, _KEEP_RUNS_DAYS)}
        if config.run.spark_engine != "none":
            days["old-spark-logs"] = (SPARK_LOGS, config.log_retention_days)
        if config.maintenance is not None:
            days["old-athena-results"] = (ATHENA_RESULTS, config.log_retention_days)
        for ident, (below, count) in days.items():
            prefix = config.run.state.prefix + below
            bucket.add_lifecycle_rule(id=ident, prefix=prefix, expiration=Duration.days(count))

    def _move_outputs(self, bucket: s3.Bucket) -> None:
        # Only outputs move: every run reads the commit log.
        lifecycle, prefix = self._config.lifecycle, self._config.run.destination.prefix
        moves = [(to, lifecycle[name]) for name, to in _CLASSES.items() if name in lifecycle]
        if moves:
            acknowledge(
                bucket,
                "CloudFormation-Validate::W9003",
                "CDK writes ObjectSizeGreaterThan as a number, CloudFormation takes both.",
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


def _notify_event_bridge(bucket: s3.IBucket) -> None:
    """Enable EventBridge on a bucket that the stack creates (existing ones: cdk.notifications)."""
    resource = bucket.node.default_child
    assert isinstance(resource, s3.CfnBucket)  # noqa: S101 - what an L2 bucket is
    resource.notification_configuration = s3.CfnBucket.NotificationConfigurationProperty(
        event_bridge_configuration=s3.CfnBucket.EventBridgeConfigurationProperty(
            event_bridge_enabled=True
        )
    )
