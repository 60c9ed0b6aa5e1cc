"""Every mistake in the configuration is one clear error, before anything is made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from cdk.app import read_context
from cdk.config import Config
from cdk.deployment_fields import DEPLOYMENT_KEYS, RUN_KEYS
from compactor.errors import InvalidInput
from tests.infrastructure.configurations import CONFIGURATIONS, VPC

_KEY = "arn:aws:kms:us-east-1:123456789012:key/11111111-2222-3333-4444-555555555555"
_URIS = {"s3_source_uri": "s3://app-logs/raw/", "s3_destination_uri": "s3://lake/compacted/"}
_CLUSTER = {"subnet_id": "subnet-0123456789abcdef0"}
_EMR = {"spark_engine": "emr", "emr_cluster": "subnet-0123456789abcdef0"}

_KEYED = {"table": "glue:a.b", "upsert_key": '["id"]'}
_MISTAKES: list[tuple[Mapping[str, Any], str, str]] = [
    # What lifecycle rules may say; S3 and CDK check none of it at synth.
    ({"lifecycle": {"standard_ia": 7}}, "lifecycle", "standard_ia of at least 30"),
    ({"lifecycle": '{"standard_ia": 29}'}, "lifecycle", "standard_ia of at least 30"),
    ({"lifecycle": {"standard_ia": 0}}, "lifecycle", "days by storage class"),
    ({"lifecycle": {"standard_ia": 60, "glacier_ir": 50}}, "lifecycle", "glacier_ir of at least 9"),
    ({"lifecycle": {"standard_ia": 60, "glacier": 89}}, "lifecycle", "glacier of at least 90"),
    (
        {"lifecycle": {"deep_archive": 100, "glacier_ir": 90, "standard_ia": 30}},
        "lifecycle",
        "deep_archive of at least 120",
    ),
    ({"lifecycle": {"glacier_ir": 90, "expire": 90}}, "lifecycle", "expire of more than"),
    ({"lifecycle": {"glacier_instant": 90}}, "lifecycle", "glacier_ir"),
    ({**_URIS, "lifecycle": {"standard_ia": 45}}, "lifecycle", "does not make"),
    # What engines query stays readable, and there has to be something to switch.
    (
        {"depth": 1, "reader_table": "glue:lake.logs", "lifecycle": {"glacier": 90}},
        "lifecycle",
        "no glacier with reader_table",
    ),
    (
        {"depth": 1, "reader_table": "glue:lake.logs", "lifecycle": {"expire": 400}},
        "lifecycle",
        "no expire with reader_table",
    ),
    ({**_URIS, "reader_table": "glue:lake.logs"}, "reader_table", "partitions"),
    ({**_URIS, "depth": 1, "reader_table": "rest:http://x#a.b"}, "reader_table", "glue:DATABASE"),
    # Where things are.
    (
        {"s3_source_uri": "s3://lake/compacted/raw/", "s3_destination_uri": "s3://lake/compacted/"},
        "s3_destination_uri",
        "neither contains the source",
    ),
    (
        {"s3_source_uri": "s3://lake/", "s3_destination_uri": "s3://lake/compacted/"},
        "s3_destination_uri",
        "neither contains the source",
    ),
    ({"s3_source_uri": "https://lake/raw/"}, "s3_source_uri", "S3 URI"),
    ({"s3_source_uri": "lake/raw/"}, "s3_source_uri", "S3 URI"),
    ({**_URIS, "s3_state_uri": "s3://lake/compacted/state/"}, "s3_state_uri", "neither contains"),
    ({"vpc": "vpc-0123456789abcdef0"}, "vpc", "an object such as"),
    ({"vpc": {"subnet_ids": ["subnet-01"]}}, "vpc", "security_group_ids"),
    ({"vpc": {**VPC, "subnet_ids": []}}, "vpc", "an object such as"),
    ({"vpc": {**VPC, "subnet_ids": ["sg-01234567"]}}, "vpc", '"subnet-0123456789abcdef0"'),
    ({"vpc": {**VPC, "security_group_ids": ["sg-01"]}}, "vpc", '"sg-0123456789abcdef0"'),
    ({"vpc": {**VPC, "security_group_ids": ["sg-01234567"] * 6}}, "vpc", "at most 16 and 5"),
    ({"kms_keys": "alias/lake"}, "kms_keys", "ARN of a KMS key"),
    ({"kms_keys": {"source": "alias/lake"}}, "kms_keys", "ARN of a KMS key"),
    ({"kms_keys": {"target": _KEY}}, "kms_keys", "destination, source, table"),
    ({"kms_keys": {"table": _KEY}}, "kms_keys", "without table"),
    ({"kms_keys": {"maintenance": _KEY}}, "kms_keys", "without maintenance"),
    ({**_URIS, "versioned": True}, "versioned", "makes no bucket"),
    ({**_URIS, "access_logs_uri": "s3://logs/x/"}, "access_logs_uri", "makes no bucket"),
    # Names.
    ({"lifecycles": {}}, "lifecycles", "did you mean lifecycle?"),
    ({"s3_target_uri": "s3://lake/x/"}, "s3_target_uri", "no such key"),
    ({"something": 1}, "something", "no such key"),
    ({"source_s3_uri": "s3://a/b/"}, "source_s3_uri", "did you mean s3_source_uri?"),
    ({"name": "Compactor"}, "name", "small letters"),
    # When.
    ({"schedule": "daily"}, "schedule", "cron("),
    ({"schedule": "cron(0 3 * * * *)"}, "schedule", "cron("),
    ({"schedule": "rate(1 hours)"}, "schedule", "rate("),
    ({"schedule": "rate(0 hours)"}, "schedule", "rate("),
    ({"schedule_time_zone": "Berlin"}, "schedule_time_zone", "Europe/Berlin"),
    ({"schedule": True}, "schedule", "or null"),
    ({"duration": 0, "date_format": "%Y/%m/%d"}, "duration", "1"),
    ({"date_format": "%Y/%q"}, "date_format", "%Y"),
    # What runs.
    ({"mode": "alone"}, "mode", "standalone"),
    ({"architecture": "arm"}, "architecture", "arm64"),
    ({"worker_memory_mb": 20_000}, "worker_memory_mb", "10,240"),
    ({"worker_reserved_concurrency": 5}, "worker_reserved_concurrency", "max_concurrency"),
    ({"target_bytes": 1_000}, "target_bytes", "5,242,880"),
    ({"clean_up": "yes"}, "clean_up", "delete"),
    ({"retention_days": -1}, "retention_days", "0"),
    # Spark.
    ({"spark_engine": "glue"}, "spark_engine", "emr_serverless"),
    ({"spark_engine": "emr"}, "emr_cluster", "such as subnet-"),
    ({"spark_engine": "cluster-1"}, "spark_engine", "such as j-"),
    ({**_EMR, "emr_cluster": {**_CLUSTER, "instance_type": "m6i.xlarge"}}, "emr_cluster", "arm64"),
    ({**_EMR, "emr_cluster": {**_CLUSTER, "core_instances": 0}}, "emr_cluster", "core_instances"),
    ({**_EMR, "emr_cluster": {"core_instances": 4}}, "emr_cluster", "subnet_id"),
    ({**_EMR, "emr_cluster": {**_CLUSTER, "nodes": 4}}, "emr_cluster", "core_instances"),
    ({"mode": "standalone", "spark_engine": "emr_serverless"}, "spark_engine", '"none"'),
    ({"mode": "standalone", "table": "glue:a.b"}, "mode", "workflow"),
    # Events.
    ({"ingest": "event"}, "ingest", "events"),
    ({"ingest": "events", "mode": "standalone"}, "ingest", "standalone"),
    ({"ingest": "events", "listing": "list"}, "listing", "ingest events"),
    ({"ingest": "events", "listing": "events:mine/logs"}, "listing", "ingest events"),
    ({"ingest": "events", "date_format": "%Y/%m/%d", "duration": 2}, "duration", "events"),
    ({"listing": "events"}, "listing", "events:TABLE/STREAM"),
    ({"events_seconds": 30}, "events_seconds", "60"),
    ({"reconcile_hours": 200}, "reconcile_hours", "168"),
    # Tables.
    ({"table": "rest:https://catalog/#lake.events"}, "table", "glue:"),
    ({"table": "sql:sqlite:///x#lake.events"}, "table", "glue:"),
    ({"table": "glue:lake.events", "mode": "standalone"}, "mode", "workflow"),
    ({"table_location_uri": "s3://tables/x/"}, "table_location_uri", "without a table"),
    (
        {**_URIS, "table": "glue:a.b", "table_location_uri": "s3://lake/"},
        "table_location_uri",
        "neither contains the destination",
    ),
    (
        {
            **_URIS,
            "s3_destination_uri": "s3://lake/t/_c/",
            "s3_state_uri": "s3://lake/state/",
            "table": "delta:s3://lake/t/",
        },
        "table",
        "compactor run",
    ),
    ({**_KEYED, "spark_engine": "none"}, "spark_engine", "Spark"),
    ({**_KEYED, "spark_jars": "newest"}, "spark_jars", '"bundled", "release", or a list'),
    ({**_KEYED, "spark_jars": '["s3://b/*.jar"]'}, "spark_jars", "each s3://bucket/key.jar"),
    ({**_KEYED, "spark_jars": '["/a\'b.jar"]'}, "spark_jars", "/path/name.jar"),
    ({"table": "glue:a.b", "spark_jars": "release"}, "spark_jars", "without upsert_key"),
    (
        {
            **_URIS,
            **_KEYED,
            "s3_destination_uri": "s3://lake/x__keys/",
            "table_location_uri": "s3://lake/x/",
        },
        "table_location_uri",
        "the keys beside it, s3://lake/x__keys/, neither",
    ),
    ({"table": "glue:a.b", "lifecycle": {"glacier": 90}}, "lifecycle", "no glacier with a table"),
    ({"table": "glue:a.b", "lifecycle": {"expire": 400}}, "lifecycle", "no expire with a table"),
    # Operation.
    ({"alarm_email": "operator"}, "alarm_email", "e-mail"),
    ({"log_retention_days": 31}, "log_retention_days", "30"),
]


def _told(context: Mapping[str, Any]) -> InvalidInput:
    with pytest.raises(InvalidInput) as told:
        Config.from_context(context)
    return told.value


@pytest.mark.parametrize(("context", "field", "accepted"), _MISTAKES, ids=str)
def test_a_mistake_names_its_key_and_what_is_accepted(
    context: Mapping[str, Any], field: str, accepted: str
) -> None:
    told = str(_told(context))

    assert field in told
    assert accepted in told
    assert "\n" not in told


@pytest.mark.parametrize("key", sorted({*RUN_KEYS, *DEPLOYMENT_KEYS}))
def test_every_key_refuses_what_it_is_not(key: str) -> None:
    told = str(_told({key: {"neither": "text nor number"}}))

    assert key in told


@pytest.mark.parametrize("name", sorted(CONFIGURATIONS))
def test_the_configurations_of_these_tests_are_accepted(name: str) -> None:
    config = Config.from_context({**read_context(), **CONFIGURATIONS[name]})

    assert config.run.s3_destination_uri.startswith("s3://")


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("lifecycle", '{"standard_ia": 45}', {"standard_ia": 45}),
        ("lifecycle", "{}", {}),
        ("kms_keys", _KEY, {"destination": _KEY}),
        ("kms_keys", f'{{"source": "{_KEY}"}}', {"source": _KEY}),
        ("events_seconds", "60", 60),
        ("schedule", "null", None),
        ("schedule", "rate(6 hours)", "rate(6 hours)"),
    ],
)
def test_the_command_lines_text_is_read_as_what_it_says(key: str, text: str, value: object) -> None:
    assert getattr(Config.from_context({key: text}), key) == value


@pytest.mark.parametrize(
    ("architecture", "instance"), [("arm64", "m6g.xlarge"), ("x86_64", "m6i.xlarge")]
)
def test_nodes_of_a_cluster_have_the_architecture_that_is_deployed(
    architecture: str, instance: str
) -> None:
    config = Config.from_context({**_EMR, "architecture": architecture})

    assert config.emr_instance_type == instance


@pytest.mark.parametrize("key", ["@aws-cdk/core:anything", "aws:cdk:bundling-stacks"])
def test_the_cdks_own_keys_are_left_alone(key: str) -> None:
    assert Config.from_context({key: []}) == Config.from_context({})
