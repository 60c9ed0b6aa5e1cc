"""Every key of the deployment's configuration, described once.

The fields of a run (:data:`compactor.settings.fields.FIELDS`) are keys as well: they become the
input of scheduled runs. The checks of :class:`cdk.config.Config` and the table in
docs/deployment.md are derived from this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from cdk.maintenance_fields import ALONE, MAINTENANCE_FIELDS
from cdk.readers import (
    BUNDLED,
    E_MAIL,
    EMR_CLUSTER,
    JARS,
    KMS_KEYS,
    LIFECYCLE,
    LOCATION,
    LOG_DAYS,
    SCHEDULE,
    TIME_ZONE,
    VPC,
    or_null,
)
from compactor.discovery.fleet import USUAL_WORKER_MB
from compactor.settings.encryption import AES256, BUCKET_DEFAULT, KMS
from compactor.settings.fields import FIELDS
from compactor.settings.specs import FieldSpec, flag, matching, one_of, whole

_WHERE, _WHEN, _BUCKETS = "Where", "Schedule", "Buckets made by the stack"
_EVENTS, _TABLE = "Events", "Table"
_WORK, _SPARK, _WATCH = "Functions", "Spark", "Operation"

_DEPLOYMENT = (
    FieldSpec(
        "name",
        _WHERE,
        "s3-compactor",
        matching(r"[a-z][a-z0-9-]{1,30}[a-z0-9]", "3 to 32 small letters, digits and hyphens"),
        "Name of the stack, the state machine and the metrics' namespace. Deployments in one"
        " account and region need different names.",
    ),
    FieldSpec(
        "mode",
        _WHERE,
        "workflow",
        one_of("workflow", "standalone", ALONE),
        "workflow: the state machine, for any size. standalone: one Lambda function, for sources"
        " that it compacts within 15 minutes. maintenance: nothing is compacted, and the tables of"
        " the key maintenance are maintained; s3_state_uri says where its runs and reports are"
        " stored.",
    ),
    FieldSpec(
        "create_destination_bucket",
        _BUCKETS,
        False,
        flag(),
        "Create the bucket of s3_destination_uri; by default it must exist. Without"
        " s3_destination_uri a bucket is created in any case, with compacted/ as the destination;"
        " without s3_source_uri, one with raw/ as the source. Buckets are kept when the stack is"
        " deleted.",
    ),
    FieldSpec(
        "kms_keys",
        _BUCKETS,
        {},
        KMS_KEYS,
        "KMS keys by what they encrypt; only the roles that need a key may use it. destination:"
        " everything that runs write, and the default of its bucket if the stack creates it."
        " source: also of a created bucket. table: its metadata, if in a bucket of its own."
        " maintenance: the maintained tables. An ARN alone is the destination's key. Default: S3's"
        " own keys.",
    ),
    FieldSpec(
        "encryption",
        _BUCKETS,
        BUCKET_DEFAULT,
        one_of(BUCKET_DEFAULT, AES256, KMS),
        "Encryption that writes name where kms_keys has no key, for organizations that deny writes"
        " without the header x-amz-server-side-encryption. none: no header, and the bucket's"
        " default. aws:kms: the account's key aws/s3.",
    ),
    FieldSpec(
        "access_logs_uri",
        _BUCKETS,
        None,
        LOCATION,
        "Where server access logs of created buckets go. Its bucket must exist and allow S3 to"
        " write to it.",
    ),
    FieldSpec(
        "versioned",
        _BUCKETS,
        False,
        flag(),
        "Keep overwritten and deleted objects of created buckets for 30 days.",
    ),
    FieldSpec(
        "lifecycle",
        _BUCKETS,
        {"standard_ia": 30, "glacier_ir": 90},
        LIFECYCLE,
        "Days until outputs above 128 KB in a created bucket move to a storage class, and until"
        " they are deleted (expire). Each class must come at least 30 days after the one before; {}"
        " keeps everything in Standard. Glacier Instant Retrieval can still be queried, at a fee"
        " per GB read; Flexible Retrieval (glacier) and Deep Archive must be restored first.",
    ),
    FieldSpec(
        "schedule",
        _WHEN,
        None,
        or_null(SCHEDULE),
        "When runs start. null: only when you start one. Set it once you have seen a run succeed.",
    ),
    FieldSpec(
        "schedule_time_zone",
        _WHEN,
        "UTC",
        TIME_ZONE,
        "Time zone of a cron(…). Windows of dates are always UTC.",
    ),
    FieldSpec(
        "ingest",
        _EVENTS,
        "schedule",
        one_of("schedule", "events"),
        "What starts runs, and how they find objects. schedule: the schedule, with LIST. events: S3"
        " notifies of each object, and a run starts when enough are pending; a schedule may be"
        " added.",
    ),
    FieldSpec(
        "events_seconds",
        _EVENTS,
        900,
        whole(60, 86_400),
        "A pending object starts a run after this many seconds, unless 10,000 objects or 1 GiB"
        " start one earlier. Until its records are readable in outputs, the run itself and up to"
        " five minutes for noticing are added.",
    ),
    FieldSpec(
        "reconcile_hours",
        _EVENTS,
        24,
        whole(1, 168),
        "How often the source is listed for objects that no event announced.",
    ),
    FieldSpec(
        "switch_on_notifications",
        _EVENTS,
        True,
        flag(),
        "Enable EventBridge on an existing source bucket; its other notifications are kept. Set"
        " false if another tool manages the bucket's notifications and would disable it again, and"
        " enable it there.",
    ),
    FieldSpec(
        "table_location_uri",
        _TABLE,
        None,
        LOCATION,
        "Location of the table in Glue's catalog, if it exists already or its database has a"
        " location. By default where runs create one: next to the destination, with .table in place"
        " of its last slash.",
    ),
    *MAINTENANCE_FIELDS,
    FieldSpec(
        "architecture",
        _WORK,
        "arm64",
        one_of("arm64", "x86_64"),
        "Processor architecture of the Lambda functions and of Spark's machines. arm64 costs a"
        " fifth less.",
    ),
    FieldSpec(
        "worker_memory_mb",
        _WORK,
        # The limit of new or little used accounts.
        USUAL_WORKER_MB,
        whole(512, 10_240),
        "Memory of the compaction function, in MB. One processor comes with 1,769. New or little"
        " used accounts may allow no more than 3,008. 3,538 bring two whole processors: sources"
        " that are decompressed or parsed take 15 % less time (small uncompressed ones 3 %), and"
        " larger partitions stay in Lambda. More gains nothing.",
    ),
    FieldSpec(
        "worker_reserved_concurrency",
        _WORK,
        None,
        whole(1, 100_000),
        "Reserve this many concurrent executions for the compaction function, at least"
        " max_concurrency. By default it shares the account's.",
    ),
    FieldSpec(
        "vpc",
        _WORK,
        None,
        or_null(VPC),
        "Subnets and security groups of the Lambda functions and of EMR Serverless, which otherwise"
        " run outside of any VPC. The subnets need the endpoints that docs/deployment.md names.",
    ),
    FieldSpec(
        "spark_python",
        _SPARK,
        "3.11",
        matching(r"3\.1[1-9]", "3.11 or a later minor version"),
        "Python version of the EMR release; the libraries are built for it.",
    ),
    FieldSpec(
        "spark_jars",
        _SPARK,
        BUNDLED,
        JARS,
        "Which Iceberg and Delta jars Spark uses for upserts and maintenance. bundled: those that"
        " this version is tested with (Iceberg 112 MB, Delta 7 MB), fetched by Maven and uploaded"
        " once. release: those of the EMR release. A list: your own jars for Spark, and for AWS's"
        " clients if the release has none.",
    ),
    FieldSpec(
        "emr_release_label",
        _SPARK,
        "emr-spark-8.1.0",
        matching(r"emr-[a-z0-9.-]{1,40}", "a release label, such as emr-spark-8.1.0"),
        "EMR release. The Spark job is tested with Spark 4.1.1, which this one contains.",
    ),
    FieldSpec(
        "emr_serverless_max_vcpus",
        _SPARK,
        64,
        whole(4, 4_000),
        "Upper limit of vCPUs for all jobs of the EMR Serverless application; memory is limited to"
        " four times as many GB.",
    ),
    FieldSpec(
        "emr_cluster",
        _SPARK,
        None,
        EMR_CLUSTER,
        "Clusters that are created with spark_engine emr: the id of their subnet, which needs a"
        " route to S3; EMR requires the tag for-use-with-amazon-emr-managed-policies = true on the"
        " subnet and its VPC. As an object also instance_type (default m6g.xlarge or m6i.xlarge, by"
        " architecture; the driver needs four vCPUs and 16 GB) and core_instances (default 2).",
    ),
    FieldSpec(
        "alarm_email",
        _WATCH,
        None,
        E_MAIL,
        "E-mail address that alarms are sent to, after it has confirmed the subscription. The SNS"
        " topic exists in any case.",
    ),
    FieldSpec(
        "log_retention_days",
        _WATCH,
        30,
        LOG_DAYS,
        "Days until logs of functions and workflow are deleted; in created buckets also Spark's"
        " logs and Athena's results.",
    ),
)


def _for_deployment(spec: FieldSpec) -> FieldSpec:
    if spec.name == "s3_source_uri":
        return replace(spec, default=None)
    if spec.name == "s3_destination_uri":
        return replace(spec, default=None)
    if spec.name == "spark_engine":
        return replace(spec, default="emr_serverless")
    return spec


#: The fields of a run as keys of the configuration. The URIs and spark_engine have other defaults
#: here than in a run that is started by hand: a deployment needs no bucket and no VPC.
RUN_KEYS: Mapping[str, FieldSpec] = MappingProxyType(
    {name: _for_deployment(spec) for name, spec in FIELDS.items()}
)
#: All other keys, in the order in which they are documented.
DEPLOYMENT_KEYS: Mapping[str, FieldSpec] = MappingProxyType(
    {spec.name: spec for spec in _DEPLOYMENT}
)
