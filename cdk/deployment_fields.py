"""Every key of the deployment's configuration, described once.

A run's fields (:data:`compactor.settings.fields.FIELDS`) are keys as well: they become the input of
scheduled runs. The checks of :class:`cdk.config.Config` and the table in
docs/deployment.md come from here.
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
    RECONCILED_BY,
    SCHEDULE,
    TIME_ZONE,
    or_null,
)
from compactor.discovery.fleet import USUAL_WORKER_MB
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
        "Name of the stack, of the state machine and of the metrics' namespace; several"
        " deployments in one account and region need different ones.",
    ),
    FieldSpec(
        "mode",
        _WHERE,
        "workflow",
        one_of("workflow", "standalone", ALONE),
        "workflow: the state machine, for any size. standalone: one Lambda function that does"
        " it all, for sources that one function compacts within 15 minutes. maintenance: nothing is"
        " compacted, and the tables of the key maintenance are maintained; s3_state_uri says where"
        " its runs and reports go.",
    ),
    FieldSpec(
        "create_destination_bucket",
        _BUCKETS,
        False,
        flag(),
        "Make the bucket of s3_destination_uri; by default it is there already. Without"
        " s3_destination_uri a bucket is made in any case, and compacted/ in it is the"
        " destination; without s3_source_uri one is, and raw/ in it is the source. Buckets outlive"
        " the stack.",
    ),
    FieldSpec(
        "kms_keys",
        _BUCKETS,
        {},
        KMS_KEYS,
        "The KMS keys, by what they encrypt; each is for the roles that read or write just that."
        " destination: all that runs write, the default of its bucket where the stack makes it."
        " source: of a made bucket, too. inventory: of listing or reconcile_inventory, where it is"
        " not its bucket's. table: its metadata, in a bucket of its own. maintenance: what is"
        " maintained. An ARN alone is that of the destination; without any, S3's own keys.",
    ),
    FieldSpec(
        "access_logs_uri",
        _BUCKETS,
        None,
        LOCATION,
        "Where the made buckets' server access logs go; its bucket is there already and lets S3"
        " write to it.",
    ),
    FieldSpec(
        "versioned",
        _BUCKETS,
        False,
        flag(),
        "Keep overwritten and deleted objects of made buckets for 30 days.",
    ),
    FieldSpec(
        "lifecycle",
        _BUCKETS,
        {"standard_ia": 30, "glacier_ir": 90},
        LIFECYCLE,
        "Days until outputs in a made bucket move to a storage class, those above 128 KB, and until"
        " they are deleted (expire). Each class at least 30 days after the one before; {} keeps all"
        " in Standard. Glacier Instant Retrieval can still be queried; Flexible Retrieval (glacier)"
        " and Deep Archive must be restored first.",
    ),
    FieldSpec(
        "schedule",
        _WHEN,
        None,
        or_null(SCHEDULE),
        "When runs start; null: when you start one. Give it once you have seen a run go well.",
    ),
    FieldSpec(
        "schedule_time_zone",
        _WHEN,
        "UTC",
        TIME_ZONE,
        "The time zone of a cron(…). Windows of dates are always UTC.",
    ),
    FieldSpec(
        "ingest",
        _EVENTS,
        "schedule",
        one_of("schedule", "events"),
        "What makes runs start, and where they learn which objects there are. schedule: the"
        " schedule, and LIST or an inventory. events: S3 notifies of each object as it comes, and a"
        " run starts when enough wait; runs of a schedule may be added.",
    ),
    FieldSpec(
        "events_seconds",
        _EVENTS,
        900,
        whole(60, 86_400),
        "An object that waits so long starts a run, if 10,000 objects or 1 GiB have not done so"
        " before: the longest time until records are readable in outputs, beside the run itself and"
        " the five minutes at most until it is noticed.",
    ),
    FieldSpec(
        "reconcile_hours",
        _EVENTS,
        24,
        whole(1, 168),
        "How often the source is listed for objects that no event named.",
    ),
    FieldSpec(
        "reconcile_inventory",
        _EVENTS,
        None,
        RECONCILED_BY,
        "What lists the source then, instead of LIST: the prefix that S3 delivers inventories to,"
        " of which the newest is taken each time, or a live inventory table of S3 Metadata.",
    ),
    FieldSpec(
        "switch_on_notifications",
        _EVENTS,
        True,
        flag(),
        "Switch on EventBridge for the source's bucket, where that is there already. Its other"
        " notifications stay. false where another tool keeps the bucket's notifications, which"
        " would switch it off again: then switch it on there.",
    ),
    FieldSpec(
        "table_location_uri",
        _TABLE,
        None,
        LOCATION,
        "Where the table of Glue's catalog lies, when it is there already or its database has a"
        " location. By default where runs make one: beside the destination, with .table in place"
        " of its last slash.",
    ),
    *MAINTENANCE_FIELDS,
    FieldSpec(
        "architecture",
        _WORK,
        "arm64",
        one_of("arm64", "x86_64"),
        "Of the Lambda functions and of the machines that Spark runs on; arm64 costs a fifth less.",
    ),
    FieldSpec(
        "worker_memory_mb",
        _WORK,
        # What an account that is new or little used is refused above.
        USUAL_WORKER_MB,
        whole(512, 10_240),
        "Memory of the compaction function, in MB; one processor comes with 1,769. Accounts that"
        " are new or little used may have no more than 3,008. 3,538 bring two whole processors:"
        " sources that are decompressed or parsed take 15 % less time (small plain ones 3 %), and a"
        " partition is larger before it goes to Spark. More than that buys nothing.",
    ),
    FieldSpec(
        "worker_reserved_concurrency",
        _WORK,
        None,
        whole(1, 100_000),
        "Keep that many parallel executions for the compaction function, at least"
        " max_concurrency. By default it shares the account's.",
    ),
    FieldSpec(
        "spark_python",
        _SPARK,
        "3.11",
        matching(r"3\.1[1-9]", "3.11 or a later minor version"),
        "The Python of the EMR release; the libraries are built for it.",
    ),
    FieldSpec(
        "spark_jars",
        _SPARK,
        BUNDLED,
        JARS,
        "Whose Iceberg merges into a table with upsert_key, and whose Iceberg and Delta maintain"
        " tables. bundled: the jars that this version is tested with (Iceberg 112 MB, Delta 7 MB),"
        " which the deployment fetches by Maven and uploads once. release: those of the EMR"
        " release. A list: your own, for Spark, and AWS's clients where the release has none.",
    ),
    FieldSpec(
        "emr_release_label",
        _SPARK,
        "emr-spark-8.1.0",
        matching(r"emr-[a-z0-9.-]{1,40}", "a release label, such as emr-spark-8.1.0"),
        "The EMR release. The Spark job is tested with Spark 4.1.1, which is in this one.",
    ),
    FieldSpec(
        "emr_serverless_max_vcpus",
        _SPARK,
        64,
        whole(4, 4_000),
        "At most that many processors for all jobs of the EMR Serverless application, and four"
        " times as many GB of memory.",
    ),
    FieldSpec(
        "emr_cluster",
        _SPARK,
        None,
        EMR_CLUSTER,
        "The clusters that are made with spark_engine emr: their subnet, with a route to S3, which"
        " EMR asks to have the tag for-use-with-amazon-emr-managed-policies = true, as its VPC."
        " More of them: instance_type, by default m6g.xlarge or m6i.xlarge by architecture, as the"
        " driver needs four processors and 16 GB; core_instances, by default 2.",
    ),
    FieldSpec(
        "alarm_email",
        _WATCH,
        None,
        E_MAIL,
        "Where alarms go, once it confirmed the subscription. The topic is there in any case.",
    ),
    FieldSpec(
        "log_retention_days",
        _WATCH,
        30,
        LOG_DAYS,
        "Days until logs of functions and workflow are deleted.",
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


#: The fields of a run as keys of the configuration. Two have a default here that needs no VPC
#: and no bucket: a run that is started by hand has others.
RUN_KEYS: Mapping[str, FieldSpec] = MappingProxyType(
    {name: _for_deployment(spec) for name, spec in FIELDS.items()}
)
#: The other keys, in the order in which they are documented.
DEPLOYMENT_KEYS: Mapping[str, FieldSpec] = MappingProxyType(
    {spec.name: spec for spec in _DEPLOYMENT}
)
