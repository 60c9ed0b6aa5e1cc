"""S3 Tables: finds the metadata of a table in a table bucket.

This takes one call, instead of the table bucket's Iceberg REST endpoint. It needs just the
permissions that AWS documents for reading the tables of S3 Metadata (Amazon S3 User Guide,
"Permissions for querying metadata tables"), and no library that signs HTTP requests.
"""

from __future__ import annotations

from typing import Any

import botocore.session
from botocore.config import Config


def metadata_location(table_bucket_arn: str, namespace: str, name: str) -> str:
    """Return the URI of a table's current metadata file, which can be read like any S3 object.

    Args:
        table_bucket_arn: ``arn:aws:s3tables:REGION:ACCOUNT:bucket/NAME``.
        namespace: namespace of the table.
        name: name of the table.

    Raises:
        botocore.exceptions.ClientError: NotFoundException, ForbiddenException and others.
        botocore.exceptions.BotoCoreError: there was no answer.
    """
    region = table_bucket_arn.split(":")[3]
    client: Any = botocore.session.get_session().create_client(
        "s3tables", region_name=region, config=Config(retries={"mode": "standard"})
    )
    found = client.get_table_metadata_location(
        tableBucketARN=table_bucket_arn, namespace=namespace, name=name
    )
    return str(found["metadataLocation"])
