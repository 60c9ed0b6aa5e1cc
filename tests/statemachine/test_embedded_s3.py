"""The embedded S3: seeding, and the life of its process."""

from __future__ import annotations

import datetime
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from compactor_local import EngineError
from compactor_local.embedded import EmbeddedS3, SeedObject

KEYS = ["a", "a b+c&d%25<é>.json", "logs/2024/", "logs/2024/01/01/x.json", "logs//odd", "z/last"]


@pytest.fixture(scope="module")
def client(s3: EmbeddedS3) -> Any:
    return boto3.client("s3", endpoint_url=s3.endpoint_url)


@pytest.fixture(scope="module")
def bucket(s3: EmbeddedS3) -> str:
    objects = [SeedObject(key, key.encode(), 1_600_000_000.0 + n) for n, key in enumerate(KEYS)]
    assert s3.seed("seeded", objects) == len(KEYS)
    return "seeded"


def test_seeded_objects_look_as_old_as_they_were_said_to_be(client: Any, bucket: str) -> None:
    for n, key in enumerate(KEYS):
        got = client.get_object(Bucket=bucket, Key=key)
        assert got["Body"].read() == key.encode()
        moment = datetime.datetime.fromtimestamp(1_600_000_000 + n, datetime.UTC)
        assert got["LastModified"] == moment


def test_a_name_that_is_no_bucket_name_is_refused(s3: EmbeddedS3) -> None:
    with pytest.raises(EngineError, match="'x' is not a valid bucket name"):
        s3.create_bucket("x")


def test_an_aborted_upload_takes_no_parts_and_cannot_be_completed(s3: EmbeddedS3) -> None:
    s3.create_bucket("aborted")
    client = s3.client("s3")
    upload = {"Bucket": "aborted", "Key": "a"}
    upload["UploadId"] = client.create_multipart_upload(**upload)["UploadId"]
    etag = client.upload_part(**upload, PartNumber=1, Body=b"a")["ETag"]
    client.abort_multipart_upload(**upload)
    with pytest.raises(ClientError, match="NoSuchUpload"):
        client.complete_multipart_upload(
            **upload, MultipartUpload={"Parts": [{"ETag": etag, "PartNumber": 1}]}
        )
    with pytest.raises(ClientError, match="NoSuchUpload"):
        client.upload_part(**upload, PartNumber=2, Body=b"a")
    client.put_object(Bucket="aborted", Key="b", Body=b"b")
    part = {"PartNumber": 2, "CopySource": {"Bucket": "aborted", "Key": "b"}}
    with pytest.raises(ClientError, match="NoSuchUpload"):
        client.upload_part_copy(**upload, **part)
