"""S3 Tables: where the metadata of a table in a table bucket lies.

One call, instead of the table bucket's Iceberg REST endpoint: it takes the very rights that AWS
names for reading the tables of S3 Metadata (Amazon S3 User Guide, "Permissions for querying
metadata tables"), and no signed HTTP of a library.
"""

from __future__ import annotations

from typing import Any

import botocore.session
from botocore.config import Config


def metadata_location(table_bucket_arn: str, namespace: str, name: str) -> str:
    """The URI of a table's current metadata file, which S3 serves as it serves any object.

    Args:
        table_bucket_arn: ``arn:aws:s3tables:REGION:ACCOUNT:bucket/NAME``.
        namespace: of the table.
        name: of the table.

    Raises:
        botocore.exceptions.ClientError: NotFoundException, ForbiddenException and others.
        botocore.exceptions.BotoCoreError: no answer.
    """
    region = table_bucket_arn.split(":")[3]
    client: Any = botocore.session.get_session().create_client(
        "s3tables", region_name=region, config=Config(retries={"mode": "standard"})
    )
    found = client.get_table_metadata_location(
        tableBucketARN=table_bucket_arn, namespace=namespace, name=name
    )
    return str(found["metadataLocation"])
