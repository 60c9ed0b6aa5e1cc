"""Checks that S3 alone answers: conditions, checksums and bucket policies."""

from __future__ import annotations

import zlib
from base64 import b64encode
from collections.abc import Mapping
from functools import partial
from typing import Any

from tests.aws.checks import CheckFailed
from tests.aws.world import World

_LOST_RACE = {"PreconditionFailed", "412"}
_WRONG_SUM = {"BadDigest", "InvalidRequest", "InvalidPart"}
_DENIED = {"AccessDenied", "403"}
_BODY = b'{"id": 1}\n'


def put_twice(world: World) -> None:
    """A second conditional PUT of one key is refused, and the first content stays."""
    place = world.probes
    s3 = world.client("s3")
    about = {"Bucket": place.bucket, "Key": f"{place.prefix}once"}
    s3.put_object(**about, Body=b"first", IfNoneMatch="*")
    code = world.refused(
        "a second PutObject with If-None-Match",
        lambda: s3.put_object(**about, Body=b"second", IfNoneMatch="*"),
    )
    _require(code, _LOST_RACE)
    if s3.get_object(**about)["Body"].read() != b"first":
        raise CheckFailed("GetObject returned the content of the refused PutObject")


def full_object_crc32(world: World) -> None:
    """A multipart upload with another CRC32 of the whole object is refused; HEAD has the right."""
    place, key = world.probes, "whole"
    about = {"Bucket": place.bucket, "Key": f"{place.prefix}{key}"}
    s3 = world.client("s3")
    code = world.refused("a wrong CRC32", lambda: _upload(s3, about, zlib.crc32(b"other")))
    _require(code, _WRONG_SUM)
    _upload(s3, about, zlib.crc32(_BODY))
    head = s3.head_object(**about, ChecksumMode="ENABLED")
    if head.get("ChecksumCRC32") != _text(zlib.crc32(_BODY)):
        raise CheckFailed(f"HeadObject has the CRC32 {head.get('ChecksumCRC32')}")


def _upload(s3: Any, about: Mapping[str, str], crc32: int) -> None:
    made = s3.create_multipart_upload(
        **about, ChecksumAlgorithm="CRC32", ChecksumType="FULL_OBJECT"
    )
    upload = {**about, "UploadId": made["UploadId"]}
    part = s3.upload_part(**upload, PartNumber=1, Body=_BODY)
    try:
        s3.complete_multipart_upload(
            **upload,
            MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]},
            ChecksumType="FULL_OBJECT",
            ChecksumCRC32=_text(crc32),
            IfNoneMatch="*",
        )
    except Exception:
        s3.abort_multipart_upload(**upload)
        raise


def _text(crc32: int) -> str:
    return b64encode(crc32.to_bytes(4)).decode()


def _require(code: str, accepted: set[str]) -> None:
    if code not in accepted:
        raise CheckFailed(code)


def demands_encryption(world: World) -> None:
    """Where a policy denies writes without a header, that header is what lets them in."""
    bucket = world.names.probe
    put = partial(world.client("s3").put_object, Bucket=bucket, Key="sse", Body=_BODY)
    condition = {"Null": {"s3:x-amz-server-side-encryption": "true"}}
    with world.denied(bucket, "s3:PutObject", condition):
        _require(world.refused("a PutObject without encryption", put), _DENIED)
        put(ServerSideEncryption="AES256")


def demands_signed_payloads(world: World) -> None:
    """Where a policy denies unsigned payloads, the writes of runs are let in."""
    bucket = world.names.probe
    condition = {"StringEquals": {"s3:x-amz-content-sha256": "UNSIGNED-PAYLOAD"}}
    with world.denied(bucket, "s3:PutObject", condition):
        world.store.create(bucket, "signed", _BODY)
