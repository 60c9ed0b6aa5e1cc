"""Six distinct deployments, by name: each is a document as ``deployment.toml`` has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

KEYS = {
    bucket: f"arn:aws:kms:us-east-1:123456789012:key/{digit * 8}-2222-3333-4444-555555555555"
    for bucket, digit in (("lake", "1"), ("app-logs", "2"), ("tables", "3"))
}
"""Bucket that is there -> the key that encrypts it, where a configuration names keys."""

_IMPORTED = {"s3_source_uri": "s3://app-logs/raw/", "s3_destination_uri": "s3://lake/compacted/"}
_CLEANED = {**_IMPORTED, "delete_after": "0d"}
VPC: Mapping[str, Any] = {
    "subnet_ids": ["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"],
    "security_group_ids": ["sg-0123456789abcdef0"],
}

CONFIGURATIONS: Mapping[str, Mapping[str, Any]] = {
    "default": {},
    "events": {
        "kms_key": {"destination": KEYS["lake"], "source": KEYS["app-logs"]},
        "spark": {"kind": "none"},
        "events": {},
        "job": {**_CLEANED, "settle_seconds": 0},
    },
    "upserts": {
        "kms_key": {
            "destination": KEYS["lake"],
            "source": KEYS["app-logs"],
            "table": KEYS["tables"],
        },
        "table_location_uri": "s3://tables/lake/people/",
        "spark": {
            "kind": "cluster",
            "cluster_id": "j-2AXXXXXXGAPLF",
            "jars": ["s3://tables/jars/iceberg.jar", "/usr/lib/aws/*.jar"],
        },
        "job": {
            **_CLEANED,
            "table": "glue:lake.people",
            "upsert_key": ["id"],
            "order_by": ["at"],
            "delete_when": {"op": ["D"]},
            "parquet_schema": "id BIGINT, at BIGINT, op STRING, name STRING",
        },
    },
    "standalone": {
        "standalone": True,
        "schedule": "cron(0 3 * * ? *)",
        "job": {**_CLEANED, "depth": 1, "reader_table": "glue:lake.logs"},
    },
    "archive": {
        "name": "compactor-two",
        "schedule": "rate(6 hours)",
        "lifecycle": {"standard_ia": 45, "deep_archive": 120, "expire": 3_650},
        "encryption": "AES256",
        "vpc": VPC,
        "worker_memory_mb": 3_538,
        "alarm_email": "operator@example.com",
        "events": {"seconds": 60},
    },
    "maintenance": {
        "kms_key": KEYS["lake"],
        "maintenance": {
            "locations": ["s3://tables/bronze/", "s3://tables/delta/"],
            "kms_key": KEYS["tables"],
            "schedule": "cron(0 4 * * ? *)",
            "glue_optimizers": ["glue:bronze.events"],
            "job": {
                "s3_state_uri": "s3://lake/_maintenance/",
                "glue_tables": ["bronze.*"],
                "delta_prefixes": ["s3://tables/delta/"],
                "policies": [{"match": ["*"], "closed_after_seconds": 0}],
            },
        },
    },
}


def expected_buckets(document: Mapping[str, Any]) -> set[str]:
    """The buckets that a deployment expects to be there already."""
    job, tables = document.get("job", {}), document.get("maintenance", {})
    uris = [one for name, one in job.items() if name.endswith("_uri")]
    uris += [*tables.get("locations", ()), tables.get("job", {}).get("s3_state_uri", "")]
    uris.append(document.get("table_location_uri", ""))
    return {uri.split("/")[2] for uri in uris if uri}
