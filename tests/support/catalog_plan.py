"""What a query over the readers' table reads, from the catalog and S3, without product code."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def shown_by(glue: Any, database: str, table: str) -> Iterator[tuple[str, str]]:
    """Yield location and input format of each partition in a Glue Data Catalog."""
    pages = glue.get_paginator("get_partitions")
    for page in pages.paginate(DatabaseName=database, TableName=table):
        for one in page["Partitions"]:
            descriptor = one["StorageDescriptor"]
            yield descriptor["Location"], descriptor["InputFormat"]


def is_list(input_format: str) -> bool:
    """Return whether a partition lists its objects, instead of showing all below its location."""
    return "Symlink" in input_format


def objects_at(s3: Any, location: str, input_format: str) -> list[tuple[str, str]]:
    """Return bucket and key of all objects that a query reads in one partition."""
    bucket, _, prefix = location[len("s3://") :].partition("/")
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
    keys = [one["Key"] for page in pages for one in page.get("Contents", [])]
    if not is_list(input_format):
        return [(bucket, key) for key in keys]
    found: list[tuple[str, str]] = []
    for key in keys:
        body = s3.get_object(Bucket=bucket, Key=key)["Body"].read().decode()
        uris = [line[len("s3://") :].partition("/") for line in body.splitlines()]
        found += [(target, name) for target, _, name in uris]
    return found
