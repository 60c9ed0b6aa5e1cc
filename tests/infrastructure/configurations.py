"""Distinct deployments, by name: each is a context as cdk.json or ``-c`` gives it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_KEY = "arn:aws:kms:us-east-1:123456789012:key/11111111-2222-3333-4444-555555555555"
_SOURCE_KEY = "arn:aws:kms:us-east-1:123456789012:key/66666666-7777-8888-9999-000000000000"
_TABLE_KEY = "arn:aws:kms:us-east-1:123456789012:key/33333333-2222-3333-4444-555555555555"
_IMPORTED = {"s3_source_uri": "s3://app-logs/raw/", "s3_destination_uri": "s3://lake/compacted/"}

VPC: Mapping[str, Any] = {
    "subnet_ids": ["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"],
    "security_group_ids": ["sg-0123456789abcdef0"],
}
"""A network that is there already."""

CONFIGURATIONS: Mapping[str, Mapping[str, Any]] = {
    "nothing set": {},
    "two days": {
        **_IMPORTED,
        "duration": 2,
        "date_format": "%Y/%m/%d",
        "spark_engine": "none",
    },
    "workers alone": {**_IMPORTED, "engine": "worker"},
    "named bucket made": {**_IMPORTED, "create_destination_bucket": True},
    "KMS, clean-up, imported buckets": {
        **_IMPORTED,
        "schedule": "cron(0 3 ? * SUN *)",
        "kms_keys": {"destination": _KEY, "source": _SOURCE_KEY},
        "clean_up": "delete",
        "retention_days": 0,
        "spark_engine": "none",
    },
    "EMR on EC2": {"spark_engine": "emr", "emr_cluster": "subnet-0123456789abcdef0"},
    "EMR on EC2, KMS": {
        "spark_engine": "emr",
        "emr_cluster": {"subnet_id": "subnet-0123456789abcdef0", "core_instances": 4},
        "kms_keys": _KEY,
    },
    "running EMR cluster": {"spark_engine": "j-2AXXXXXXGAPLF"},
    "Parquet": {"format": "parquet"},
    "events": {"ingest": "events"},
    "events, KMS, imported buckets": {
        **_IMPORTED,
        "ingest": "events",
        "kms_keys": {"destination": _KEY, "source": _SOURCE_KEY},
        "clean_up": "delete",
        "retention_days": 0,
        "settle_seconds": 0,
        "open_partition_seconds": 0,
        "spark_engine": "none",
    },
    "events, notifications kept": {
        **_IMPORTED,
        "ingest": "events",
        "name": "compactor-three",
        "switch_on_notifications": False,
        "events_seconds": 60,
        "reconcile_hours": 168,
        "spark_engine": "j-2AXXXXXXGAPLF",
    },
    "table in Glue": {"table": "glue:lake.events", "format": "json_lines"},
    "table in Glue, KMS, imported buckets": {
        **_IMPORTED,
        "table": "glue:lake.events",
        "output_format": "parquet",
        "table_location_uri": "s3://tables/lake/events/",
        "kms_keys": {"destination": _KEY, "source": _SOURCE_KEY, "table": _TABLE_KEY},
        "clean_up": "delete",
        "retention_days": 0,
    },
    "table in Glue, by events": {
        **_IMPORTED,
        "table": "glue:lake.events",
        "ingest": "events",
        "switch_on_notifications": False,
    },
    "table with a key": {
        "table": "glue:lake.people",
        "upsert_key": ["id"],
        "order_by": ["at"],
        "delete_when": {"op": ["D"]},
        "parquet_schema": "id BIGINT, at BIGINT, op STRING, name STRING",
    },
    "table with a key, KMS, imported buckets, running cluster": {
        **_IMPORTED,
        "table": "glue:lake.people",
        "upsert_key": ["id"],
        "table_location_uri": "s3://tables/lake/people/",
        "kms_keys": {"destination": _KEY, "source": _SOURCE_KEY, "table": _TABLE_KEY},
        "clean_up": "delete",
        "spark_engine": "j-2AXXXXXXGAPLF",
        "spark_jars": ["s3://tables/jars/iceberg.jar", "/usr/lib/aws/*.jar"],
    },
    "table with a key, EMR on EC2, the release's archives": {
        "table": "glue:lake.people",
        "upsert_key": ["id"],
        "spark_engine": "emr",
        "emr_cluster": "subnet-0123456789abcdef0",
        "spark_jars": "release",
    },
    "readers' table, KMS, clean-up, imported buckets": {
        **_IMPORTED,
        "depth": 1,
        "reader_table": "glue:lake.logs",
        "kms_keys": {"destination": _KEY, "source": _SOURCE_KEY},
        "clean_up": "delete",
        "retention_days": 0,
        "spark_engine": "none",
    },
    "standalone, readers' table, clean-up, imported buckets": {
        **_IMPORTED,
        "depth": 1,
        "reader_table": "glue:lake.logs",
        "mode": "standalone",
        "clean_up": "delete",
        "retention_days": 0,
    },
    "readers' table, made buckets, EMR Serverless": {
        "depth": 1,
        "reader_table": "glue:lake.logs",
    },
    "tables maintained": {
        **_IMPORTED,
        "maintenance": {
            "glue_tables": ["bronze.*"],
            "delta_prefixes": ["s3://tables/delta/"],
            "policies": [{"match": ["*"], "closed_after_seconds": 0}],
        },
        "maintenance_locations": ["s3://tables/bronze/", "s3://tables/delta/"],
    },
    "tables maintained, made bucket": {
        "maintenance": {"glue_tables": ["bronze.*"]},
        "maintenance_locations": ["s3://tables/bronze/"],
        "log_retention_days": 7,
    },
    "tables maintained, KMS, running cluster": {
        **_IMPORTED,
        "maintenance": {"tables": ["glue:gold.orders"], "delta_prefixes": ["s3://tables/delta/"]},
        "maintenance_locations": ["s3://tables/gold/", "s3://tables/delta/"],
        "kms_keys": {"destination": _KEY, "source": _SOURCE_KEY, "maintenance": _TABLE_KEY},
        "glue_optimizers": ["glue:gold.orders"],
        "spark_engine": "j-2AXXXXXXGAPLF",
    },
    "events in a VPC": {"ingest": "events", "vpc": VPC},
    "standalone": {"mode": "standalone"},
    "standalone, clean-up, imported buckets": {
        **_IMPORTED,
        "mode": "standalone",
        "schedule": "cron(0 3 * * ? *)",
        "clean_up": "delete",
        "retention_days": 0,
    },
    "everything set": {
        "access_logs_uri": "s3://access-logs/compactor/",
        "alarm_email": "operator@example.com",
        "encryption": "AES256",
        "lifecycle": {"standard_ia": 45, "deep_archive": 120, "expire": 3_650},
        "log_retention_days": 90,
        "name": "compactor-two",
        "schedule": "rate(6 hours)",
        "schedule_time_zone": "Europe/Berlin",
        "versioned": True,
        "worker_memory_mb": 3_538,
        "worker_reserved_concurrency": 200,
    },
}
#: Deployments of maintenance alone; nothing is compacted there.
MAINTENANCE_ALONE: Mapping[str, Mapping[str, Any]] = {
    "maintenance alone": {
        "mode": "maintenance",
        "s3_state_uri": "s3://lake/_maintenance/",
        "maintenance": {"glue_tables": ["bronze.*"], "delta_prefixes": ["s3://tables/delta/"]},
        "maintenance_locations": ["s3://tables/bronze/", "s3://tables/delta/"],
        "maintenance_schedule": "cron(0 3 * * ? *)",
    },
    "maintenance alone, in a VPC": {
        "mode": "maintenance",
        "s3_state_uri": "s3://lake/_maintenance/",
        "maintenance": {"glue_tables": ["bronze.*"]},
        "maintenance_locations": ["s3://tables/bronze/"],
        "vpc": VPC,
    },
    "maintenance alone, KMS, running cluster": {
        "mode": "maintenance",
        "name": "keeper",
        "s3_state_uri": "s3://lake/_maintenance/",
        "maintenance": {
            "tables": ["glue:gold.orders"],
            "delta_prefixes": ["s3://tables/delta/"],
            "policies": [{"match": ["*"]}],
        },
        "maintenance_locations": ["s3://tables/gold/", "s3://tables/delta/"],
        "kms_keys": {"destination": _KEY, "maintenance": _TABLE_KEY},
        "glue_optimizers": ["glue:gold.orders"],
        "spark_engine": "j-2AXXXXXXGAPLF",
    },
    "maintenance alone, without Spark": {
        "mode": "maintenance",
        "s3_state_uri": "s3://lake/_maintenance/",
        "maintenance": {"glue_tables": ["bronze.*"]},
        "maintenance_locations": ["s3://tables/bronze/"],
        "spark_engine": "none",
        "alarm_email": "operator@example.com",
    },
}
#: All of them.
EVERY: Mapping[str, Mapping[str, Any]] = {**CONFIGURATIONS, **MAINTENANCE_ALONE}
KMS_KEYS = {
    "app-logs": _SOURCE_KEY,
    "lake": _KEY,
    "tables": _TABLE_KEY,
}
"""Imported bucket -> the key that encrypts it, in the configurations with imported buckets."""


def expected_buckets(context: Mapping[str, Any]) -> set[str]:
    """The buckets that a deployment expects to be there already."""
    names = {
        "s3_source_uri": "",
        "s3_destination_uri": "create_destination_bucket",
        "s3_state_uri": "",
        "access_logs_uri": "",
        "table_location_uri": "",
    }
    found = [
        uri
        for name, created in names.items()
        if (uri := context.get(name, "")).startswith("s3://") and not context.get(created)
    ]
    return {uri.split("/")[2] for uri in (*found, *context.get("maintenance_locations", ()))}


def key_of(context: Mapping[str, Any], what: str) -> str | None:
    """The key that a deployment is given for what it encrypts."""
    given = context.get("kms_keys", {})
    keys: Mapping[str, str] = {"destination": given} if isinstance(given, str) else given
    return keys.get(what)


def engine_of(context: Mapping[str, Any]) -> str:
    """Where Spark runs in a deployment: ``emr``, ``cluster``, ``emr_serverless`` or ``none``."""
    if context.get("mode") == "standalone" or context.get("engine") == "worker":
        return "none"
    engine = str(context.get("spark_engine", "emr_serverless"))
    return "cluster" if engine.startswith("j-") else engine
